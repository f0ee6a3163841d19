//! The events that babeltrace2, an independent reader, finds in a CTF trace.

use crate::peer::workload::tally_line;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Adds every event to the tally; see [`tally_line`].
///
/// # Panics
///
/// If there is no babeltrace2, or it cannot read the trace.
pub fn add_to_tally(trace: &Path, marks: &[&str], named: bool) {
    let mut reader = Command::new("babeltrace2")
        .arg(trace)
        .stdout(Stdio::piped())
        // The warnings about discarded events are not needed: the events are counted.
        .stderr(Stdio::null())
        .spawn()
        .expect("babeltrace2 starts: scripts/setup.sh installs it");
    let lines = BufReader::new(reader.stdout.take().expect("a pipe")).lines();
    lines.for_each(|line| tally_line(&line.expect("babeltrace2 writes text"), marks, named));
    assert!(reader.wait().expect("babeltrace2 ends").success(), "babeltrace2 reads {}", trace.display());
}
