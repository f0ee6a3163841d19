//! Packets that the collector has not acknowledged are not recorded, however the recording ends.

use super::collector::Collector;
use super::{LONG, config, drain, options, sum};
use crate::common::{Outcome, Recording, alone};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_sinks::account::Account;
use tracepoint_sinks::stream::StreamSink;
use tracepoint_wire::stream::ErrorCode;

tracepoint::define_trace! {
    provider = "unacknowledged";
    pub underway(n: u64) { n: u64 = n }
}

const FLUSH: Duration = Duration::from_millis(200);
const EVENTS: u64 = 3000;

fn wait_for(recording: &mut Recording, is_so: &dyn Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG);
        drain(recording);
        thread::sleep(Duration::from_millis(2));
    }
}

/// Without a resend buffer, packets are freed when they are sent, but they count.
#[test]
fn what_a_collector_that_is_gone_has_not_acknowledged_is_lost() -> Outcome {
    let _alone = alone();
    for resend_buffer in [16 << 20, 0] {
        let collector = Collector::start();
        let sink = StreamSink::new(options(&collector).flush(FLUSH).resend_buffer(resend_buffer))?;
        let watch = sink.watch();
        let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
        (0..EVENTS).for_each(|n| tracepoint::trace!(underway(n)));
        let acknowledged = || watch.stats().acknowledged.values().sum::<u64>();
        wait_for(&mut recording, &|| acknowledged() > 0 && watch.stats().unacknowledged == 0);
        let known = acknowledged();
        collector.acknowledges.store(false, Ordering::Relaxed);
        let packets = || collector.files().streams.values().map(|stream| stream.packets.len()).sum::<usize>();
        let stored = packets();
        (0..EVENTS).for_each(|n| tracepoint::trace!(underway(n)));
        wait_for(&mut recording, &|| packets() > stored);
        assert!(watch.stats().unacknowledged > 0 && watch.stats().lost.is_empty(), "{:?}", watch.stats());
        collector.files().refusal = Some((ErrorCode::Ending, "it ends"));
        collector.cut();
        let report = recording.finish().remove(0);
        let [written, lost, packets, before] = [
            sum(&report.account, |stream| stream.written),
            sum(&report.account, |stream| stream.sink_lost["network"]),
            sum(&report.account, |stream| stream.sink_packets),
            sum(&report.account, |stream| stream.packets),
        ];
        assert_eq!((written, lost), (known, 2 * EVENTS - known));
        assert!(packets > 0 && before > 0, "{:?}", report.account);
        assert!(report.error.is_some());
    }
    Ok(())
}

/// When the time is over, the sender asks the collector which packets it has.
#[test]
fn what_the_collector_has_at_the_end_is_recorded() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.acknowledges.store(false, Ordering::Relaxed);
    collector.files().waits_at_end = true;
    let sink = StreamSink::new(options(&collector).flush(FLUSH))?;
    let recording = Recording::start(config(), vec![Box::new(sink)])?;
    (0..EVENTS).for_each(|n| tracepoint::trace!(underway(n)));
    let report = recording.finish().remove(0);
    let own = |account: &Account| {
        [
            sum(account, |stream| stream.written),
            sum(account, |stream| stream.sink),
            sum(account, |stream| stream.packets),
        ]
    };
    let files = collector.files();
    let packets = files.streams.values().map(|stream| stream.packets.len() as u64).sum();
    assert_eq!(own(&report.account), [EVENTS, 0, packets]);
    assert_eq!(own(&Account::parse(&files.account)?), own(&report.account));
    assert!(report.error.is_none(), "{:?}", report.error);
    Ok(())
}

/// The collector has stored everything, and the connection is lost before it has reported that. The time is over before it answers on the next one.
#[test]
fn what_the_collector_has_of_streams_that_are_not_announced_again_is_recorded() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.acknowledges.store(false, Ordering::Relaxed);
    let sink = StreamSink::new(options(&collector).flush(FLUSH))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    (0..EVENTS).for_each(|n| tracepoint::trace!(underway(n)));
    let packets = || collector.files().streams.values().map(|stream| stream.packets.len() as u64).sum::<u64>();
    let is_stored = || {
        let stats = watch.stats();
        // The waiting packets are larger than the sent ones by less than one packet's memory: none waits to be sent.
        let is_sent = stats.unacknowledged == EVENTS && stats.waiting < stats.bytes + 4096;
        is_sent && stats.packets == packets()
    };
    wait_for(&mut recording, &is_stored);
    collector.files().waits_at_end = true;
    collector.files().announces_after = 3 * FLUSH;
    collector.cut();
    wait_for(&mut recording, &|| watch.stats().connections == 2);
    let report = recording.finish().remove(0);
    let own = [
        sum(&report.account, |stream| stream.written),
        sum(&report.account, |stream| stream.sink),
        sum(&report.account, |stream| stream.packets),
    ];
    assert_eq!(own, [EVENTS, 0, packets()], "{:?}", report.account);
    Ok(())
}

/// The other streams continue.
#[test]
fn a_stream_for_which_the_collector_has_no_room_is_lost_alone() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.files().room = Some(1);
    let sink = StreamSink::new(options(&collector))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    let fire = || (0..EVENTS).for_each(|n| tracepoint::trace!(underway(n)));
    fire();
    wait_for(&mut recording, &|| watch.stats().acknowledged.values().sum::<u64>() == EVENTS);
    thread::spawn(fire).join().expect("no panic");
    wait_for(&mut recording, &|| watch.stats().lost.get("refused") == Some(&EVENTS));
    assert!(watch.stats().trouble.is_some_and(|why| why == "the collector refuses a stream: there is no room"));
    fire();
    let report = recording.finish().remove(0);
    let own = [
        sum(&report.account, |stream| stream.written),
        sum(&report.account, |stream| stream.sink_lost.get("refused").copied().unwrap_or_default()),
        sum(&report.account, |stream| stream.sink),
    ];
    assert_eq!(own, [2 * EVENTS, EVENTS, EVENTS], "{:?}", report.account);
    assert_eq!(collector.files().streams.len(), 1);
    Ok(())
}
