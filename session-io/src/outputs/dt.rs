//! The circular file of a session's description.

use super::OutputError;
use super::names::names;
use std::path::{Path, PathBuf};
use tracepoint_sinks::DtSink;

/// Makes a new circular file at `path`, inside it, or next to it.
pub(super) fn file(path: &Path, name: &str, slots: u32) -> Result<(DtSink, PathBuf), OutputError> {
    // The file is made when the session starts. If two sessions choose the same name here, the second fails then.
    let path = names(path, name, "dt").find(|path| path.symlink_metadata().is_err()).unwrap_or_default();
    DtSink::create(&path, slots).map(|sink| (sink, path)).map_err(OutputError::sink)
}
