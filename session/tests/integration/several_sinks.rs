//! A sink that fails, even by a panic, is reported, and the other sinks are still complete.

use crate::common::{Outcome, assert_balances, event, place, view};
use tracepoint_session::sinks::account::Account;
use tracepoint_session::sinks::{CtfSink, Sink, SinkError, StreamInfo, TextSink};
use tracepoint_session::{Session, SessionError};

tracepoint::define_trace! {
    provider = "many";
    pub event(n: u32) { n: u32 = n }
}

/// Panics at the first packet.
struct Panics;

impl Sink for Panics {
    fn name(&self) -> String {
        "panics".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, _: &tracepoint_ring::channel::Packet<'_>) -> Result<(), SinkError> {
        panic!("a sink of somebody else's");
    }

    fn finish(&mut self, _: &Account) -> Result<(), SinkError> {
        unreachable!("it is not called again")
    }
}

#[test]
fn a_failing_sink_does_not_affect_the_others() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full")?;
    let builder =
        Session::builder("many").events("many:*").sink(Panics).sink(TextSink::new(full)).sink(CtfSink::create(&dir)?);
    let session = builder.start()?;
    (0..10).for_each(|n| tracepoint::trace!(event(n)));
    let error = session.stop().err().ok_or("two sinks failed")?;
    let SessionError::Sinks { failures, summary } = &error else { return Err(error.into()) };
    assert_eq!(failures.iter().map(|failure| failure.sink.as_str()).collect::<Vec<_>>(), ["panics", "text"]);
    assert!(error.to_string().contains("last 10 lines are missing: No space left"), "{error}");
    assert_eq!(event(summary, "many:event").recorded, 10);
    let of_panics = &summary.accounts[0].1.channels[0].streams[0];
    assert_eq!((of_panics.recorded, of_panics.written, of_panics.sink), (10, 0, 10));
    let viewed = view(&[&dir]);
    assert_eq!((viewed.lines.len(), viewed.warnings.as_str()), (10, ""));
    assert_balances(&dir);
    Ok(())
}
