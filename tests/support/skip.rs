//! Tests that cannot run on this machine fail, unless skipping is allowed.

use std::fs::OpenOptions;
use std::io::Write;
use std::{env, thread};

/// Allows tests to pass without running.
const ALLOWED: &str = "TRACEPOINT_ALLOW_SKIP";
/// A file to which each skipped test adds a line; `scripts/test.sh` and `scripts/ci.sh` count these.
const LIST: &str = "TRACEPOINT_SKIPPED";

/// Ends a test that cannot run on this machine: it lacks `missing`, and `remedy` describes how to provide it.
///
/// # Panics
///
/// Unless `TRACEPOINT_ALLOW_SKIP` is set.
pub(crate) fn skip(missing: &str, remedy: &str) {
    let current = thread::current();
    let test = current.name().unwrap_or("a test");
    assert!(
        env::var_os(ALLOWED).is_some(),
        "{test} cannot run here: {missing}. {remedy}, or set {ALLOWED}=1 to pass without it"
    );
    let line = format!("SKIPPED {test}: {missing}\n");
    eprint!("{line}");
    if let Some(list) = env::var_os(LIST) {
        let written = OpenOptions::new().append(true).create(true).open(list);
        written.and_then(|mut list| list.write_all(line.as_bytes())).expect("the list of skipped tests");
    }
}
