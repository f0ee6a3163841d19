//! A process is killed at each named point of the core, by each of two threads, under each policy, and its committed records are recovered:
//! without a gap, a torn record or a duplicate, up to the last one that it counted, or one more.
//!
//! A point that is not reached in a case where it can be is a failure: the process then ends by itself.
#![cfg(target_os = "linux")]

mod common;
#[path = "../../tests/support/skip.rs"]
mod skip;

#[path = "crash_matrix/case.rs"]
mod case;
#[path = "crash_matrix/child.rs"]
mod child;

use case::{Case, NESTED_PACKETS, PACKETS, RECORDS, THREADS};
use common::oracle::{SharedPage, fired, numbers};
use common::{Outcome, memory_place, view};
use std::env;
use std::iter::zip;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tempfile::TempDir;
use tracepoint_reader::{recover, verify};

/// The shared page's file, and the indices of its words: the number of events of each thread, of its handler, and of the thread without a ring,
/// and the points that were reached last.
const PAGE: &str = "page";
const NESTED: usize = THREADS;
const RINGLESS: usize = 2 * THREADS;
const WATCHED: usize = RINGLESS + 1;

/// Number of processes that run at the same time: most of them wait for the drain.
const AT_ONCE: usize = 6;
/// Number of traces that are decoded at the same time: each has a few files.
const VIEWED: usize = 50;

/// The process that is killed: does nothing, unless this test program was started as one.
#[test]
fn child() {
    let (Some(dir), Ok(case)) = (env::var_os("CRASH_DIR"), env::var("CRASH_CASE")) else { return };
    child::run(&Case::named(&case).expect("one of the cases"), Path::new(&dir));
}

/// A recovered trace.
struct Trace {
    _place: TempDir,
    out: PathBuf,
    records: u64,
}

fn kill(case: &Case, dir: &Path) -> Outcome {
    let mut command = Command::new(env::current_exe()?);
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).stdout(Stdio::null());
    let status = command.env("CRASH_DIR", dir).env("CRASH_CASE", case.to_string()).status()?;
    match status.signal() {
        Some(libc::SIGKILL) => Ok(()),
        _ => Err(format!("the point was not passed: {status}").into()),
    }
}

/// Compares the numbers of one thread's events, none of which was lost, with the number that it counted. `kept` is the minimum number of events
/// that must be left if the oldest are overwritten.
fn compare(numbers: &[u64], known: u64, kept: Option<usize>) -> Outcome {
    let last = numbers.last().copied().unwrap_or(0);
    if last != known && last != known + 1 {
        return Err(format!("{known} were committed, the last is {last}").into());
    }
    if let Some((before, after)) =
        zip(numbers, &numbers[1.min(numbers.len())..]).find(|(before, after)| *before + 1 != **after)
    {
        return Err(format!("{after} follows {before}").into());
    }
    let expected = kept.map_or(last, |kept| last.min(kept as u64));
    if (numbers.len() as u64) < expected {
        return Err(format!("{} are there, of {last}", numbers.len()).into());
    }
    Ok(())
}

fn round(case: &Case) -> Result<Trace, Box<dyn std::error::Error>> {
    let place = memory_place();
    let page = SharedPage::create(&place.path().join(PAGE))?;
    kill(case, place.path())?;
    let out = place.path().join("out");
    let recovered = recover(&place.path().join("session"), &out)?;
    let [process] = &recovered.processes[..] else { return Err(format!("one process: {recovered:?}").into()) };
    if !recovered.is_complete() || process.torn_places > 0 {
        return Err(format!("not complete: {process:?}").into());
    }
    let report = verify(&out)?;
    if !report.passed() {
        return Err(format!("{:#?} {process:?}", report.failures().collect::<Vec<_>>()).into());
    }
    let mut numbers = numbers(&out)?;
    // No event of this thread is recorded.
    let mut known = page.words()[RINGLESS].load(Ordering::Relaxed);
    for thread in 0..THREADS {
        // One slot is prepared for the next packet, and the last packet may be almost empty.
        for (name, word, places) in [("crash:tick", thread, PACKETS), ("crash:nested", NESTED + thread, NESTED_PACKETS)]
        {
            let numbers = numbers.remove(&(name.to_owned(), thread as u64)).unwrap_or_default();
            let kept = (!case.policy.drained).then_some((places - 2) * RECORDS);
            let word = page.words()[word].load(Ordering::Relaxed);
            known += word;
            if case.loses() && case.overflows(thread) {
                continue;
            }
            compare(&numbers, word, kept)
                .map_err(|error| format!("{name} of thread {thread}: {error}; {process:?}"))?;
        }
    }
    if !numbers.is_empty() {
        return Err(format!("nobody fired these: {numbers:?}").into());
    }
    let counted = fired(&out)?;
    // Each of the threads may be in an event that was counted, and additionally in an event of a handler.
    if !(known..=known + 2 * THREADS as u64).contains(&counted) {
        return Err(format!("{known} fired, {counted} by the account").into());
    }
    Ok(Trace { _place: place, out, records: process.records })
}

#[test]
fn committed_records_survive_a_crash_at_any_point() {
    let cases: Vec<_> = Case::all().collect();
    let (next, traces, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match round(case) {
                        Ok(trace) => traces.lock().expect("no panic").push(trace),
                        Err(error) => failures.lock().expect("no panic").push(format!("{case}: {error}")),
                    }
                }
            });
        }
    });
    let (traces, failures) = (traces.into_inner().expect("no panic"), failures.into_inner().expect("no panic"));
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
    for traces in traces.chunks(VIEWED) {
        let paths: Vec<&Path> = traces.iter().map(|trace| trace.out.as_path()).collect();
        let records: u64 = traces.iter().map(|trace| trace.records).sum();
        assert_eq!(view(&paths).lines.len() as u64, records);
    }
    println!("{} cases", cases.len());
}
