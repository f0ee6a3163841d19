//! In the steady state an event makes no system call, except for the wake of a drain that sleeps while the ring fills up, or of the thread
//! of a trigger that it matches: strace sees no other.

use crate::states::{MAX_PACKETS, RUN_DIR, WAKING};
use std::env;
use std::process::{Command, Stdio};

/// The variable that marks the traced process.
const TRACED: &str = "STEADY_TRACED";
/// Steady states.
const STATES: usize = 7;

/// A system call that no other code makes; another one if events may wake the drain.
fn mark(state: &str) {
    // SAFETY: neither has an effect.
    let _ = unsafe { if state.ends_with(WAKING) { libc::getpgrp() } else { libc::getppid() } };
}

#[test]
fn an_event_makes_no_system_call() {
    own_process!();
    if env::var_os(TRACED).is_some() {
        crate::states::in_each(|state, act| {
            mark(state);
            act();
            mark(state);
        });
        return crate::states::under_triggers(|act| {
            mark(WAKING);
            act();
            mark(WAKING);
        });
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let run_dir = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let status = Command::new("strace")
        .args(["-ff", "-o"])
        .arg(place.path().join("calls"))
        .arg(env::current_exe().expect("this program"))
        .args(["--exact", "system_calls::an_event_makes_no_system_call", "--nocapture"])
        .env(TRACED, "")
        .env(RUN_DIR, run_dir.path())
        .stdout(Stdio::null())
        .status()
        .expect("strace is installed (see scripts/setup.sh)");
    assert!(status.success());
    // One file for each thread; one thread made the marks.
    let mut marks = 0;
    for entry in std::fs::read_dir(place.path()).expect("strace wrote there") {
        let calls = std::fs::read(entry.expect("an entry").path()).expect("text");
        let calls = String::from_utf8_lossy(&calls).into_owned();
        let lines: Vec<_> = calls.lines().collect();
        let is_mark = |line: &str| line.starts_with("getppid(") || line.starts_with("getpgrp(");
        let at: Vec<_> = (0..lines.len()).filter(|line| is_mark(lines[*line])).collect();
        for pair in at.chunks(2) {
            let between = &lines[pair[0] + 1..pair[1]];
            if lines[pair[0]].starts_with("getppid(") {
                assert_eq!(between, [""; 0], "between the marks");
            } else {
                let is_wake = |line: &&str| line.starts_with("futex(") && line.contains("FUTEX_WAKE, 1");
                assert!(between.iter().all(is_wake), "{between:?}");
                assert!((between.len() as u64) < MAX_PACKETS, "{}", between.len());
            }
        }
        marks += at.len();
    }
    assert_eq!(marks, 2 * STATES);
}
