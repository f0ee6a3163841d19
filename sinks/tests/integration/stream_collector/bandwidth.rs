//! Bandwidth caps, and the rate of datagrams.

use super::collector::Collector;
use super::datagrams::Lossy;
use super::{LONG, drain, options, sum};
use crate::common::{Outcome, Recording, alone};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::stream::{StreamOptions, StreamSink};

tracepoint::define_trace! {
    provider = "bandwidth";
    pub capped(n: u64) { n: u64 = n }
}

const CAP: u64 = 150_000;
/// Time that a sender may have saved up for a burst, and the size in bytes of one slice with its header.
const DEPTH: Duration = Duration::from_millis(100);
const SLICE: u64 = CAP / 100 + 100;
/// Number of received bytes, three seconds' worth, and of synchronisation points between parts of a packet, after which a test ends.
const ENOUGH: (usize, usize) = (3 * CAP as usize, 10);
/// Maximum number of events recorded at once: they fit in a ring.
const MAX_AT_ONCE: u64 = 20_000;
const EVENT_SIZE: u64 = 16;

/// Returns what a sender that began at `began` may have sent by `time`. A collector that is scheduled late has received less.
fn max_until(began: Instant, time: Instant) -> u64 {
    let nanos = (time - began + DEPTH).as_nanos() as u64;
    CAP * nanos / 1_000_000_000 + SLICE
}

/// Records four times as much as the cap allows.
fn stays_below_the_cap(change: fn(StreamOptions) -> StreamOptions) -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    let pause = Duration::from_millis(100);
    let began = Instant::now();
    let sink = StreamSink::new(change(options(&collector).sync_interval(pause).max_bandwidth(CAP)))?;
    let mut recording = Recording::start(Channel::discard(1 << 20).packets(16).overflow(0), vec![Box::new(sink)])?;
    let mut number = 0;
    let progress = || {
        let files = collector.files();
        (files.received.iter().map(|(_, bytes)| bytes).sum::<usize>(), files.between_parts)
    };
    loop {
        let (bytes, points) = progress();
        // Synchronisation points do not wait for packets: some arrive between the parts of one.
        if bytes >= ENOUGH.0 && points >= ENOUGH.1 {
            break;
        }
        assert!(began.elapsed() < LONG, "{bytes} bytes, {points} points between parts of a packet");
        let due = 4 * CAP * began.elapsed().as_millis() as u64 / 1000 / EVENT_SIZE;
        let until = due.min(number + MAX_AT_ONCE);
        (number..until).for_each(|n| tracepoint::trace!(capped(n)));
        number = until;
        drain(&mut recording);
        thread::sleep(Duration::from_millis(10));
    }
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    let files = collector.files();
    let mut sum_of_bytes = 0;
    for (time, bytes) in &files.received {
        sum_of_bytes += *bytes as u64;
        let max = max_until(began, *time);
        assert!(sum_of_bytes <= max, "{sum_of_bytes} of {max} bytes within {:?}", *time - began);
    }
    // Events that are no longer in the rings were sent or counted as lost.
    let lost = Account::parse(&files.account)?;
    let by_cap: u64 = lost.channels.iter().flat_map(|c| &c.streams).filter_map(|s| s.sink_lost.get("bandwidth")).sum();
    assert_eq!((by_cap, sum(&lost, |s| s.written) + by_cap), (sum(&lost, |s| s.sink), number));
    assert!(by_cap > 0, "the cap is below what is recorded");
    Ok(())
}

#[test]
fn a_cap_holds_over_tcp() -> Outcome {
    stays_below_the_cap(|options| options)
}

#[test]
fn a_cap_holds_over_udp() -> Outcome {
    stays_below_the_cap(|options| options.udp(1400))
}

/// A packet takes a second at the cap. The collector gives up requested packets after a while.
#[test]
fn what_is_sent_again_does_not_wait_for_the_end_of_a_packet() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.files().lossy = Some(Lossy::default());
    let options = options(&collector).udp(1400).max_bandwidth(64 << 10).sync_interval(Duration::from_secs(30));
    let mut recording =
        Recording::start(Channel::discard(1 << 20).packets(16).overflow(0), vec![Box::new(StreamSink::new(options)?)])?;
    (0..8000).for_each(|n| tracepoint::trace!(capped(n)));
    drain(&mut recording);
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!((sum(&report.account, |s| s.written), sum(&report.account, |s| s.sink)), (8000, 0));
    let interrupted = collector.files().lossy.as_ref().and_then(|lossy| lossy.interrupted);
    let (had_come, all) = interrupted.ok_or("nothing was sent again while another packet was sent")?;
    assert!(had_come > 0 && had_come < all, "{had_come} of {all} bytes had come");
    Ok(())
}

#[test]
fn a_cap_that_is_too_small_is_refused() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    let sink = StreamSink::new(options(&collector).max_bandwidth(100))?;
    let error = Recording::start(Channel::discard(1 << 20).packets(16).overflow(0), vec![Box::new(sink)]);
    let error = error.err().ok_or("it is accepted")?.to_string();
    assert!(error.contains("more than 10 s") && error.contains("`--max-bandwidth` to at least 6554"), "{error}");
    Ok(())
}
