//! Events wake a sleeping drain while their ring fills up, and only then.

use crate::common::{Outcome, assert_balances, event, lost, place};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};
use tracepoint_session_spec::Rule;

tracepoint::define_trace! {
    provider = "wake";
    pub burst(n: u64, m: u64) { n: u64 = n, m: u64 = m }
}

/// The size of a record, and a number of events that fills more than half of a ring and less than all of it.
const RECORD: usize = 24;
const RING: usize = 1 << 20;
const BURST: u64 = (RING * 5 / 8 / RECORD) as u64;
/// Number of bursts that have to wake the drain, and number that are tried: during some, the drain runs by itself.
const WAKES: u64 = 3;
const TRIES: u64 = 40;

fn session(channel: Channel, dir: &std::path::Path) -> Result<Session, Box<dyn std::error::Error>> {
    Ok(Session::builder("wake").events("wake:*").channel(channel).in_memory().sink(CtfSink::create(dir)?).start()?)
}

/// Waits until the drain has been idle for so long that its interval is the maximum.
fn rest(session: &Session) {
    let quiet = |session: &Session| session.status().drain;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let before = quiet(session);
        sleep(Duration::from_millis(500));
        // At the maximum interval there are five rounds a second.
        if quiet(session).rounds - before.rounds <= 4 {
            return;
        }
    }
    panic!("the drain does not come to rest: {:?}", quiet(session));
}

/// Waits until all closed packets were taken.
fn await_bytes(session: &Session, events: u64) {
    let begun = Instant::now();
    while session.status().bytes() < events * RECORD as u64 * 3 / 4 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", session.status().drain);
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_burst_wakes_a_drain_at_rest() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let session = session(Channel::discard(RING), &dir)?;
    let (mut woken, mut bursts) = (0, 0);
    while woken < WAKES {
        assert!(bursts < TRIES, "{woken} of {bursts} bursts woke the drain: {:?}", session.status().drain);
        rest(&session);
        let before = session.status().drain.woken;
        (0..BURST).for_each(|n| tracepoint::trace!(burst(n, n)));
        bursts += 1;
        await_bytes(&session, bursts * BURST);
        woken += u64::from(session.status().drain.woken > before);
    }
    let summary = session.stop()?;
    let event = event(&summary, "wake:burst");
    assert_eq!((event.recorded, lost(event)), (bursts * BURST, 0));
    assert_balances(&dir);
    Ok(())
}

/// No event wakes the drain for such a channel, so it has to run within the time for which events wait.
#[test]
fn a_channel_that_is_added_and_waits_shortens_the_intervals() -> Outcome {
    own_process!();
    let place = place();
    let session = session(Channel::discard(RING), &place.path().join("trace"))?;
    rest(&session);
    session.add_channel(Channel::wait(8 << 10, Duration::from_millis(40)).packets(4).no_wake().name("waits"))?;
    let rounds = || session.status().drain.rounds;
    let begun = Instant::now();
    loop {
        let (since, before) = (Instant::now(), rounds());
        while rounds() - before < 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", session.status().drain);
            sleep(Duration::from_millis(1));
        }
        // At intervals of 200 ms, 20 rounds never take less than 3.8 s. A drain that is scheduled late may take as long at times.
        if since.elapsed() < Duration::from_secs(2) {
            break;
        }
    }
    session.enable(Rule::new("wake:burst").channel("waits"))?;
    // Rings that hold less than a twentieth of that.
    (0..BURST / 4).for_each(|n| tracepoint::trace!(burst(n, n)));
    session.remove_channel("waits")?;
    rest(&session);
    let summary = session.stop()?;
    let waited = summary.account().and_then(|account| account.channels.iter().find(|channel| channel.name == "waits"));
    let event = &waited.ok_or("no channel")?.events[0];
    assert_eq!((event.fired, event.fired), (BURST / 4, event.recorded + lost(event)));
    assert!(event.recorded > BURST / 8, "it was drained while events waited: {event:?}");
    Ok(())
}

#[test]
fn less_than_half_a_ring_wakes_nothing() -> Outcome {
    own_process!();
    let place = place();
    let session = session(Channel::discard(RING), &place.path().join("trace"))?;
    rest(&session);
    let before = session.status().drain.woken;
    (0..BURST / 2).for_each(|n| tracepoint::trace!(burst(n, n)));
    await_bytes(&session, BURST / 2);
    assert_eq!(session.status().drain.woken, before);
    session.stop()?;
    Ok(())
}

/// If disabled, the drain runs only at its own intervals.
#[test]
fn no_wake_wakes_nothing() -> Outcome {
    own_process!();
    let place = place();
    let session = session(Channel::discard(RING).no_wake(), &place.path().join("trace"))?;
    rest(&session);
    let before = session.status().drain.woken;
    (0..BURST).for_each(|n| tracepoint::trace!(burst(n, n)));
    await_bytes(&session, BURST);
    assert_eq!(session.status().drain.woken, before);
    session.stop()?;
    Ok(())
}
