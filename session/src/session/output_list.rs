//! The list of outputs next to the rings: recovery finds packets there that are no longer in the rings.

use std::os::unix::ffi::OsStrExt;
use tracepoint_run_dir::notice::Notice;
use tracepoint_sinks::{Output, Sink};

/// A sink's line: format, space, absolute path. Empty if the sink has no output, or its path contains a newline.
pub(super) fn line(sink: &mut dyn Sink, notices: &mut Vec<Notice>) -> Vec<u8> {
    let Some(Output { format, path }) = sink.extension().and_then(|sink| sink.output()) else { return Vec::new() };
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&b'\n') {
        notices.push(Notice::OutputNotListed { path });
        return Vec::new();
    }
    [format.as_bytes(), b" ", bytes, b"\n"].concat()
}
