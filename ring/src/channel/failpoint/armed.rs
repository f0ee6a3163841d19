//! What happens at a point: no lock, no allocation, because a point may be passed in a signal handler.

use super::Point;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is done at an armed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The process is killed, as by `kill -9`; where there are no signals, it aborts.
    Kill,
    /// The thread sends itself this signal, whose handler runs in the middle of what the thread does. Nothing where there are none.
    Signal(i32),
    /// The thread sleeps.
    Sleep(Duration),
}

/// A point, the stream in which it counts, and what is done each time that it has been passed `every` times.
#[derive(Debug)]
struct Armed {
    point: Point,
    instance: u64,
    every: u64,
    action: Action,
    passed: AtomicU64,
}

/// What was armed, in this order. The lock of each is taken by [`arm`] alone: `get` is a load.
static ARMED: [OnceLock<Armed>; 4] = [const { OnceLock::new() }; 4];
/// See [`watch`].
static WATCHED: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// From here on `action` is done each time that `point` has been passed `every` times in the stream `instance`: that of a ring's main
/// stream for points that are about the ring. Whoever passes it counts, the consumer as well as the thread that has the ring.
///
/// # Panics
///
/// If `every` is 0, or when four points are armed already: they stay so for as long as the process lives.
pub fn arm(point: Point, instance: u64, every: u64, action: Action) {
    assert!(every > 0, "a point is armed for its first time at the earliest");
    let mut armed = Armed { point, instance, every, action, passed: AtomicU64::new(0) };
    for place in &ARMED {
        match place.set(armed) {
            Ok(()) => return,
            Err(refused) => armed = refused,
        }
    }
    panic!("four points are armed already");
}

/// From here on `words` tell, by stream instance, which point was passed last: its index in [`Point::ALL`], plus one. In memory that
/// another process sees, they say where this one was killed.
///
/// # Panics
///
/// If that was said before.
pub fn watch(words: &'static [AtomicU64]) {
    assert!(WATCHED.set(words).is_ok(), "points are watched already");
}

impl Point {
    /// The point is passed, for the sake of the stream `instance`.
    #[inline(never)]
    pub(in crate::channel) fn pass(self, instance: u64) {
        let word = WATCHED.get().and_then(|words| words.get(usize::try_from(instance).ok()?));
        if let Some(word) = word {
            word.store(self as u64 + 1, Ordering::Relaxed);
        }
        for armed in ARMED.iter().map_while(OnceLock::get) {
            if armed.point == self && armed.instance == instance {
                let passed = armed.passed.fetch_add(1, Ordering::Relaxed) + 1;
                if passed.is_multiple_of(armed.every) {
                    armed.action.take();
                }
            }
        }
    }
}

impl Action {
    fn take(self) {
        match self {
            Self::Kill => kill(),
            Self::Signal(signal) => send(signal),
            Self::Sleep(time) => std::thread::sleep(time),
        }
    }
}

#[cfg(posix)]
fn kill() {
    // SAFETY: takes plain numbers. The signal cannot be handled, and is there before `kill` returns.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

#[cfg(not(posix))]
fn kill() {
    std::process::abort();
}

#[cfg(posix)]
fn send(signal: i32) {
    // SAFETY: takes a plain number; what the handler may do is its own affair.
    unsafe { libc::raise(signal) };
}

#[cfg(not(posix))]
fn send(_: i32) {}
