//! Opens recorded traces.

use crate::failure::Failure;
use crate::message;
use std::path::PathBuf;
use tracepoint_reader::Trace;

/// Opens the traces in these paths as one, and reports those whose metadata has been altered.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Trace, Failure> {
    let trace = Trace::open_all(paths)?;
    for damage in trace.metadata_damage() {
        message::note(&damage.to_string());
    }
    Ok(trace)
}
