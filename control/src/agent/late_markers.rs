//! Markers that come while the program runs, by registration or with an object that is loaded: the agent applies the rules of its sessions to
//! them at once.
//!
//! A callsite of another tracing library is known when it is reached for the first time. While something is recorded, its thread waits there,
//! once, until the agent has applied the rules, so that its first event is recorded, too. The wait is bounded; what fires after it and
//! before the agent is done is not recorded.
//!
//! The constructor of an object wakes the agent, and does not wait: its thread is inside `dlopen` and holds the lock of the dynamic linker, which
//! the agent needs in order to pin the object, and every new thread for its thread-local values. The agent goes on when `dlopen` returns.
//!
//! A waiting thread may hold locks of that library, which the agent needs in order to switch its callsites. So the agent itself never waits here,
//! and once a wait has timed out, no further thread waits until the agent has finished a scan.
//!
//! The counters are atomic and the wait polls: a forked child, which has no agent, finds no lock of its parent and does not wait.

use crate::state::wake_agent;
use std::cell::Cell;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_core::private::{self, Registered};

/// How long a thread waits for the agent, which usually takes a millisecond; a busy machine takes longer.
const WAIT: Duration = Duration::from_millis(500);
/// The interval at which it looks.
const POLL: Duration = Duration::from_micros(100);

static BEGUN: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
/// The process that has an agent; 0: none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether there are sessions, and no wait has timed out since the last scan.
static IS_WAITING: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_AGENT: Cell<bool> = const { Cell::new(false) };
}

/// Has the agent woken by markers and objects from here on.
pub(super) fn follow() {
    PROCESS.store(process::id(), Ordering::Relaxed);
    private::on_register(registered);
}

/// In the thread that has registered markers or an object.
fn registered(what: Registered) {
    if PROCESS.load(Ordering::Relaxed) != process::id() {
        return;
    }
    // M2: pairs with the increment in `begin_scan`. A scan that begins from here on sees the markers.
    let begun = BEGUN.load(Ordering::Acquire);
    wake_agent();
    if what == Registered::Object || !IS_WAITING.load(Ordering::Relaxed) || IS_AGENT.get() {
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

/// Before the agent looks for new markers, in its thread.
pub(super) fn begin_scan() {
    IS_AGENT.set(true);
    // M2: pairs with the load in `registered`.
    BEGUN.fetch_add(1, Ordering::AcqRel);
}

/// After it has applied the rules of its sessions. `has_changed`: there were new markers; `is_recording`: there are sessions.
pub(super) fn end_scan(has_changed: bool, is_recording: bool) {
    IS_WAITING.store(is_recording, Ordering::Relaxed);
    // M1: pairs with the load in `registered`.
    DONE.store(BEGUN.load(Ordering::Relaxed), Ordering::Release);
    if has_changed {
        private::switched();
    }
}

/// When the agent has ended.
pub(super) fn end() {
    PROCESS.store(0, Ordering::Relaxed);
}
