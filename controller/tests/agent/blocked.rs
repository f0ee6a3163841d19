//! A sink that blocks forever, as on a disk that hangs.

use crate::common::{Outcome, again, until_ready};
use crate::traced::{PATIENCE, Place, is_traced, spec, until};
use std::io::{BufRead, BufReader, pipe};
use std::thread;
use std::time::Duration;
use tracepoint_run_dir::AckState;
use tracepoint_session_spec::{SinkSpec, State};

/// The other sessions continue, and the blocked one can be stopped.
#[test]
fn a_blocked_sink_does_not_delay_other_sessions() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut command = again("blocked::a_blocked_sink_does_not_delay_other_sessions", "traced");
    // The standard error of the process is not read.
    let (reader, writer) = pipe()?;
    let process = until_ready(command.env("TRACEPOINT_RUN_DIR", place.run_dir()).stderr(writer));
    drop(command);
    let blocked = place.controller.create("blocked", &spec(&["traced:tick"], &[SinkSpec::standard_error().into()]))?;
    let ack = until(&place, &blocked, |ack| {
        ack.notices.iter().any(|notice| notice.to_string().contains("one of them blocks"))
    })?;
    assert_eq!((ack.state, ack.error), (AckState::Recording, None));

    let other = place.record("other", &["traced:tock"]);
    place.until_recorded(&other, 20);
    let generation = blocked.change("stop", |spec| {
        spec.state = State::Stopped;
        Ok(())
    })?;
    let ack = until(&place, &blocked, |ack| ack.generation >= generation)?;
    assert_eq!(ack.state, AckState::Ending);
    // Waiting for the end uses the whole timeout; the process has answered nevertheless.
    assert!(blocked.wait(generation, Duration::from_millis(50))?.silent.is_empty());
    assert!(ack.error.as_ref().is_some_and(|error| error.contains("slow or blocked")), "{ack:?}");
    assert!(!place.on().iter().any(|name| name == "traced:tick"), "it is off");
    place.until_recorded(&other, 20);

    // All recorded events arrive once the pipe is read.
    let lines = thread::spawn(|| {
        let lines = BufReader::new(reader).lines().map_while(Result::ok);
        lines.filter(|line| line.contains("traced:tick")).count()
    });
    let ack = until(&place, &blocked, |ack| ack.state == AckState::Ended)?;
    assert_eq!((ack.error, ack.counters.total_lost()), (None, 0));
    blocked.destroy(PATIENCE, false)?;
    other.destroy(PATIENCE, false)?;
    assert!(process.end(), "it ends well");
    assert_eq!(lines.join().map_err(|_| "the reader")? as u64, ack.counters.recorded);
    Ok(())
}
