//! If the disk stays full, the final counters of the streams are written all the same.

use crate::common::{Outcome, Recording, assert_balances, place};
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
fn room_is_kept_for_the_final_counts() -> Outcome {
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
