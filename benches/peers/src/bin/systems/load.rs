//! A load: threads of the traced program that fire events, phase after phase.

use crate::processes::thread_time;
use serde::{Deserialize, Serialize};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_peers::cpu;
use tracepoint_peers::site::Site;

/// Below this rate, in events per second, a thread sleeps between its events. Above it, the thread runs continuously.
const SLEEPS_BELOW: u64 = 2_000_000;
/// Duration of that sleep.
const TICK: Duration = Duration::from_millis(1);
/// Without a rate, the clock is read after this number of events.
const UNPACED: u64 = 1_000;
/// The fraction of a rate that counts as reaching it.
const REACHED: f64 = 0.95;

/// The work of threads that have fired one event each, and paused.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) threads: usize,
    /// The idle time before the first phase.
    pub(crate) pause: Duration,
    pub(crate) phases: Vec<Phase>,
}

/// Events until one of two limits is reached, followed by an idle time in which a consumer can finish.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Phase {
    /// Events per second of all threads together; `None` for the maximum.
    pub(crate) rate: Option<u64>,
    pub(crate) time: Duration,
    /// Maximum number of events of each thread.
    pub(crate) most: u64,
    pub(crate) rest: Duration,
}

impl Phase {
    pub(crate) const fn steady(rate: u64, time: Duration, rest: Duration) -> Self {
        Self { rate: Some(rate), time, most: u64::MAX, rest }
    }

    pub(crate) const fn flat_out(time: Duration) -> Self {
        Self { rate: None, time, most: u64::MAX, rest: Duration::ZERO }
    }

    pub(crate) const fn burst(events: u64) -> Self {
        Self { rate: None, time: Duration::MAX, most: events, rest: Duration::ZERO }
    }

    /// True if the rate was reached.
    fn is_reached(&self, mark: &Mark) -> bool {
        self.rate.is_none_or(|rate| mark.events as f64 >= REACHED * rate as f64 * mark.wall.as_secs_f64())
    }
}

/// Measurements of a phase, or of the time before the first one.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The events of all threads.
    pub(crate) events: u64,
    /// The time of the slowest thread.
    pub(crate) wall: Duration,
    /// The time of all threads inside events.
    pub(crate) firing: Duration,
    /// The processor time of all threads, mostly spent falling asleep and waking up.
    pub(crate) processor: Duration,
    /// True if the rate of the phase was reached.
    pub(crate) reached: bool,
}

/// Runs a load, and reports a mark after the pause and after each phase.
pub(crate) fn fire<S: Site>(load: &Load, mut report: impl FnMut(Mark)) {
    let cpus = cpu::allowed();
    let barrier = Barrier::new(load.threads + 1);
    let fired = Mutex::new(Mark::default());
    let add = |mark: Mark| {
        let mut fired = fired.lock().expect("no panic");
        fired.events += mark.events;
        fired.wall = fired.wall.max(mark.wall);
        fired.firing += mark.firing;
        fired.processor += mark.processor;
    };
    let take = || std::mem::take(&mut *fired.lock().expect("no panic"));
    thread::scope(|scope| {
        for thread in 0..load.threads {
            let (barrier, add, cpus) = (&barrier, &add, &cpus);
            scope.spawn(move || {
                // The first processors serve most interrupts. If pinning is refused, threads run anywhere.
                if let Some(cpu) = cpus.iter().rev().cycle().nth(thread) {
                    cpu::pin_to(*cpu);
                }
                S::event(0, 0, 0);
                add(Mark { events: 1, ..Mark::default() });
                barrier.wait();
                for phase in &load.phases {
                    barrier.wait();
                    let before = thread_time();
                    let mark = run::<S>(phase, load.threads as u64);
                    add(Mark { processor: thread_time().saturating_sub(before), ..mark });
                    barrier.wait();
                }
            });
        }
        barrier.wait();
        thread::sleep(load.pause);
        report(Mark { reached: true, ..take() });
        for phase in &load.phases {
            barrier.wait();
            barrier.wait();
            thread::sleep(phase.rest);
            let mark = take();
            report(Mark { reached: phase.is_reached(&mark), ..mark });
        }
    });
}

/// The events of one of `threads` threads.
fn run<S: Site>(phase: &Phase, threads: u64) -> Mark {
    let begun = Instant::now();
    let mut mark = Mark::default();
    loop {
        mark.wall = begun.elapsed();
        if mark.wall >= phase.time || mark.events >= phase.most {
            return mark;
        }
        let due = match phase.rate {
            None => mark.events + UNPACED,
            Some(rate) => (u128::from(rate / threads) * mark.wall.as_nanos() / 1_000_000_000) as u64,
        };
        let due = due.min(phase.most);
        burst::<S>(mark.events, due);
        mark.events = due;
        mark.firing += begun.elapsed().saturating_sub(mark.wall);
        if phase.rate.is_some_and(|rate| rate / threads < SLEEPS_BELOW) {
            thread::sleep(TICK);
        }
    }
}

fn burst<S: Site>(from: u64, to: u64) {
    for number in from..to {
        S::event(number as i32, 7, number.cast_signed());
    }
}
