//! On a full disk the trace stays readable and counts the missing packets. It continues when there is space again.

use crate::common::{Outcome, Recording, assert_balances, place, view};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::CtfSink;

tracepoint::define_trace! {
    provider = "disk";
    pub wrote(block: u64) { block: u64 = block }
}

/// The temporary limit on file sizes. It is not a multiple of the packet size.
const LIMIT: u64 = 10_000;

#[test]
fn no_packet_is_partial_and_the_account_balances() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let unlimited = getrlimit(Resource::Fsize);
    let mut recording =
        Recording::start(Channel::discard(64 << 10).packets(64), vec![Box::new(CtfSink::create(&dir)?)])?;
    // A limit on file sizes takes the same path as a full disk.
    setrlimit(Resource::Fsize, Rlimit { current: Some(LIMIT), ..unlimited })?;
    fill(&mut recording, 0);
    let failed = recording.drain.report().remove(0);
    assert!(failed.refused > 0);
    let error = failed.error.ok_or("no error is kept")?.to_string();
    assert!(error.contains("/trace/channel0_") && error.contains("ulimit"), "{error}");
    setrlimit(Resource::Fsize, unlimited)?;
    fill(&mut recording, 1_000_000);

    let report = recording.finish().remove(0);
    let channel = &report.account.channels[0];
    let (stream, event) = (&channel.streams[0], &channel.events[0]);
    assert!(stream.sink > 0 && stream.written > 0);
    assert_eq!(event.recorded, stream.written + stream.sink);
    let (stdout, warnings) = view(&dir);
    assert_eq!(stdout.lines().count() as u64, stream.written);
    assert!(warnings.contains(&format!("Tracer discarded {} packets", report.refused)), "{warnings}");
    assert!(stdout.contains("{ block = 0 }") && stdout.contains("{ block = 1000000 }"));
    assert_balances(&dir);
    Ok(())
}

#[test]
fn the_final_counters_are_written_if_the_disk_stays_full() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let mut recording =
        Recording::start(Channel::discard(64 << 10).packets(64).name("end"), vec![Box::new(CtfSink::create(&dir)?)])?;
    let unlimited = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(LIMIT), ..unlimited })?;
    fill(&mut recording, 0);
    let report = recording.finish().remove(0);
    setrlimit(Resource::Fsize, unlimited)?;
    assert!(report.refused > 0);
    assert_balances(&dir);
    Ok(())
}

/// More events than fit under the limit.
fn fill(recording: &mut Recording, first: u64) {
    for block in first..first + 2_000 {
        tracepoint::trace!(wrote(block));
        if block % 1_000 == 999 {
            recording.drain.drain();
        }
    }
}
