//! The loop of a thread that drains rings: of the session's own thread, and of the recorder in another process.
//!
//! ```text
//!            ┌──────────── a ring is half full ────────────┐
//!            ▼                                             │
//!   announce the sleep ──▶ round: look at the rings, drain ─┴─▶ sleep until the interval is over, or an owner wakes it ──┐
//!            ▲                                                                                                          │
//!            └──────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The loop sleeps only behind a round that began after the announcement and found all rings less than half full. An owner that closes a
//! packet later than that round has looked, and finds its ring half full, sees the announcement and wakes the loop (W1, W2 in
//! `docs/ordering.md`). While rounds follow each other without a pause nothing is announced, so that owners make no system call.

mod poll_interval;

pub use poll_interval::PollInterval;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_ring::channel::WakeWord;

/// How long the loop sleeps at least after it was woken for nothing. Bounds what a process can cost that wakes the loop all the time.
const FUTILE: Duration = Duration::from_millis(1);

/// The fullness in percent from which rounds follow each other without a pause, and from which owners wake the loop.
const HALF: u32 = 50;

/// What a round found and moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// The number of packets that were moved.
    pub packets: u64,
    /// How full the fullest ring was before the round, in percent.
    pub fullness: u32,
    /// The shortest time that an event waits for the consumer; `None` if events do not wait.
    pub wait_limit: Option<Duration>,
}

/// How often the thread ran that drains the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainCounters {
    /// The number of rounds.
    pub rounds: u64,
    /// The number of sleeps that a thread with a half-full ring, or the end of the session, has cut short.
    pub woken: u64,
    /// The number of sleeps that lasted as long as the interval.
    pub timeouts: u64,
}

/// The handle of a loop, which its thread and those that stop it share.
#[derive(Debug)]
pub struct ConsumerLoop {
    word: Arc<WakeWord>,
    is_stopped: AtomicBool,
    // Relaxed: statistics.
    rounds: AtomicU64,
    woken: AtomicU64,
    timeouts: AtomicU64,
}

impl ConsumerLoop {
    /// A loop that sleeps on `word`.
    pub const fn new(word: Arc<WakeWord>) -> Self {
        let [rounds, woken, timeouts] = [const { AtomicU64::new(0) }; 3];
        Self { word, is_stopped: AtomicBool::new(false), rounds, woken, timeouts }
    }

    /// Runs rounds until the loop is [stopped](Self::stop). A round that fails returns `None`.
    pub fn run(&self, mut interval: PollInterval, mut round: impl FnMut() -> Option<Round>) {
        let mut last = Instant::now();
        let (mut is_announced, mut was_woken) = (false, false);
        while !self.is_stopped.load(Ordering::Relaxed) {
            let began = Instant::now();
            let found = round().unwrap_or_default();
            self.rounds.fetch_add(1, Ordering::Relaxed);
            interval.limit_wait(found.wait_limit);
            interval.adapt(began.duration_since(last), found.fullness);
            last = began;
            let is_urgent = found.packets > 0 && found.fullness >= HALF;
            if is_urgent && is_announced {
                self.word.awake();
                is_announced = false;
            } else if !is_urgent && is_announced {
                if was_woken && found.packets == 0 {
                    sleep(FUTILE);
                }
                was_woken = self.sleep(interval.pause());
                self.word.announce();
            } else if !is_urgent {
                self.word.announce();
                is_announced = true;
            }
        }
    }

    /// Sleeps; whether the sleep was cut short.
    fn sleep(&self, pause: Duration) -> bool {
        // A stop that this does not see comes after the announcement, and wakes the loop.
        if self.is_stopped.load(Ordering::Relaxed) {
            return true;
        }
        let woken = self.word.sleep(pause);
        let counter = if woken { &self.woken } else { &self.timeouts };
        counter.fetch_add(1, Ordering::Relaxed);
        woken
    }

    /// Ends the loop, after its current round.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Ends the current sleep, if there is one.
    pub fn wake(&self) {
        self.word.wake();
    }

    /// How often it ran so far.
    pub fn counters(&self) -> DrainCounters {
        let [rounds, woken, timeouts] =
            [&self.rounds, &self.woken, &self.timeouts].map(|counter| counter.load(Ordering::Relaxed));
        DrainCounters { rounds, woken, timeouts }
    }
}
