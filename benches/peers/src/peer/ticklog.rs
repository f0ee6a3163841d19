//! `ticklog`: binary records in a ring of the thread, which another thread formats as text.
//!
//! A program can configure it once, and cannot switch it off; the test before its macro is ours.

use crate::cpu;
use crate::kernel::Compiled;
use crate::peer::workload::{self, tally_line};
use crate::site::Site;
use crate::tally;
use crate::variant::{Arm, Armed, Hold, Mode, Proof, Recording, Unusable, Variant};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use ticklog::{Guard, Level, LogSink};

// `configure!` defines these two in the root of the crate, where the logging macros of this module do not find them.
macro_rules! __ticklog_max_level {
    () => {
        ticklog::Level::Info
    };
}
macro_rules! __ticklog_backpressure {
    () => {
        ticklog::Backpressure::Drop
    };
}

static ON: AtomicBool = AtomicBool::new(false);

/// `ticklog::info!` with numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbers;

impl Site for Numbers {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if ON.load(Ordering::Relaxed) {
            ticklog::info!("a={} b={} c={}", a, b, c);
        }
    }
}

/// `ticklog::info!` with text.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Site for Text {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if ON.load(Ordering::Relaxed) {
            ticklog::info!("name={} n={}", workload::name(), workload::sum(a, b, c));
        }
    }
}

/// Counts lines, and keeps them if they are checked.
struct Sink;

static LINES: AtomicU64 = AtomicU64::new(0);
/// The numbers of the threads that have ended, from their last lines.
static ENDED: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static KEEP: AtomicBool = AtomicBool::new(false);
static KEPT: Mutex<String> = Mutex::new(String::new());
/// The last line of a thread, followed by its number.
const END: &str = "no more events from ";

impl LogSink for Sink {
    fn accept(&mut self, line: &[u8], _: Level) -> io::Result<()> {
        let line = String::from_utf8_lossy(line);
        if let Some((_, number)) = line.split_once(END) {
            let number = number.trim_end().parse().map_err(io::Error::other)?;
            locked(&ENDED).push(number);
            return Ok(());
        }
        if KEEP.load(Ordering::Relaxed) {
            let mut kept = locked(&KEPT);
            kept.push_str(&line);
            kept.push('\n');
        }
        LINES.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Configures `ticklog`, once.
#[allow(missing_docs, reason = "configure! defines undocumented macros")]
fn configured() -> Result<(), Unusable> {
    static GUARD: OnceLock<Result<Guard, String>> = OnceLock::new();
    let guard = GUARD.get_or_init(|| {
        cpu::anywhere(|| ticklog::configure! { sink: Sink, format: "{timestamp} {message}" }).map_err(|e| e.to_string())
    });
    guard.as_ref().map(|_| ()).map_err(|error| Unusable(error.clone()))
}

/// Begins with an empty ring. At the end, waits until all records of this thread have been formatted.
const THREAD: Arm = || {
    ticklog::warm_up().map_err(|error| Unusable(error.to_string()))?;
    Ok(Armed::until(|| {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (number, begun) = (NUMBERS.fetch_add(1, Ordering::Relaxed), Instant::now());
        while !locked(&ENDED).contains(&number) {
            assert!(begun.elapsed() < Duration::from_secs(10), "ticklog's thread lives");
            // The line is lost if the ring is full, so it is repeated; a second copy is harmless.
            ticklog::info!("no more events from {}", number);
            thread::sleep(Duration::from_millis(1));
        }
    }))
};

fn on(end: impl FnOnce() + 'static) -> Result<Armed, Unusable> {
    configured()?;
    LINES.store(0, Ordering::Relaxed);
    locked(&ENDED).clear();
    ON.store(true, Ordering::Relaxed);
    Ok(Armed::until(move || {
        ON.store(false, Ordering::Relaxed);
        end();
    }))
}

fn counted(marks: &'static [&'static str], named: bool) -> Result<Armed, Unusable> {
    KEEP.store(true, Ordering::Relaxed);
    let on = on(move || {
        KEEP.store(false, Ordering::Relaxed);
        let kept = std::mem::take(&mut *locked(&KEPT));
        tally::add_bytes(kept.len() as u64);
        kept.lines().for_each(|line| tally_line(line, marks, named));
    })?;
    let thread = THREAD()?;
    Ok(Armed::until(move || {
        drop(thread);
        drop(on);
    }))
}

const NUMBERS: Variant = Variant {
    name: "ticklog",
    mode: Mode::Recorded,
    does: "ticklog::info!, the time stamp counter and a record in the thread's ring while it has room; another thread makes text",
    kernels: Compiled::of::<Numbers>(),
    arm: || on(|| tally::add_hits(LINES.load(Ordering::Relaxed))),
    count: || counted(&["a=", " b=", " c="], false),
    proof: Proof::Values,
    counts_losses: true,
    hold: Hold::Sample,
    // A ring has 1 MiB; a record takes about 100 bytes.
    limit: 6_000,
    recording: Some(Recording { floor: "floor", warm: 100, thread: THREAD, sustained: true }),
};

/// Both workloads.
pub const VARIANTS: &[Variant] = &[
    NUMBERS,
    Variant {
        name: "ticklog-text",
        does: "as ticklog",
        kernels: Compiled::of::<Text>(),
        count: || counted(&[" n="], true),
        recording: Some(Recording { floor: "floor-text", warm: 100, thread: THREAD, sustained: true }),
        ..NUMBERS
    },
];
