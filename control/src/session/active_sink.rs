//! A sink of a running session.

use crate::outputs::Output;
use crate::spec::SinkSpec;
use std::sync::{Arc, OnceLock};
use tracepoint_sinks::SinkId;

#[derive(Debug)]
pub(super) struct ActiveSink {
    /// Its id in the drain; not set while the drain, which another sink blocks, has yet to add it.
    pub(super) id: Arc<OnceLock<SinkId>>,
    /// Its description; `None` of the one that stands for a session without sinks.
    pub(super) spec: Option<SinkSpec>,
    pub(super) output: Output,
    /// Its line in the list of outputs beside the rings.
    pub(super) line: Vec<u8>,
}
