//! The agent that runs in this process, as shared by everything that can end it: the value [`Agent`](super::Agent), its copy in a forked
//! child, and `exit`.
//!
//! ```text
//!   Agent dropped ──────────────┐
//!   its copy dropped in a child ├──▶ take: once ──▶ request ──▶ the agent's thread ends all sessions ──▶ `ended`, or the time is over
//!   exit ──▶ handler ───────────┘
//! ```
//!
//! `exit` runs its handlers on the thread that calls it, while the other threads continue: they may fire events, which end like those of a
//! stopped session. The handler only takes the agent and waits for its thread. Its lock is never held while waiting; if it is held, another
//! thread is ending the agent. Inside a probe no session can end, because its grace period cannot; the rings are then left, as by a process
//! that was killed. `_exit`, `abort`, `quick_exit`, a fatal signal and `exec` run no handlers.
#![expect(unsafe_code, reason = "`atexit` has no safe interface, and this file guarantees what the handler does")]

use super::END_TIMEOUT;
use super::wakeup::Stop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError, TryLockError};

/// The handles by which an agent's thread is requested to end, and reports its end.
#[derive(Debug)]
struct RunningAgent {
    /// A forked child inherits the value, but not the thread.
    process: u32,
    stop: Stop,
    ended: Receiver<()>,
}

static AGENT: Mutex<Option<RunningAgent>> = Mutex::new(None);

/// Registers the agent of this process. Its thread ends when `stop` is requested, and then sends to `ended`.
pub(super) fn register(stop: Stop, ended: Receiver<()>) {
    static HAS_HANDLER: AtomicBool = AtomicBool::new(false);
    let agent = RunningAgent { process: process::id(), stop, ended };
    let before = AGENT.lock().unwrap_or_else(PoisonError::into_inner).replace(agent);
    // In a forked child this is the parent's value: its thread may have been using the channel.
    std::mem::forget(before);
    // Relaxed: publishes nothing. A child inherits the handler with the mark.
    if !HAS_HANDLER.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler has the required signature, does not unwind, and does no more than the head of this file allows. If it
        // cannot be registered (out of memory), `exit` leaves the rings.
        let _ = unsafe { libc::atexit(at_exit) };
    }
}

/// Ends the agent of this process, if it runs and no other thread is ending it, and waits for at most [`END_TIMEOUT`]; returns whether it
/// has ended.
pub(super) fn end() -> bool {
    let agent = take(&mut AGENT.lock().unwrap_or_else(PoisonError::into_inner));
    agent.is_some_and(RunningAgent::end)
}

fn take(agent: &mut Option<RunningAgent>) -> Option<RunningAgent> {
    agent.take_if(|agent| agent.process == process::id())
}

extern "C" fn at_exit() {
    let end = || {
        let agent = match AGENT.try_lock() {
            Ok(mut agent) if !tracepoint_core::in_probe() => take(&mut agent),
            Err(TryLockError::Poisoned(agent)) => take(&mut agent.into_inner()),
            _ => None,
        };
        agent.is_some_and(RunningAgent::end)
    };
    let _ = catch_unwind(AssertUnwindSafe(end));
}

impl RunningAgent {
    fn end(self) -> bool {
        self.stop.request();
        self.ended.recv_timeout(END_TIMEOUT).is_ok()
    }
}
