//! Processes that start and stop under one name at the same time create and remove the same directories, and all succeed.

use crate::common::{Outcome, again, memory_place, names, part};
use std::process::Child;
use tracepoint_session::sinks::TextSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "at_once";
    pub here(n: u64) { n: u64 = n }
}

const PROCESSES: usize = 4;
const SESSIONS: u64 = 50;

#[test]
fn concurrent_session_starts_are_independent() -> Outcome {
    own_process!();
    if part() == "records" {
        for n in 0..SESSIONS {
            let channel = Channel::discard(8 << 10).spares(1);
            let session = Session::builder("crowd")
                .events("at_once:*")
                .channel(channel)
                .sink(TextSink::new(Vec::new()))
                .start()?;
            tracepoint::trace!(here(n));
            assert_eq!(session.stop()?.events()[0].recorded, 1);
        }
        return Ok(());
    }
    let place = memory_place();
    let run = place.path().join("run");
    let start =
        |_| again("concurrent_session_starts_are_independent", "records").env("TRACEPOINT_RUN_DIR", &run).spawn();
    let children: Vec<Child> = (0..PROCESSES).map(start).collect::<Result<_, _>>()?;
    for mut child in children {
        assert!(child.wait()?.success());
    }
    assert_eq!(names(&run.join("sessions")), Vec::<String>::new());
    Ok(())
}
