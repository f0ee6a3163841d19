//! Rings are created when threads record, are smaller if there are many, and release their memory when the threads have ended.
//!
//! `TRACEPOINT_CROWD` sets the number of threads.

use crate::common::{Outcome, assert_balances, event, lost, memory_place, place, process_dirs, ring_files};
use std::env;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Barrier;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use tracepoint_session::Session;
use tracepoint_session::sinks::{CtfSink, TextSink};

tracepoint::define_trace! {
    provider = "need";
    pub beat(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

const MIB: u64 = 1 << 20;
/// Events of each thread, one every 50 ms.
const BEATS: u64 = 20;

/// Number of small and of large rings that keep the memory of their packets while no thread starts.
const AT_REST: [u64; 2] = [8, 1];
/// The size in bytes of the packets of a small ring (docs/channels.md).
const SMALL: u64 = 16 << 10;

/// The memory of the rings of a session.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    rings: u64,
    bytes: u64,
    /// Bytes of headers and accounts, which stay: the streams of a ring are a part of the trace.
    heads: u64,
    /// Number of small and of large rings that have memory for packets.
    with_packets: [u64; 2],
}

impl Taken {
    /// Reads the layout from the header of each ring, see docs/format-ring.md.
    fn by(dir: &Path) -> Self {
        let mut taken = Self::default();
        for file in process_dirs(dir).into_iter().flat_map(|dir| ring_files(&dir)) {
            let mut layout = [0; 24];
            let Ok(file) = File::open(file) else { continue };
            let is_read = file.read_exact_at(&mut layout, 96);
            let bytes = file.metadata().map_or(0, |file| file.blocks() * 512);
            let [offset, size, count] =
                [0, 8, 16].map(|at| u64::from_le_bytes(std::array::from_fn(|n| layout[at + n])));
            let head = if is_read.is_ok() { offset } else { 0 };
            taken.rings += 1;
            taken.bytes += bytes;
            taken.heads += head;
            if bytes > head {
                taken.with_packets[usize::from(size * count > SMALL)] += 1;
            }
        }
        taken
    }

    /// Returns whether at most these numbers of small and large rings have memory for packets.
    fn has_at_most(&self, [small, large]: [u64; 2]) -> bool {
        self.with_packets[0] <= small && self.with_packets[1] <= large
    }
}

fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() && began.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(50));
    }
    is_so()
}

#[test]
fn a_crowd_loses_nothing_and_leaves_nothing() -> Outcome {
    own_process!();
    let threads: u64 = env::var("TRACEPOINT_CROWD").map_or(Ok(300), |threads| threads.parse())?;
    let (rings, disk) = (memory_place(), place());
    let trace = disk.path().join("trace");
    let session = Session::builder("need").events("need:*").dir(rings.path()).sink(CtfSink::create(&trace)?).start()?;
    let taken = || Taken::by(rings.path());
    // Unused rings from the start release their memory.
    assert!(until(|| taken().has_at_most(AT_REST)), "{:?} at rest", taken());
    let before = taken().rings;
    let barrier = Barrier::new(threads as usize);
    let mut most = 0;
    thread::scope(|scope| {
        for number in 0..threads {
            let barrier = &barrier;
            let body = move || {
                barrier.wait();
                // Existing threads begin to fire at different times.
                sleep(Duration::from_millis(500 + number % 500));
                for n in 0..BEATS {
                    tracepoint::trace!(beat(number, n));
                    sleep(Duration::from_millis(50));
                }
            };
            thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, body).expect("a thread");
        }
        for _ in 0..25 {
            sleep(Duration::from_millis(100));
            most = most.max(taken().bytes);
        }
    });
    println!("{threads} threads: {} KiB", most >> 10);
    assert!(most <= 128 * MIB, "{most}");
    // The packets of all others have no memory. Small rings for the next crowd of this size keep it for a minute.
    let [small, large] = AT_REST;
    assert!(until(|| taken().has_at_most([threads + small, large])), "{:?} of {most} left", taken());
    // A thread starts in a small ring, or in a large one if no small one is ready, and then further small ones are made.
    let left = taken();
    assert!(left.rings <= before + 2 * threads, "{left:?}, {before} rings at rest");
    assert!(
        left.bytes <= left.heads + (threads + small) * (SMALL + (4 << 10)) + large * (MIB + (16 << 10)),
        "{left:?}"
    );
    // The memory is reused for the next threads.
    thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                sleep(Duration::from_secs(1));
                tracepoint::trace!(beat(threads + number, 0));
            });
        }
    });
    let summary = session.stop()?;
    let beat = event(&summary, "need:beat");
    assert_eq!(beat.fired, threads * BEATS + 8);
    assert_eq!(lost(beat), 0, "{beat:?}");
    assert_balances(&trace);
    Ok(())
}

/// Recovery detects a missing ring by this number, which other processes read at this offset.
#[test]
fn the_rings_that_were_made_are_counted() -> Outcome {
    own_process!();
    let place = memory_place();
    let sink = TextSink::new(std::io::sink());
    let _session = Session::builder("need").events("need:*").dir(place.path()).sink(sink).start()?;
    thread::scope(|scope| {
        for number in 0..40 {
            scope.spawn(move || tracepoint::trace!(beat(number, 0)));
        }
    });
    let dir = process_dirs(place.path()).pop().ok_or("no directory")?;
    let rings = || ring_files(&dir).len() as u64 - 1;
    let counted = || std::fs::read(dir.join("0-orphans.ring")).map(|bytes| bytes[152..160].to_vec());
    assert!(until(|| counted().is_ok_and(|counted| counted == rings().to_le_bytes())), "{:?}, {}", counted(), rings());
    assert!(rings() > 1);
    Ok(())
}
