//! A sink that blocks for a while causes no losses: threads whose rings are full continue in further ones, which survive a kill.

use crate::common::{Outcome, again, assert_balances, event, lost, memory_place, part, ready, until_ready, view};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::Duration;
use tracepoint_ring::channel::Packet;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};
use tracepoint_sinks::{Sink, SinkError, StreamInfo};

tracepoint::define_trace! {
    provider = "overflow";
    pub step(n: u64) { n: u64 = n }
}

/// A sink that reports its first packet with records, and blocks in it until it is released.
struct Stuck {
    reached: Sender<()>,
    go: Receiver<()>,
}

impl Sink for Stuck {
    fn name(&self) -> String {
        "stuck".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        if packet.events_after > packet.events_before {
            // Both fail once the test has released the sink: it does not block any more.
            let _ = self.reached.send(());
            let _ = self.go.recv();
        }
        Ok(())
    }
}

const RING: usize = 64 << 10;
/// Number of events that fill a quarter of a ring.
const QUARTER: u64 = RING as u64 / 4 / 16;
/// Three rings.
const QUARTERS: u64 = 12;
/// Much longer than an interval of the thread that creates rings.
const PAUSE: Duration = Duration::from_millis(100);

/// Fires while the sink blocks, with rings and a trace in `place`. Returns the session, and the sender that releases the sink.
fn fire_against_a_stuck_sink(
    overflow: usize,
    place: &Path,
) -> Result<(Session, Sender<()>), Box<dyn std::error::Error>> {
    let (reached, has_reached) = channel();
    let (go, wait) = channel();
    let session = Session::builder("overflow")
        .events("overflow:*")
        .channel(Channel::discard(RING).overflow(overflow))
        .dir(place.join("session"))
        .sink(CtfSink::create(place.join("trace"))?)
        .sink(Stuck { reached, go: wait })
        .start()?;
    let mut fired = 0;
    let mut fire = |events: u64| {
        (fired..fired + events).for_each(|n| tracepoint::trace!(step(n)));
        fired += events;
    };
    // An open packet is moved to the sink when it is half a second old.
    fire(1);
    has_reached.recv()?;
    for _ in 0..QUARTERS {
        fire(QUARTER);
        sleep(PAUSE);
    }
    Ok((session, go))
}

/// The same, then stops: returns the number of events that were fired, recorded, and lost.
fn counts_of(overflow: usize) -> Result<[u64; 3], Box<dyn std::error::Error>> {
    let place = memory_place();
    let (session, go) = fire_against_a_stuck_sink(overflow, place.path())?;
    drop(go);
    let summary = session.stop()?;
    let event = event(&summary, "overflow:step");
    let dir = place.path().join("trace");
    assert_balances(&dir);
    let viewed = view(&[&dir]);
    assert_eq!(viewed.lines.len() as u64, event.recorded);
    let number =
        |line: &String| line.rsplit_once("n = ").and_then(|(_, n)| n.trim_end_matches(" }").parse::<u64>().ok());
    assert!(viewed.lines.iter().map(number).is_sorted(), "in the order in which they were fired");
    Ok([event.fired, event.recorded, lost(event)])
}

#[test]
fn a_stuck_sink_costs_no_event() -> Outcome {
    own_process!();
    let [fired, recorded, lost] = counts_of(1 << 20)?;
    assert_eq!((fired, recorded, lost), (1 + QUARTERS * QUARTER, fired, 0));
    Ok(())
}

/// Beyond the limit events are lost and counted, and all kept events are written.
#[test]
fn beyond_the_limit_events_are_lost() -> Outcome {
    own_process!();
    for overflow in [0, RING] {
        let [fired, recorded, lost] = counts_of(overflow)?;
        assert!(lost > 0 && recorded + lost == fired, "{overflow}: {fired} fired, {recorded} recorded, {lost} lost");
        assert!(recorded >= QUARTER * 3 + overflow as u64 / 32, "{overflow}: {recorded}");
    }
    Ok(())
}

/// Events that wait in the overflow are in rings, so none is lost with the process.
#[test]
fn a_killed_process_keeps_what_is_in_its_overflow() -> Outcome {
    own_process!();
    let part = part();
    if !part.is_empty() {
        let _recording = fire_against_a_stuck_sink(1 << 20, Path::new(&part))?;
        ready();
        return Ok(());
    }
    let place = memory_place();
    let test = "a_killed_process_keeps_what_is_in_its_overflow";
    let mut child = until_ready(&mut again(test, &place.path().display().to_string()));
    child.kill();
    let out = place.path().join("recovered");
    let recovered = tracepoint_reader::recover(&place.path().join("session"), &out)?;
    assert!(recovered.is_complete(), "{recovered:?}");
    assert_balances(&out);
    let account = tracepoint_reader::account::Account::open(&out)?;
    let streams = || account.channels.iter().flat_map(|channel| &channel.streams);
    let [written, lost] = [
        streams().map(|stream| stream.written).sum::<u64>(),
        streams().map(|stream| stream.sink + stream.discarded).sum(),
    ];
    assert_eq!((written, lost), (1 + QUARTERS * QUARTER, 0));
    assert!(streams().filter(|stream| stream.written > 0).count() >= 3, "{account:?}");
    Ok(())
}

/// A disk that is delayed once, for this long.
struct Late(Option<Duration>);

impl Sink for Late {
    fn name(&self) -> String {
        "late".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        if packet.events_after > packet.events_before {
            self.0.take().into_iter().for_each(sleep);
        }
        Ok(())
    }
}

/// At 100,000 events a second, by default.
#[test]
fn a_late_write_costs_no_event() -> Outcome {
    own_process!();
    for late in [200, 300, 400].map(Duration::from_millis) {
        let session = Session::builder("late").events("overflow:*").in_memory().sink(Late(Some(late))).start()?;
        for n in 0..1_000 {
            (0..100).for_each(|m| tracepoint::trace!(step(n * 100 + m)));
            sleep(Duration::from_millis(1));
        }
        let summary = session.stop()?;
        let event = event(&summary, "overflow:step");
        assert_eq!((event.recorded, lost(event)), (100_000, 0), "{late:?}");
    }
    Ok(())
}
