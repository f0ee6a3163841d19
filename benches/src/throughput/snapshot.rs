//! The cost of a snapshot of a running process.

use crate::{MIB, Outcome, events_in, fire, least_and_median};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_ring::channel::Channel;
use tracepoint_session::Session;
use tracepoint_sinks::CtfSink;

pub(crate) fn table(rounds: usize) -> Outcome {
    println!("\n{:<32} {:>8} {:>8} {:>8} {:>11} {:>10}", "snapshot", "ms min", "median", "ms/MiB", "copy ms", "events");
    for (mib, busy) in [(1, false), (16, false), (64, false), (16, true)] {
        row(rounds, mib, busy)?;
    }
    Ok(())
}

/// A session with a full ring that stays full; `busy` if its thread records continuously.
fn row(rounds: usize, mib: u32, busy: bool) -> Outcome {
    let directory = in_memory()?;
    let (session_dir, copies) = (directory.path().join("session"), directory.path().join("copies"));
    let session = Session::builder("throughput")
        .events("bench:small")
        .channel(Channel::overwrite((mib * MIB) as usize).packets(8 * mib as usize).spares(1))
        .dir(&session_dir)
        .sink(CtfSink::create(directory.path().join("trace"))?)
        .start()?;
    let (stop, full) = (AtomicBool::new(false), AtomicBool::new(false));
    let outcome = thread::scope(|scope| -> Outcome<_> {
        scope.spawn(|| {
            fire(2 * events_in(mib * MIB));
            full.store(true, Ordering::Release);
            while !stop.load(Ordering::Relaxed) {
                if busy { fire(1000) } else { thread::sleep(Duration::from_millis(1)) }
            }
        });
        while !full.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(1));
        }
        let result = measure(rounds, &session_dir, &copies, directory.path());
        stop.store(true, Ordering::Relaxed);
        result
    });
    let (snapshots, plain, events) = outcome?;
    session.stop()?;
    let ([least, median], [_, copy]) = (least_and_median(snapshots), least_and_median(plain));
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{:<32} {:>8.2} {:>8.2} {:>8.3} {:>11.2} {events:>10}",
        format!("{mib} MiB{}", if busy { ", recording all the while" } else { "" }),
        ms(least),
        ms(median),
        ms(median) / f64::from(mib),
        ms(copy)
    );
    Ok(())
}

/// Alternating times of snapshots and of plain copies, and the number of events in the last snapshot.
fn measure(
    rounds: usize,
    session: &Path,
    copies: &Path,
    scratch: &Path,
) -> Outcome<(Vec<Duration>, Vec<Duration>, u64)> {
    let (mut snapshots, mut plain, mut events) = (Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        let out = scratch.join(format!("snapshot-{round}"));
        let begun = Instant::now();
        let recovered = tracepoint_reader::recover(session, &out)?;
        snapshots.push(begun.elapsed());
        events = recovered.processes.iter().map(|process| process.records).sum();
        fs::remove_dir_all(&out)?;

        fs::create_dir(copies)?;
        let begun = Instant::now();
        for process in &recovered.processes {
            for entry in fs::read_dir(&process.directory)? {
                let entry = entry?;
                if entry.path().extension().is_some_and(|extension| extension == "ring") {
                    fs::copy(entry.path(), copies.join(entry.file_name()))?;
                }
            }
        }
        plain.push(begun.elapsed());
        fs::remove_dir_all(copies)?;
    }
    Ok((snapshots, plain, events))
}

/// A directory in memory, if possible.
fn in_memory() -> Outcome<TempDir> {
    let shared = Path::new("/dev/shm");
    Ok(if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }?)
}
