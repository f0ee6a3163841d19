//! Threads that start while a session runs are recorded, and the rings of ended threads are reused.

use crate::common::{Outcome, assert_balances, event, lost, memory_place, place, process_dirs, ring_files, view};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "pool";
    pub job(number: u64) { number: u64 = number }
}

/// The default channel. Each group has as many threads as there are rings before the first thread starts, and the threads of the second
/// group use the rings that the first has handed on.
#[test]
fn crowds_that_begin_together_lose_nothing() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let dir = place.path().join("trace");
    let session = Session::builder("crowds").events("pool:*").dir(rings.path()).sink(CtfSink::create(&dir)?).start()?;
    let files: Vec<_> = process_dirs(rings.path()).iter().flat_map(|dir| ring_files(dir)).collect();
    // One file contains the counters of threads without a ring.
    let crowd = files.len() as u64 - 1;
    assert!(crowd > 16, "{crowd}: half of the first small ones, and large ones");
    for first in [0, crowd] {
        let barrier = Barrier::new(crowd as usize);
        thread::scope(|scope| {
            for number in first..first + crowd {
                let barrier = &barrier;
                scope.spawn(move || {
                    (0..3).for_each(|_| tracepoint::trace!(job(number)));
                    barrier.wait();
                });
            }
        });
    }
    let summary = session.stop()?;
    let job = event(&summary, "pool:job");
    assert_eq!((job.fired, job.recorded), (6 * crowd, 6 * crowd), "{job:?}");
    assert_balances(&dir);
    Ok(())
}

/// Number of rounds, with two threads each.
const ROUNDS: u64 = 40;
/// Far fewer rings than threads.
const MAX_RINGS: u64 = 6;

#[test]
fn rings_of_ended_threads_are_reused() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let channel = Channel::discard(64 << 10).spares(2).max_rings(MAX_RINGS as usize);
    let session = Session::builder("threads").events("pool:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            for i in 0..2 {
                scope.spawn(move || tracepoint::trace!(job(2 * round + i)));
            }
        });
        // Wake-ups of the drain, which makes spares of the released rings.
        thread::sleep(Duration::from_millis(30));
    }
    let summary = session.stop()?;
    let job = event(&summary, "pool:job");
    assert_eq!(job.fired, 2 * ROUNDS);
    // On a busy machine the drain may wake up late, and a thread find no ring.
    assert_eq!(job.recorded + job.lost.get("no_ring").unwrap_or(&0), job.fired);
    assert!(job.recorded > 4 * MAX_RINGS, "rings were not used again: {job:?}");
    let viewed = view(&[&dir]);
    assert_eq!(
        (viewed.lines.len() as u64, viewed.discarded_events()),
        (job.recorded, lost(job)),
        "{}",
        viewed.warnings
    );
    assert!(
        std::fs::read_dir(&dir)?.count() as u64 <= MAX_RINGS + 3,
        "one file for each ring, metadata, account, no ring"
    );
    assert_balances(&dir);
    Ok(())
}
