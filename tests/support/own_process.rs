//! A separate process for each test that needs one, under any test runner.
//!
//! A clock, a signal handler, a fork and the list of tracepoints belong to the whole process. cargo-nextest runs each test in a separate
//! process. `cargo test` runs the tests of a binary in threads of one process; there, [`own_process!`] runs the test again, alone.

use std::process::Command;
use std::{env, thread};

/// Set in the process that runs one test alone.
const ALONE: &str = "TEST_ALONE";

/// The test has passed in a separate process.
pub(crate) struct Passed;

impl From<Passed> for () {
    fn from(Passed: Passed) {}
}

impl<E> From<Passed> for Result<(), E> {
    fn from(Passed: Passed) -> Self {
        Ok(())
    }
}

/// Runs the calling test in a separate process, unless it already has one.
pub(crate) fn run() -> Option<Passed> {
    // Set by nextest. Both variables are inherited by the processes that a test starts.
    if env::var_os("NEXTEST").is_some() || env::var_os(ALONE).is_some() {
        return None;
    }
    let current = thread::current();
    let test = current.name().expect("the test runner names its threads after their tests");
    let program = env::current_exe().expect("the path of the test program");
    let output = Command::new(program).args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().expect("starts");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test}, alone in a process: {}", output.status);
    Some(Passed)
}

/// Continues in a process that runs only this test. Must be the first line of a test.
macro_rules! own_process {
    () => {
        if let Some(passed) = $crate::own_process::run() {
            return passed.into();
        }
    };
}
