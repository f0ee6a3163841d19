//! Armed points. Passing a point takes no lock and allocates nothing, because it may happen in a signal handler.

use super::Point;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The action at an armed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Kills the process with SIGKILL; aborts it on targets without signals.
    Kill,
    /// Raises this signal on the thread, so that its handler runs at the point. Does nothing on targets without signals.
    Signal(i32),
    /// Puts the thread to sleep.
    Sleep(Duration),
}

/// A point, the stream for which it counts, and the action to execute each time the point has been passed `every` times.
#[derive(Debug)]
struct ArmedPoint {
    point: Point,
    instance: u64,
    every: u64,
    action: Action,
    passed: AtomicU64,
}

/// The armed points. Only [`arm`] may block on an entry: `get` is a load.
static ARMED: [OnceLock<ArmedPoint>; 4] = [const { OnceLock::new() }; 4];
/// See [`watch`].
static WATCHED: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// Executes `action` each time that `point` has been passed `every` times for the stream `instance`. For points that concern the whole ring, that is
/// the ring's main stream. Passes of the consumer and of the ring's owner both count.
///
/// # Panics
///
/// If `every` is 0, or if four points are armed already. A point stays armed until the process ends.
pub fn arm(point: Point, instance: u64, every: u64, action: Action) {
    assert!(every > 0, "`every` counts from 1");
    let mut armed = ArmedPoint { point, instance, every, action, passed: AtomicU64::new(0) };
    for entry in &ARMED {
        match entry.set(armed) {
            Ok(()) => return,
            Err(refused) => armed = refused,
        }
    }
    panic!("four points are armed already");
}

/// Stores the last passed point of each stream in `words`, by instance, as its index in [`Point::ALL`] plus one. If the memory is shared with
/// another process, that process learns where this one was killed.
///
/// # Panics
///
/// If points are watched already.
pub fn watch(words: &'static [AtomicU64]) {
    assert!(WATCHED.set(words).is_ok(), "points are watched already");
}

impl Point {
    /// Passes the point for the stream `instance`.
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
    // SAFETY: takes plain numbers. The signal cannot be handled, and is delivered before `kill` returns.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

#[cfg(not(posix))]
fn kill() {
    std::process::abort();
}

#[cfg(posix)]
fn send(signal: i32) {
    // SAFETY: takes a plain number; a handler that the program has installed must be sound by itself.
    unsafe { libc::raise(signal) };
}

#[cfg(not(posix))]
fn send(_: i32) {}
