//! Thousands of threads that start and end: their rings stay below the cap, none is left, and every event is counted.
//!
//! `TRACEPOINT_THREADS` sets their total number; at most a twentieth of them run at once. The default is for CI.

use crate::common::{Outcome, assert_balances, event, lost, memory_place, place, process_dirs, ring_files};
use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "crowd";
    pub job(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

/// Events of each thread.
const EVENTS: u64 = 100;
const RING: usize = 64 << 10;

/// The resources of a process that could leak.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    ring_files: usize,
    ring_mappings: usize,
    descriptors: usize,
}

impl Taken {
    fn now(session: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        Ok(Self {
            ring_files: process_dirs(session).iter().map(|dir| ring_files(dir).len()).sum(),
            ring_mappings: maps.lines().filter(|line| Path::new(line).extension() == Some(OsStr::new("ring"))).count(),
            descriptors: std::fs::read_dir("/proc/self/fd")?.count(),
        })
    }
}

/// Returns the resident memory of the process, in bytes.
fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

fn ring_bytes(session: &Path) -> u64 {
    let files = process_dirs(session).into_iter().flat_map(|dir| ring_files(&dir));
    files.map(|file| std::fs::metadata(file).map_or(0, |file| file.len())).sum()
}

/// Runs a number of threads at once; all have fired before the first ends.
fn wave(first: u64, at_once: u64) {
    let barrier = Barrier::new(at_once as usize);
    thread::scope(|scope| {
        for thread in first..first + at_once {
            let barrier = &barrier;
            // Small stacks, so that only the memory of sessions is measured.
            let builder = thread::Builder::new().stack_size(64 << 10);
            let run = move || {
                (0..EVENTS / 2).for_each(|n| tracepoint::trace!(job(thread, n)));
                barrier.wait();
                (EVENTS / 2..EVENTS).for_each(|n| tracepoint::trace!(job(thread, n)));
            };
            builder.spawn_scoped(scope, run).expect("a thread");
        }
    });
}

#[test]
fn ended_threads_leave_no_rings_and_no_memory() -> Outcome {
    own_process!();
    let threads: u64 = env::var("TRACEPOINT_THREADS").map_or(Ok(1000), |threads| threads.parse())?;
    let at_once = (threads / 20).clamp(1, 500);
    let (place, disk) = (memory_place(), place());
    let (dir, trace) = (place.path().join("session"), disk.path().join("trace"));
    let before = Taken::now(&dir)?;
    // Memory for the rings of all threads that live at once and the spares, but not for another ring for each new thread.
    let rings = 2 * at_once + 4;
    let cap = (rings + 2) * (RING as u64 + (32 << 10));
    let channel = Channel::discard(RING).packets(16).spares(at_once as usize + 2).max_rings(rings as usize);
    let session = Session::builder("crowd")
        .events("crowd:*")
        .channel(channel)
        .dir(&dir)
        .memory_cap(cap)
        .sink(CtfSink::create(&trace)?)
        .start()?;
    let mut first = 0;
    let mut settled = None;
    while first < threads {
        wave(first, at_once);
        first += at_once;
        // One or two rounds of the drain, which makes spares of the released rings.
        thread::sleep(Duration::from_millis(30));
        assert!(ring_bytes(&dir) <= cap, "beyond the cap");
        if first == 4 * at_once {
            settled = Some(resident()?);
        }
    }
    // The drain may be creating a ring at this moment: its file is created before its mapping.
    let mut running = Taken::now(&dir)?;
    while running.ring_files != running.ring_mappings {
        thread::sleep(Duration::from_millis(10));
        running = Taken::now(&dir)?;
    }
    assert!(running.ring_files as u64 <= rings + 1, "{running:?}");
    let grown = resident()?.saturating_sub(settled.ok_or("too few threads")?);
    assert!(grown < cap, "{grown} bytes more than after the first threads");
    let summary = session.stop()?;
    assert_eq!(Taken::now(&dir)?, before);

    let job = event(&summary, "crowd:job");
    assert_eq!((job.fired, job.fired), (first * EVENTS, job.recorded + lost(job)), "{job:?}");
    // If the drain wakes up late, a thread has no ring, or its ring is full; most threads have rings.
    assert!(job.recorded > job.fired / 2, "{job:?}");
    let streams = &summary.account().ok_or("no account")?.channels[0].streams;
    assert!(streams.len() as u64 <= 2 * rings + 1, "rings are used again");
    assert_balances(&trace);
    println!(
        "{first} threads, {at_once} at once: {} rings, {} of {} events recorded, {grown} bytes grown",
        running.ring_files, job.recorded, job.fired
    );
    Ok(())
}
