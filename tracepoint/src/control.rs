//! The control lock, what waits for a grace period, and fork.
//!
//! One lock serialises everything that replaces a published list or turns a key. It is held for those few stores only: never
//! while waiting for readers, never while user code (a probe, a `Drop` of what a probe owns) runs. What was replaced is handed
//! to [`retire`], which waits and frees outside a section, and puts it aside for the next change when called from inside one.

use crate::primitive::{Mutex, MutexGuard};
use crate::thread;
use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, PoisonError};

static LOCK: Mutex<()> = Mutex::new(());

/// What was replaced from inside a section, where waiting would never end.
static DEFERRED: Mutex<Vec<Garbage>> = Mutex::new(Vec::new());

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Anything that is freed by dropping it.
pub(crate) type Garbage = Box<dyn Any + Send>;

/// Proof that the control lock is held.
#[derive(Debug)]
pub(crate) struct Locked<'a>(#[expect(dead_code, reason = "held for its Drop")] MutexGuard<'a, ()>);

/// Takes the control lock. Not re-entrant, and never needed by a site.
pub(crate) fn lock() -> Locked<'static> {
    prepare();
    Locked(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Takes the control lock and prepares nothing: for what runs before `main`, and switches nothing on by itself.
#[cfg(patched_sites)]
pub(crate) fn lock_alone() -> Locked<'static> {
    Locked(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Once per process, before anything is switched on.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        thread::prepare();
        crate::fork::prepare();
    });
}

/// Frees `garbage`, and what earlier calls put aside, after a grace period. The control lock is not held.
///
/// Inside a section nothing can be waited for: there `garbage` is put aside. Without any garbage there is nothing to wait for.
pub(crate) fn retire(garbage: Vec<Garbage>) {
    let mut deferred = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
    if thread::in_section() {
        deferred.extend(garbage);
        return;
    }
    let earlier = std::mem::take(&mut *deferred);
    drop(deferred);
    if garbage.is_empty() && earlier.is_empty() {
        return;
    }
    if thread::wait_for_all() {
        // Dropping runs user code (what a probe owns); nothing is locked here.
        drop(garbage);
        drop(earlier);
    } else {
        // Somebody may be using it, and there is no way to find out: it stays, and is counted.
        KEPT.fetch_add(garbage.len() + earlier.len(), Ordering::Relaxed);
        std::mem::forget((garbage, earlier));
    }
}

/// Waits for a grace period; `false` if none can be had.
#[must_use]
pub(crate) fn wait_for_grace() -> bool {
    thread::wait_for_all()
}

/// How many replaced lists and probes were kept because the kernel refused the fence that a grace period needs.
pub(crate) fn kept() -> usize {
    KEPT.load(Ordering::Relaxed)
}

/// Whether the calling thread is inside a probe, a filter or a field expression, where nothing that waits for probes can be
/// waited for.
pub fn in_probe() -> bool {
    thread::in_section()
}

/// Waits for a grace period, unless called from inside a section, where it returns at once.
///
/// Afterwards no thread is inside a probe or a marker that it entered before the call.
pub fn synchronize() {
    if !thread::in_section() {
        // Where nothing can be waited for, nothing is freed either: `retire` sees to that.
        let _ = thread::wait_for_all();
    }
    retire(Vec::new());
}

/// Runs `in_child` in a forked child while the locks of this module are known to be free.
#[cfg(posix)]
pub(crate) mod around_fork {
    use super::{DEFERRED, Garbage, LOCK};
    use crate::primitive::MutexGuard;
    use std::cell::RefCell;
    use std::sync::PoisonError;

    struct Held {
        _control: MutexGuard<'static, ()>,
        _deferred: MutexGuard<'static, Vec<Garbage>>,
    }

    thread_local! {
        static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
    }

    /// In the parent, before: takes the locks, so that the child finds them free and the lists whole.
    pub(crate) fn before() {
        let held = Held {
            _control: LOCK.lock().unwrap_or_else(PoisonError::into_inner),
            _deferred: DEFERRED.lock().unwrap_or_else(PoisonError::into_inner),
        };
        // In a thread whose locals are gone the locks are given back at once: the fork goes unguarded, but it goes.
        let _ = HELD.try_with(|place| *place.borrow_mut() = Some(held));
    }

    /// In the parent and in the child, after: gives them back.
    pub(crate) fn after() {
        let _ = HELD.try_with(|place| place.borrow_mut().take());
    }
}
