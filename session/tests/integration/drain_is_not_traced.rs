//! A sink that traces: the events that it fires on the session's own thread are not recorded, because they would cause further events
//! without end.

use crate::common::{Outcome, event};
use std::io::{self, Write};
use std::time::Duration;
use tracepoint_session::Session;
use tracepoint_session::sinks::TextSink;

tracepoint::define_trace! {
    provider = "feedback";
    pub wrote(bytes: u64) { bytes: u64 = bytes }
    pub real(n: u64) { n: u64 = n }
}

struct Traced;

impl Write for Traced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        tracepoint::trace!(wrote(bytes.len() as u64));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_drain_thread_is_not_traced() -> Outcome {
    own_process!();
    let unserved = tracepoint::runtime::unserved_events();
    let sink = TextSink::new(Traced).pending(1);
    let session = Session::builder("feedback").events("feedback:*").sink(sink).start()?;
    for n in 0..50_000 {
        tracepoint::trace!(real(n));
    }
    std::thread::sleep(Duration::from_millis(100));
    let status = session.status();
    let wrote = status.events().iter().find(|event| event.name == "feedback:wrote").map_or(0, |event| event.fired);
    assert_eq!(wrote, 0, "nothing that the drain does is an event");
    assert!(status.sinks.iter().any(|sink| sink.bytes > 0), "it did write");
    let summary = session.stop()?;
    assert_eq!(event(&summary, "feedback:real").fired, 50_000);
    assert_eq!(tracepoint::runtime::unserved_events(), unserved, "nor is it counted as not served");
    Ok(())
}
