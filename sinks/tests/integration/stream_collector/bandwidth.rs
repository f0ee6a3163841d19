//! Bandwidth caps, and the rate of datagrams.

use super::collector::Collector;
use super::datagrams::Lossy;
use super::{drain, options, sum};
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
const WINDOW: Duration = Duration::from_secs(10);

/// Returns the maximum number of bytes received within a window.
fn most_in_a_window(received: &[(Instant, usize)]) -> usize {
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for (time, bytes) in received {
        sum += bytes;
        while *time - received[first].0 > WINDOW {
            sum -= received[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

/// Records much more than the cap for longer than a window.
fn stays_below_the_cap(change: fn(StreamOptions) -> StreamOptions) -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    let pause = Duration::from_millis(100);
    let sink = StreamSink::new(change(options(&collector).sync_interval(pause).max_bandwidth(CAP)))?;
    let mut recording = Recording::start(Channel::discard(1 << 20).packets(16).overflow(0), vec![Box::new(sink)])?;
    let (began, mut number) = (Instant::now(), 0);
    while began.elapsed() < WINDOW + Duration::from_secs(2) {
        (number..number + 400).for_each(|n| tracepoint::trace!(capped(n)));
        number += 400;
        drain(&mut recording);
        thread::sleep(Duration::from_millis(10));
    }
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    let files = collector.files();
    let (most, all) = (most_in_a_window(&files.received), files.received.iter().map(|(_, bytes)| bytes).sum::<usize>());
    assert!(most as u64 <= CAP * 10 * 105 / 100, "{most} bytes within {WINDOW:?}");
    assert!(all as u64 >= CAP * 10 / 2, "the cap is used: {all} bytes");
    // Events that are no longer in the rings were sent or counted as lost.
    let lost = Account::parse(&files.account)?;
    let by_cap: u64 = lost.channels.iter().flat_map(|c| &c.streams).filter_map(|s| s.sink_lost.get("bandwidth")).sum();
    assert_eq!((by_cap, sum(&lost, |s| s.written) + by_cap), (sum(&lost, |s| s.sink), number));
    assert!(by_cap > number / 2, "{by_cap} of {number}");
    // Synchronisation points do not wait for packets.
    let longest = files.sync_times.windows(2).map(|pair| pair[1] - pair[0]).max().expect("some");
    assert!(files.overtaken * 4 < files.syncs.len(), "{} promise a packet that waits for the cap", files.overtaken);
    assert!(files.syncs.len() > 50 && longest < Duration::from_secs(3), "{} {longest:?}", files.syncs.len());
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
