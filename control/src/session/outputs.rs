//! The list of sinks that keep what they get.

use super::Notice;
use std::os::unix::ffi::OsStrExt;
use tracepoint_sinks::{Output, Sink};

/// One line for each sink that keeps what it gets: format, blank, absolute path.
pub(super) fn list(sinks: &mut [Box<dyn Sink>], notices: &mut Vec<Notice>) -> Vec<u8> {
    let mut lines = Vec::new();
    for Output { format, path } in sinks.iter_mut().filter_map(|sink| sink.extension()?.output()) {
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
