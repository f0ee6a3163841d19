//! Markers that appear while the program runs, by registration or with a loaded object: the agent immediately applies the rules of its
//! sessions to them.
//!
//! A callsite of another tracing library becomes known when it is first reached. While a session records, its thread waits there, once,
//! until the agent has applied the rules, so that its first event is recorded, too. The wait is bounded; events that fire after a timeout
//! and before the agent is done are not recorded.
//!
//! The constructor of an object wakes the agent, but does not wait: its thread is inside `dlopen` and holds the lock of the dynamic linker.
//! The agent needs this lock to pin the object, and every new thread needs it for its thread-local values. The agent continues when
//! `dlopen` returns.
//!
//! A waiting thread may hold locks of that library, which the agent needs to enable its callsites. Therefore the agent itself never waits
//! here, and after a timeout no further thread waits until the agent has finished a scan.
//!
//! The counters are atomic and the wait polls: a forked child, which has no agent, finds no lock held by its parent and does not wait.

use crate::state::wake_agent;
use std::cell::Cell;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_core::internal::{self, Registration};

/// Maximum time that a thread waits for the agent. A scan usually takes a millisecond, and longer on a busy machine.
const WAIT: Duration = Duration::from_millis(500);
/// The polling interval.
const POLL: Duration = Duration::from_micros(100);

static BEGUN: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
/// The process that has an agent; 0 for none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// True while there are sessions and no wait has timed out since the last scan.
static IS_WAITING: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_AGENT: Cell<bool> = const { Cell::new(false) };
}

/// From now on, markers and objects wake the agent.
pub(super) fn follow() {
    PROCESS.store(process::id(), Ordering::Relaxed);
    internal::on_register(registered);
}

/// Called on the thread that has registered markers or an object.
fn registered(what: Registration) {
    if PROCESS.load(Ordering::Relaxed) != process::id() {
        return;
    }
    // M2: pairs with the increment in `begin_scan`. A scan that begins from here on sees the markers.
    let begun = BEGUN.load(Ordering::Acquire);
    wake_agent();
    if what == Registration::Object || !IS_WAITING.load(Ordering::Relaxed) || IS_AGENT.get() {
        return;
    }
    let end = Instant::now() + WAIT;
    // M1: pairs with the store in `end_scan`: the subscriptions of that scan are visible.
    while DONE.load(Ordering::Acquire) <= begun {
        if Instant::now() >= end {
            IS_WAITING.store(false, Ordering::Relaxed);
            return;
        }
        thread::sleep(POLL);
    }
}

/// Called on the agent's thread before it looks for new markers.
pub(super) fn begin_scan() {
    IS_AGENT.set(true);
    // M2: pairs with the load in `registered`.
    BEGUN.fetch_add(1, Ordering::AcqRel);
}

/// Called after the agent has applied the rules of its sessions. `has_changed`: there were new markers; `is_recording`: there are sessions.
pub(super) fn end_scan(has_changed: bool, is_recording: bool) {
    IS_WAITING.store(is_recording, Ordering::Relaxed);
    // M1: pairs with the load in `registered`.
    DONE.store(BEGUN.load(Ordering::Relaxed), Ordering::Release);
    if has_changed {
        internal::switched();
    }
}

/// Called when the agent has ended.
pub(super) fn end() {
    PROCESS.store(0, Ordering::Relaxed);
}
