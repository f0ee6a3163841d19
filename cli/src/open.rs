//! Opens recorded traces.

use crate::failure::Failure;
use crate::message;
use std::path::PathBuf;
use tracepoint_reader::Trace;

/// Opens the traces in these paths as one, and says which of them have metadata that is not what was written.
pub(crate) fn open(paths: &[PathBuf]) -> Result<Trace, Failure> {
    let trace = Trace::open_all(paths)?;
    for (path, metadata) in trace.metadata() {
        if let Some(reason) = metadata.damage() {
            let path = path.display();
            message::note(&format!(
                "{path}: the metadata is damaged: {reason}. What it describes, such as names, types and times, may be shown wrongly"
            ));
        }
    }
    Ok(trace)
}
