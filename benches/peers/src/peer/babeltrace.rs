//! What babeltrace2, which none of us wrote, finds in a CTF trace.

use crate::peer::workload::tell_line;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells the tally of every event; see [`tell_line`].
///
/// # Panics
///
/// If there is no babeltrace2, or it cannot read the trace.
pub(super) fn tell(trace: &Path, marks: &[&str], named: bool) {
    let mut reader = Command::new("babeltrace2")
        .arg(trace)
        .stdout(Stdio::piped())
        // It says there what was discarded, which is found by counting.
        .stderr(Stdio::null())
        .spawn()
        .expect("babeltrace2 starts: scripts/setup.sh installs it");
    let lines = BufReader::new(reader.stdout.take().expect("a pipe")).lines();
    lines.for_each(|line| tell_line(&line.expect("babeltrace2 writes text"), marks, named));
    assert!(reader.wait().expect("babeltrace2 ends").success(), "babeltrace2 reads {}", trace.display());
}
