//! A sink of a running session.

use std::sync::{Arc, OnceLock};
use tracepoint_session_io::outputs::Output;
use tracepoint_session_spec::SinkSpec;
use tracepoint_sinks::SinkId;

#[derive(Debug)]
pub(super) struct ActiveSink {
    /// Its id in the drain; unset until the drain has added it, which a blocking sink may delay.
    pub(super) id: Arc<OnceLock<SinkId>>,
    /// Its description; `None` for the placeholder of a session without sinks.
    pub(super) spec: Option<SinkSpec>,
    pub(super) output: Output,
    /// Its line in the list of outputs next to the rings.
    pub(super) line: Vec<u8>,
}
