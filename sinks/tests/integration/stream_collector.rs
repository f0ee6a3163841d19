//! Streams a session's packets to a collector: a lost connection loses no packet, and no packet is stored twice.

#[path = "stream_collector/bandwidth.rs"]
mod bandwidth;
#[path = "stream_collector/collector.rs"]
mod collector;
#[path = "stream_collector/datagrams.rs"]
mod datagrams;
#[path = "stream_collector/flushed.rs"]
mod flushed;
#[path = "stream_collector/refused.rs"]
mod refused;
#[path = "stream_collector/unacknowledged.rs"]
mod unacknowledged;

use crate::common::{Outcome, Recording, alone, place, view};
use collector::Collector;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::account::{Account, StreamAccount};
use tracepoint_sinks::stream::{Destination, StreamOptions, StreamSink};
use tracepoint_wire::stream::NO_BOUND;

tracepoint::define_trace! {
    provider = "test";
    pub collected(n: u64) { n: u64 = n }
}

const LONG: Duration = Duration::from_secs(60);

fn options(collector: &Collector) -> StreamOptions {
    // The collector announces its data port.
    let to = Destination::new("127.0.0.1", collector.ports[0]);
    StreamOptions::to(to).sync_interval(Duration::from_millis(20)).flush(LONG)
}

fn config() -> Channel {
    Channel::discard(1 << 20).packets(64).overflow(0)
}

fn drain(recording: &mut Recording) {
    recording.drain.flush(Duration::ZERO);
    recording.drain.drain();
}

fn sum(account: &Account, of: fn(&StreamAccount) -> u64) -> u64 {
    account.channels.iter().flat_map(|channel| &channel.streams).map(of).sum()
}

/// Asserts that the collector has stored each value below `number` once.
fn assert_stored(collector: &Collector, number: u64) -> Outcome {
    let dir = place();
    collector.write(dir.path())?;
    let (text, warnings) = view(dir.path());
    assert_eq!(warnings, "");
    let values = text.lines().map(|line| line.rsplit_once("n = ").expect(line).1.trim_end_matches(" }").parse());
    let mut values = values.collect::<Result<Vec<u64>, _>>()?;
    values.sort_unstable();
    let twice = values.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let missing = (0..number).filter(|n| values.binary_search(n).is_err()).count();
    assert_eq!((values.len() as u64, missing, twice), (number, 0, 0));
    Ok(())
}

#[test]
fn a_collector_stores_the_packets_and_the_account() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    let sink = StreamSink::new(options(&collector))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    assert!(watch.stats().peer.is_some_and(|peer| peer.starts_with("a collector of a test")));
    let began = Instant::now();
    let mut number = 0;
    // Until times were promised: at least half a second after the first event.
    while collector.files().syncs.len() < 20 {
        assert!(began.elapsed() < LONG);
        thread::scope(|scope| {
            let first = number;
            scope.spawn(move || (first..first + 10).for_each(|n| tracepoint::trace!(collected(n))));
        });
        number += 10;
        drain(&mut recording);
        thread::sleep(Duration::from_millis(3));
    }
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!((sum(&report.account, |s| s.written), sum(&report.account, |s| s.sink)), (number, 0));
    assert_stored(&collector, number)?;
    let files = collector.files();
    assert_eq!((files.connections, files.duplicates), (1, 0));
    let account = Account::parse(&files.account)?;
    assert_eq!((sum(&account, |s| s.written), account.complete), (number, true));
    assert!(files.syncs.is_sorted_by(|a, b| a.number < b.number && a.time <= b.time));
    let last = files.syncs.last().expect("some");
    let expected = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos().cast_signed();
    let true_offset = expected - i128::from(tracepoint_ring::clock::now());
    assert!(last.bound != NO_BOUND && last.bound < 1_000_000_000, "{last:?}");
    let error = (i128::from(last.offset) - true_offset).unsigned_abs();
    assert!(error <= u128::from(last.bound) + 1_000_000, "{error} {last:?}, but for 1 ms between two readings here");
    Ok(())
}

#[test]
fn a_session_without_a_synchronisation_point_tells_the_alignment_of_its_clock() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    let sink = StreamSink::new(options(&collector).sync_interval(Duration::from_secs(60)))?;
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    tracepoint::trace!(collected(1));
    drain(&mut recording);
    // The answer to the first probe arrives at once.
    let began = Instant::now();
    while collector.files().streams.is_empty() {
        assert!(began.elapsed() < LONG);
        thread::sleep(Duration::from_millis(10));
        drain(&mut recording);
    }
    recording.finish();
    let files = collector.files();
    let last = files.syncs.last().expect("one at the end");
    assert!(last.bound != NO_BOUND && last.bound < 1_000_000_000, "{last:?}");
    Ok(())
}

#[test]
fn nothing_is_lost_or_stored_twice_when_connections_are_cut() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    let sink = StreamSink::new(options(&collector))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    let began = Instant::now();
    let mut number = 0;
    for connection in 1..=8 {
        while watch.stats().connections < connection {
            assert!(began.elapsed() < LONG, "{:?}", watch.stats());
            drain(&mut recording);
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..20 {
            (number..number + 500).for_each(|n| tracepoint::trace!(collected(n)));
            number += 500;
            drain(&mut recording);
        }
        collector.cut();
    }
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    let lost_in_rings = number - sum(&report.account, |s| s.recorded);
    assert_eq!((sum(&report.account, |s| s.sink), lost_in_rings), (0, 0), "rings were large enough");
    assert_stored(&collector, number)?;
    assert_eq!(collector.files().connections, 9);
    assert_eq!(sum(&Account::parse(&collector.files().account)?, |s| s.written), number);
    Ok(())
}

/// While nothing is acknowledged, memory is bounded, and packets stay in the rings.
#[test]
fn packets_stay_in_the_rings_while_the_window_is_full() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.acknowledges.store(false, Ordering::Relaxed);
    let sink = StreamSink::new(options(&collector).resend_buffer(100_000))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    let mut number = 0;
    for _ in 0..60 {
        (number..number + 600).for_each(|n| tracepoint::trace!(collected(n)));
        number += 600;
        drain(&mut recording);
        assert!(watch.stats().waiting <= 200_000, "{:?}", watch.stats());
    }
    assert_eq!(sum(&recording.drain.report()[0].account, |s| s.sink), 0);
    let began = Instant::now();
    while watch.stats().packets == 0 {
        assert!(began.elapsed() < LONG);
        thread::sleep(Duration::from_millis(1));
    }
    let sent = watch.stats().packets;
    // The rings hold all of these events; acknowledgements from now on free memory.
    collector.acknowledges.store(true, Ordering::Relaxed);
    collector.cut();
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    let recorded = sum(&report.account, |s| s.recorded);
    assert_eq!((recorded, sum(&report.account, |s| s.sink)), (number, 0));
    assert_stored(&collector, number)?;
    assert!(collector.files().duplicates <= sent);
    Ok(())
}
