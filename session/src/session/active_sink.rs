//! A sink of a running session.

use std::sync::{Arc, OnceLock};
use tracepoint_run_dir::notice::Notice;
use tracepoint_session_io::outputs::Output;
use tracepoint_session_spec::SinkSpec;
use tracepoint_sinks::{self as sinks, Sink, SinkId};

#[derive(Debug)]
pub(super) struct ActiveSink {
    /// Its id in the drain; unset until the drain has added it, which a blocking sink may delay.
    pub(super) id: Arc<OnceLock<SinkId>>,
    /// Its description; `None` for the placeholder of a session without sinks.
    pub(super) spec: Option<SinkSpec>,
    pub(super) output: Output,
    /// Its line in the list of outputs next to the rings: recovery finds packets there that are no longer in the rings.
    pub(super) line: Vec<u8>,
}

/// A sink's line: format, space, absolute path. Empty if the sink has no output, or its path contains a newline.
pub(super) fn output_line(sink: &mut dyn Sink, notices: &mut Vec<Notice>) -> Vec<u8> {
    let Some(sinks::Output { format, path }) = sink.extension().and_then(|sink| sink.output()) else {
        return Vec::new();
    };
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.contains(&b'\n') {
        notices.push(Notice::OutputNotListed(path));
        return Vec::new();
    }
    [format.as_bytes(), b" ", bytes, b"\n"].concat()
}
