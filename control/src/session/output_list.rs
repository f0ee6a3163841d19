//! The list of sinks that keep what they get.

use crate::notice::Notice;
use std::os::unix::ffi::OsStrExt;
use tracepoint_sinks::{Output, Sink};

/// One line for each sink that keeps what it gets: format, blank, absolute path.
pub(super) fn text(sinks: &[Box<dyn Sink>], notices: &mut Vec<Notice>) -> Vec<u8> {
    let mut lines = Vec::new();
    for Output { format, path } in sinks.iter().filter_map(|sink| sink.output()) {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&b'\n') {
            notices.push(Notice::OutputNotListed { path });
            continue;
        }
        lines.extend_from_slice(format.as_bytes());
        lines.push(b' ');
        lines.extend_from_slice(bytes);
        lines.push(b'\n');
    }
    lines
}
