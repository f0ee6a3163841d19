//! The whole path: one session, one event, read back by babeltrace2 and by the reader.

use crate::common::{Outcome, assert_balances, event, place, view};
use tracepoint_session::Session;
use tracepoint_session::sinks::CtfSink;

tracepoint::define_trace! {
    provider = "shop";
    /// A customer paid.
    #[level(Info)]
    pub paid(cents: u64, by: &str) { cents: u64 = cents, by: str = by }
    /// No rule selects this one.
    pub looked(at: u64) { at: u64 = at }
    /// For another test, whose session does not see the others.
    sold(cents: u64) { cents: u64 = cents }
}

#[test]
fn an_event_is_recorded_and_read_back() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("some/trace");
    tracepoint::trace!(paid(1, "before"));
    let session = Session::builder("purchases").events("shop:p*").sink(CtfSink::create(&dir)?).start()?;
    assert_eq!(session.notices(), []);
    tracepoint::trace!(paid(1250, "Ada"));
    tracepoint::trace!(looked(1));
    assert_eq!(session.status().events()[0].fired, 1);
    let summary = session.stop()?;
    tracepoint::trace!(paid(2, "after"));

    assert_eq!(summary.events().len(), 1);
    let paid = event(&summary, "shop:paid");
    assert_eq!((paid.fired, paid.recorded), (1, 1));
    let viewed = view(&[&dir]);
    assert_eq!(viewed.warnings, "");
    assert_eq!(viewed.lines.len(), 1);
    assert!(viewed.lines[0].contains("shop:paid: "), "{}", viewed.lines[0]);
    assert!(viewed.lines[0].ends_with("{ cents = 1250, by = \"Ada\" }"), "{}", viewed.lines[0]);
    assert_balances(&dir);
    Ok(())
}

/// A thread that fires once and then waits: its event reaches the sink while the session runs.
#[test]
fn rare_events_reach_the_sink_without_a_stop() -> Outcome {
    own_process!();
    let place = place();
    let trace = place.path().join("trace");
    let session = Session::builder("trickle").events("shop:sold").in_memory().sink(CtfSink::create(&trace)?).start()?;
    tracepoint::trace!(sold(7));
    // Without a time limit.
    while session.status().bytes() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // The stream of the ring that the thread has got.
    let streams = std::fs::read_dir(&trace)?.filter_map(Result::ok);
    let streams = streams.filter(|file| file.file_name().to_string_lossy().starts_with("channel0_"));
    let longest = streams.filter_map(|file| Some(file.metadata().ok()?.len())).max();
    assert!(longest > Some(96), "a packet with a record behind the empty one: {longest:?}");
    session.stop()?;
    Ok(())
}
