//! The sender of a session's description.

use super::OutputError;
use std::time::Duration;
use tracepoint_session_spec::StreamSpec;
use tracepoint_sinks::StreamSink;
use tracepoint_sinks::stream::{DEFAULT_MTU, StreamOptions};
use tracepoint_wire::stream::SharedKey;

/// Makes the sender of a process of this name.
pub(super) fn sender(spec: &StreamSpec, process: &str) -> Result<StreamSink, OutputError> {
    StreamSink::new(options(spec, process)?).map_err(OutputError::sink)
}

fn to_peer(spec: &StreamSpec) -> Result<StreamOptions, OutputError> {
    #[cfg(feature = "nats")]
    if spec.is_broker() {
        return Ok(StreamOptions::publish(spec.to.parse().map_err(OutputError::sink)?));
    }
    Ok(StreamOptions::to(spec.destination().map_err(OutputError::sink)?))
}

fn options(spec: &StreamSpec, process: &str) -> Result<StreamOptions, OutputError> {
    let mut options = to_peer(spec)?.process(process);
    if spec.relay {
        options = options.relay_only();
    }
    if spec.udp {
        options = options.udp(spec.mtu.unwrap_or(DEFAULT_MTU));
    }
    if let Some(pause) = spec.sync_interval_ms {
        options = options.sync_interval(Duration::from_millis(pause));
    }
    if let Some(bytes) = spec.resend_buffer {
        options = options.resend_buffer(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
    if let Some(rate) = spec.max_bandwidth {
        options = options.max_bandwidth(rate);
    }
    if let Some(path) = &spec.key_file {
        options = options.key(SharedKey::read(path).map_err(OutputError::sink)?);
    }
    if let Some(time) = spec.retry_ms {
        options = options.retry(Duration::from_millis(time));
    }
    Ok(if spec.wait { options.wait() } else { options })
}
