//! The update side of RCU: the lock of all writers, deferred reclamation, and both around fork.
//!
//! One lock serialises all code that replaces a list or switches a key. It is held only for those few stores: never while waiting for
//! readers, and never while user code runs (a probe, or the `Drop` of a value that a probe owns). Replaced versions are passed to [`retire`],
//! which waits for a grace period and frees them; inside a section it defers them to a later call.
//!
//! The dynamic linker holds a lock of its own while it runs constructors and destructors, and those take the update lock. So the dynamic
//! linker must not be called under the update lock: no `dlopen`, and no first use of a thread-local with a destructor.

use crate::fork::{self, ForkHooks};
use crate::primitive::{Mutex, MutexGuard};
use crate::thread;
use std::any::Any;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static LOCK: Mutex<()> = Mutex::new(());

static FORK_HOOKS: ForkHooks =
    ForkHooks { before: around_fork::before, in_parent: around_fork::after, in_child: around_fork::after };

/// Versions replaced inside a section, where waiting for a grace period would deadlock.
static DEFERRED: Mutex<Vec<Garbage>> = Mutex::new(Vec::new());

/// See [`kept`].
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A replaced version, freed by dropping it.
pub type Garbage = Box<dyn Any + Send>;

/// Proof that the update lock is held.
#[derive(Debug)]
pub struct UpdateGuard<'a>(#[expect(dead_code, reason = "held for its Drop")] MutexGuard<'a, ()>);

/// Takes the update lock, and sets up once the prerequisites of sections. Not re-entrant, and never needed by a site.
pub fn lock() -> UpdateGuard<'static> {
    thread::pin_this_object();
    let locked = lock_without_setup();
    set_up(&locked);
    locked
}

/// Takes the update lock without setting up the prerequisites of sections: for callers that only read, and for code that runs before `main` or
/// inside `dlopen` and switches nothing on.
pub fn lock_without_setup() -> UpdateGuard<'static> {
    // Before the lock is taken: a child forked while it is held must find it free.
    fork::register(&FORK_HOOKS);
    UpdateGuard(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs once per process, before anything is switched on. The lock is also held around a fork, so a child finds this done or not begun.
fn set_up(_: &UpdateGuard<'_>) {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Relaxed: the update lock is held.
    if !DONE.load(Ordering::Relaxed) {
        thread::prepare();
        DONE.store(true, Ordering::Relaxed);
    }
}

/// Waits for a grace period, then frees `garbage` and the versions deferred by earlier calls. The update lock must not be held.
///
/// Inside a section, where waiting would deadlock, it defers `garbage` instead. It does not wait if there is nothing to free.
pub fn retire(garbage: Vec<Garbage>) {
    let in_section = thread::in_section();
    let mut deferred = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
    if in_section {
        deferred.extend(garbage);
        return;
    }
    let earlier = std::mem::take(&mut *deferred);
    drop(deferred);
    if garbage.is_empty() && earlier.is_empty() {
        return;
    }
    if thread::wait_for_grace_period() {
        // Dropping runs user code (of values that a probe owns), so no lock is held here.
        drop(garbage);
        drop(earlier);
    } else {
        // Without the fence it is unknown whether a reader uses it: it is leaked, and counted.
        KEPT.fetch_add(garbage.len() + earlier.len(), Ordering::Relaxed);
        std::mem::forget((garbage, earlier));
    }
}

/// Returns whether versions are deferred to the next `retire`.
pub(crate) fn has_deferred() -> bool {
    !DEFERRED.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Waits for a grace period. Returns `false` if the kernel no longer provides the fence for it.
#[must_use]
pub(crate) fn wait_for_grace_period() -> bool {
    thread::wait_for_grace_period()
}

/// Number of replaced lists and probes that were leaked, because the kernel refused the fence that a grace period needs.
pub fn kept() -> usize {
    KEPT.load(Ordering::Relaxed)
}

/// Returns whether the calling thread is inside a probe, a filter or a field expression, where waiting for probes to end would deadlock.
pub fn in_probe() -> bool {
    thread::in_section()
}

/// Waits for a grace period. Inside a section it returns immediately.
///
/// When it returns, no thread is inside a probe or a marker that it entered before the call.
pub fn synchronize() {
    if !thread::in_section() {
        // Ignore a failure: `retire` then frees nothing.
        let _ = thread::wait_for_grace_period();
    }
    retire(Vec::new());
}

/// Holds the locks of this module around a fork, so that the child finds them free and the lists consistent.
#[cfg(posix)]
mod around_fork {
    use super::{DEFERRED, Garbage, LOCK};
    use crate::primitive::MutexGuard;
    use std::cell::UnsafeCell;
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct ForkGuards {
        _control: MutexGuard<'static, ()>,
        _deferred: MutexGuard<'static, Vec<Garbage>>,
        /// Number of calls of `before`: handlers installed twice run twice.
        times: u32,
    }

    /// The guards of the forking thread. Not in a thread-local, whose first use would call the dynamic linker.
    struct ForkGuardsCell(UnsafeCell<Option<ForkGuards>>);

    // SAFETY: `before` and `after` access the contents only while the calling thread holds the update lock, and the thread that stored the
    // guards (in the child, its copy) drops them.
    unsafe impl Sync for ForkGuardsCell {}

    static HELD: ForkGuardsCell = ForkGuardsCell(UnsafeCell::new(None));

    /// The thread that holds the locks for its fork; 0 if there is none. Relaxed: a thread compares it only with its own id, which no other
    /// thread stores.
    static FORKING: AtomicUsize = AtomicUsize::new(0);

    fn this_thread() -> usize {
        // SAFETY: takes no arguments and cannot fail.
        unsafe { libc::pthread_self() as usize }
    }

    /// Runs in the parent before the fork: takes the locks.
    pub(super) fn before() {
        let this_thread = this_thread();
        if FORKING.load(Ordering::Relaxed) == this_thread {
            // SAFETY: this thread has held the update lock since it stored its id; the reference ends in this block.
            if let Some(held) = unsafe { &mut *HELD.0.get() } {
                held.times += 1;
            }
            return;
        }
        let held = ForkGuards {
            _control: LOCK.lock().unwrap_or_else(PoisonError::into_inner),
            _deferred: DEFERRED.lock().unwrap_or_else(PoisonError::into_inner),
            times: 1,
        };
        // SAFETY: this thread holds the update lock.
        unsafe { *HELD.0.get() = Some(held) };
        FORKING.store(this_thread, Ordering::Relaxed);
    }

    /// Runs in the parent and in the child after the fork: releases the locks.
    pub(super) fn after() {
        if FORKING.load(Ordering::Relaxed) != this_thread() {
            return;
        }
        // SAFETY: this thread has held the update lock since it stored its id; the reference is not used after the lock is released.
        let guards = unsafe { &mut *HELD.0.get() };
        if let Some(held) = guards {
            held.times -= 1;
            if held.times > 0 {
                return;
            }
        }
        FORKING.store(0, Ordering::Relaxed);
        let held = guards.take();
        drop(held);
    }
}

/// This target has no fork.
#[cfg(not(posix))]
mod around_fork {
    pub(super) fn before() {}
    pub(super) fn after() {}
}
