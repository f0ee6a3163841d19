//! Reports of a sender about a collector that it cannot stream to, and about one whose clock is far off.

use super::collector::Collector;
use super::{LONG, config, drain, options};
use crate::common::{Outcome, Recording, alone};
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_sinks::stream::{Destination, StreamOptions, StreamSink};
use tracepoint_wire::stream::ErrorCode;

tracepoint::define_trace! {
    provider = "refused";
    pub given_up(n: u64) { n: u64 = n }
}

/// An hour, in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

/// Returns the reason why a recording with this sink does not begin.
fn refusal(options: StreamOptions) -> Result<String, Box<dyn std::error::Error>> {
    let recording = Recording::start(config(), vec![Box::new(StreamSink::new(options)?)]);
    Ok(recording.err().ok_or("it began")?.to_string())
}

/// Another attempt would not help, so none is made despite `retry`, and there is no advice to start a collector.
#[test]
fn another_version_is_told_at_once() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.files().refusal = Some((ErrorCode::Version, "the sender speaks version 1, and this collector 7"));
    let told = refusal(options(&collector).retry(LONG))?;
    assert!(
        told.ends_with("the collector refuses: the sender speaks version 1, and this collector 7 (error 1)"),
        "{told}"
    );
    assert_eq!(collector.files().connections, 1);
    let collector = Collector::start();
    collector.files().version = Some(7);
    let told = refusal(options(&collector).retry(LONG))?;
    assert!(told.ends_with("the collector speaks version 7, and this sender 1"), "{told}");
    assert_eq!(collector.files().connections, 1);
    Ok(())
}

#[test]
fn refused_ports_are_named_with_the_mend() -> Outcome {
    let _alone = alone();
    let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let told = refusal(StreamOptions::to(Destination::new("127.0.0.1", free)))?;
    assert!(told.contains(&format!("stream to 127.0.0.1:{free}: Connection refused")), "{told}");
    assert!(told.contains("; start `tracectl collect`") && told.contains("`--retry TIME`"), "{told}");
    let collector = Collector::start();
    collector.files().data_port = Some(free);
    let told = refusal(options(&collector))?;
    assert!(told.contains(&format!("cannot connect to its data port {free}: Connection refused")), "{told}");
    assert!(told.contains("HOST:PORT:DATA_PORT"), "{told}");
    Ok(())
}

/// Behind a forwarded port, the collector announces a data port that leads nowhere.
#[test]
fn a_data_port_that_is_given_is_used_in_place_of_the_one_that_is_told() -> Outcome {
    let _alone = alone();
    let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let collector = Collector::start();
    let [control, data] = collector.ports;
    collector.files().data_port = Some(free);
    let to: Destination = format!("127.0.0.1:{control}:{data}").parse()?;
    let recording = Recording::start(config(), vec![Box::new(StreamSink::new(StreamOptions::to(to))?)])?;
    tracepoint::trace!(given_up(0));
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!(super::sum(&report.account, |stream| stream.sink), 0);
    Ok(())
}

#[test]
fn the_difference_of_a_clock_that_is_far_off_is_known() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.files().clock_ahead = HOUR;
    let sink = StreamSink::new(options(&collector))?;
    let watch = sink.watch();
    let recording = Recording::start(config(), vec![Box::new(sink)])?;
    let began = Instant::now();
    let ahead = loop {
        if let Some(ahead) = watch.stats().clock {
            break ahead;
        }
        assert!(began.elapsed() < LONG);
        thread::sleep(Duration::from_millis(5));
    };
    // Within the time of an answer.
    assert!(ahead.abs_diff(HOUR.cast_signed()) < 60_000_000_000, "{ahead}");
    recording.finish();
    Ok(())
}

/// The sender may lose a connection before it has read the report of a loss, or before it has read the acknowledgement that follows it.
#[test]
fn what_was_given_up_is_counted_once_over_connections() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    collector.acknowledges.store(false, Ordering::Relaxed);
    let sink = StreamSink::new(options(&collector))?;
    let watch = sink.watch();
    let mut recording = Recording::start(config(), vec![Box::new(sink)])?;
    let mut wait = |is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < LONG, "{:?}", watch.stats());
            drain(&mut recording);
            thread::sleep(Duration::from_millis(2));
        }
    };
    (0..6000).for_each(|n| tracepoint::trace!(given_up(n)));
    wait(&|| collector.files().streams.values().any(|stream| stream.packets.len() > 5));
    let lost = collector.give_up(2, 4);
    assert!(lost > 0);
    for connection in 2..=3 {
        collector.cut();
        wait(&|| watch.stats().connections == connection && watch.stats().lost.get("network") == Some(&lost));
    }
    collector.acknowledges.store(true, Ordering::Relaxed);
    collector.cut();
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!(super::sum(&report.account, |stream| stream.sink), lost);
    Ok(())
}
