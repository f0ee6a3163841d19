//! Markers that are registered while the program runs: the agent applies the rules of its sessions to them at once.
//!
//! A callsite of another tracing library is known when it is reached for the first time. While something is recorded, its thread waits there,
//! once, until the agent has applied the rules, so that its first event is recorded, too. The wait is bounded; what fires after it and
//! before the agent is done is not recorded.
//!
//! The counters are atomic and the wait polls: a forked child never finds a lock of its parent.

use crate::state::wake_agent;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_core::private;

/// How long a thread waits for the agent, which usually takes a millisecond; a busy machine takes longer.
const WAIT: Duration = Duration::from_millis(500);
/// The interval at which it looks.
const POLL: Duration = Duration::from_micros(100);

static BEGUN: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);
static IS_RECORDING: AtomicBool = AtomicBool::new(false);

/// Has the agent woken by markers from here on.
pub(super) fn follow() {
    private::on_register(registered);
}

/// In the thread that has registered markers.
fn registered() {
    // A scan that begins from here on sees the markers.
    let begun = BEGUN.load(Ordering::Acquire);
    wake_agent();
    if !IS_RECORDING.load(Ordering::Relaxed) {
        return;
    }
    let end = Instant::now() + WAIT;
    // M1: pairs with the store in `end_scan`: the subscriptions of that scan are visible.
    while DONE.load(Ordering::Acquire) <= begun && Instant::now() < end {
        thread::sleep(POLL);
    }
}

/// Before the agent looks for new markers.
pub(super) fn begin_scan() {
    BEGUN.fetch_add(1, Ordering::AcqRel);
}

/// After it has applied the rules of its sessions. `has_changed`: there were new markers; `is_recording`: there are sessions.
pub(super) fn end_scan(has_changed: bool, is_recording: bool) {
    IS_RECORDING.store(is_recording, Ordering::Relaxed);
    // M1: pairs with the load in `registered`.
    DONE.store(BEGUN.load(Ordering::Relaxed), Ordering::Release);
    if has_changed {
        private::switched();
    }
}

/// When the agent has ended.
pub(super) fn end() {
    IS_RECORDING.store(false, Ordering::Relaxed);
}
