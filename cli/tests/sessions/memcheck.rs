//! A program under valgrind's memcheck, once with a session in its code, and once with a session attached by `tracectl record`.

use super::{Outcome, Place, TRACED, is_traced, paid, program, viewed};
use std::env;
use std::fs;
use std::process::Command;
use tracepoint_session::Session;
use tracepoint_session::sinks::TextSink;

#[test]
fn sessions_work_under_memcheck_without_an_error() -> Outcome {
    if env::var_os(TRACED).is_some() {
        let session = Session::builder("own").events("shop:paid").sink(TextSink::new(std::io::sink())).start()?;
        (0..20).for_each(|n| tracepoint::trace!(paid(n)));
        let account = session.stop()?;
        assert_eq!(account.events().iter().map(|event| event.recorded).sum::<u64>(), 20, "{account:?}");
        assert!(is_traced());
        return Ok(());
    }
    let place = Place::new();
    let log = place.path("memcheck");
    let plain = program("memcheck::sessions_work_under_memcheck_without_an_error", 0);
    let mut command = Command::new("valgrind");
    command.arg("--quiet").arg(format!("--log-file={}", log.display())).arg(plain.get_program());
    command.args(plain.get_args()).envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut traced = place.start_as(command);
    let pid = traced.0.id().to_string();
    // Under valgrind a process may take longer to acknowledge than `record` waits without being asked.
    let record = ["record", "-e", "shop:paid", "-p", &pid, "--duration", "300ms", "-o", "out", "--timeout", "2m"];
    place.well(&record);
    assert!(viewed(&place.path("out"), " shop:paid: ") > 0);
    place.verifies("out");
    // Its status is that of the test runner, whose output is no longer read.
    drop(traced.0.stdin.take());
    traced.0.wait()?;
    let log = fs::read_to_string(log)?;
    // Lines with `--` are valgrind's own messages, for example about unknown system calls.
    assert!(!log.lines().any(|line| line.starts_with("==")), "{log}");
    Ok(())
}
