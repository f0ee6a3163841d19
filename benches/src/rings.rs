//! The cost of one ring per thread in a program with hundreds of threads: `rings [THREADS [ROUNDS]]` prints a table.
//!
//! Every thread has a ring of the size given in the row. They take turns with one burst of events each, like the threads of a server that
//! alternate on a few processors. For comparison, one thread fires as often, and its ring stays in the cache: the difference is the most that
//! per-processor rings could gain. The less a thread fires per turn, the less of its ring is still cached at its next turn.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_benches::Recording;
use tracepoint_ring::channel::Channel;

const SIZES: [usize; 5] = [8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const BURSTS: [u32; 2] = [10, 1000];

fn fire(events: u32) -> Duration {
    let before = Instant::now();
    for i in 0..events {
        tracepoint::trace!(tracepoint_benches::small(i.cast_signed(), 7, i.into()));
    }
    before.elapsed()
}

/// A thread that fires a burst on request, and returns the duration.
fn worker(turns: &Receiver<u32>, times: &Sender<Duration>) {
    for burst in turns {
        if times.send(fire(burst)).is_err() {
            return;
        }
    }
}

/// The median of the time for an event, in ns.
fn median(mut times: Vec<Duration>, burst: u32) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e9 / f64::from(burst)
}

/// Times of the bursts of threads that take turns.
fn in_turns(threads: usize, rounds: usize, burst: u32) -> f64 {
    let (times_to, times) = channel();
    let mut turns = Vec::with_capacity(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (turn, mine) = channel();
            let times_to = times_to.clone();
            scope.spawn(move || worker(&mine, &times_to));
            turns.push(turn);
        }
        let mut all = Vec::with_capacity(threads * rounds);
        // In the first round, the threads are registered and acquire their rings.
        for round in 0..=rounds {
            for turn in &turns {
                turn.send(burst).expect("the thread waits for turns");
                let time = times.recv().expect("the thread answers");
                if round > 0 {
                    all.push(time);
                }
            }
        }
        turns.clear();
        median(all, burst)
    })
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse().ok().filter(|&number| number > 0));
    let (Some(threads), Some(rounds)) = (arguments.next().unwrap_or(Some(500)), arguments.next().unwrap_or(Some(20)))
    else {
        eprintln!("usage: rings [THREADS [ROUNDS]]");
        return ExitCode::from(2);
    };
    println!("{}; {threads} threads, {rounds} rounds, medians in ns for an event", tracepoint::runtime::platform());
    print!("{:>10} {:>10}", "ring KiB", "in all MiB");
    for burst in BURSTS {
        print!(" {:>14} {:>12}", format!("turns of {burst}"), "one thread");
    }
    println!();
    for size in SIZES {
        let config = Channel::overwrite(size).spares(threads + 1).max_rings(threads + 1);
        print!("{:>10} {:>10}", size >> 10, (size * threads) >> 20);
        for burst in BURSTS {
            let recording = Recording::into("bench:small", 1, &config);
            let turns = in_turns(threads, rounds, burst);
            let alone = median((0..threads * rounds).map(|_| fire(burst)).collect(), burst);
            let fired = (threads * (2 * rounds + 1)) as u64 * u64::from(burst);
            assert_eq!(recording.recorded(), fired, "every event is recorded");
            print!(" {turns:>14.1} {alone:>12.1}");
        }
        println!();
    }
    ExitCode::SUCCESS
}
