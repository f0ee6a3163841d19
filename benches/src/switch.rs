//! The cost of switching: `switch [ROUNDS]` prints a table of times in microseconds.
//!
//! A thread on another processor runs the sites continuously, as in a busy program: a switch has to reach it.
//! On is a probe's registration. Off is its end, including the wait until no thread is in the probe.
#![forbid(unsafe_code)]

#[path = "../../tracepoint/tests/common/thousand.rs"]
#[macro_use]
mod functions;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

tracepoint::define_trace! {
    provider = "bench";
    single(n: usize);
    thousand(n: usize);
}

/// A function with one site for each `N`.
#[inline(never)]
fn one<const N: usize>() {
    tracepoint::trace!(thousand(N));
}

static THOUSAND: [[fn(); 10]; 100] = thousand!(one);

fn run_thousand() {
    THOUSAND.iter().flatten().for_each(|function| function());
}

fn run_single() {
    for n in 0..100 {
        tracepoint::trace!(single(black_box(n)));
    }
}

/// Number of iterations of the reader.
static ROUNDS_OF_READER: AtomicU64 = AtomicU64::new(0);

/// Times of switching on and of switching off, sorted. With a reader, only switches during which it completed an iteration: a processor that
/// is not running need not be reached.
fn measure<P>(rounds: usize, reader: bool, on: impl Fn() -> P) -> [Vec<Duration>; 2] {
    /// Maximum number of attempts on a machine without a free processor.
    const TRIES: usize = 50;
    let mut times = [Vec::with_capacity(rounds), Vec::with_capacity(rounds)];
    let keep = |times: &mut Vec<Duration>, rounds_before: u64, before: Instant| {
        let elapsed = before.elapsed();
        if !reader || ROUNDS_OF_READER.load(Ordering::Relaxed) != rounds_before {
            times.push(elapsed);
        }
    };
    for _ in 0..rounds * TRIES {
        let (rounds_before, before) = (ROUNDS_OF_READER.load(Ordering::Relaxed), Instant::now());
        let probe = on();
        keep(&mut times[0], rounds_before, before);
        let (rounds_before, before) = (ROUNDS_OF_READER.load(Ordering::Relaxed), Instant::now());
        drop(probe);
        keep(&mut times[1], rounds_before, before);
        if times.iter().all(|times| times.len() >= rounds) {
            break;
        }
    }
    times.each_mut().map(|times| {
        times.sort_unstable();
        std::mem::take(times)
    })
}

/// Runs `body` while another thread runs `work` continuously.
fn while_running<R>(work: Option<fn()>, body: impl FnOnce() -> R) -> R {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Some(work) = work {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    work();
                    ROUNDS_OF_READER.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let result = body();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn main() -> ExitCode {
    let rounds = match std::env::args().nth(1).map(|rounds| rounds.parse()) {
        None => 2_000,
        Some(Ok(rounds)) if rounds > 0 => rounds,
        Some(_) => {
            eprintln!("usage: switch [ROUNDS]");
            return ExitCode::from(2);
        }
    };
    println!("{}", tracepoint::runtime::platform());
    println!("{:<28} {:>8} {:>8} {:>8} {:>8}", "microseconds", "on min", "median", "off min", "median");
    for (what, work) in [("1000 sites", None), ("1000 sites, a busy reader", Some(run_thousand as fn()))] {
        print(what, &while_running(work, || measure(rounds, work.is_some(), || register_trace_thousand(probe))));
    }
    for (what, work) in [("1 site", None), ("1 site, a busy reader", Some(run_single as fn()))] {
        print(what, &while_running(work, || measure(rounds, work.is_some(), || register_trace_single(probe))));
    }
    ExitCode::SUCCESS
}

fn probe(n: usize) {
    black_box(n);
}

fn print(what: &str, times: &[Vec<Duration>; 2]) {
    print!("{what:<28}");
    for times in times {
        for time in [times.first(), times.get(times.len() / 2)] {
            match time {
                Some(time) => print!(" {:>8.1}", time.as_secs_f64() * 1e6),
                None => print!(" {:>8}", "-"),
            }
        }
    }
    println!();
}
