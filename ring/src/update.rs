//! The update lock, what waits for a grace period, and fork.
//!
//! One lock serialises everything that replaces a published list or turns a key. It is held for those few stores only: never
//! while waiting for readers, never while user code (a probe, a `Drop` of what a probe owns) runs. What was replaced is handed
//! to [`retire`], which waits and frees outside a section, and puts it aside for the next change when called from inside one.
//!
//! The dynamic linker has a lock of its own, which it holds while it runs constructors and destructors, and those take the control
//! lock. So nothing that asks the dynamic linker is done under the update lock: no `dlopen`, no first use of a thread-local that
//! has a destructor.

use crate::fork::{self, ForkHooks};
use crate::primitive::{Mutex, MutexGuard};
use crate::thread;
use std::any::Any;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static LOCK: Mutex<()> = Mutex::new(());

static FORK_HOOKS: ForkHooks =
    ForkHooks { before: around_fork::before, in_parent: around_fork::after, in_child: around_fork::after };

/// What was replaced from inside a section, where waiting would never end.
static DEFERRED: Mutex<Vec<Garbage>> = Mutex::new(Vec::new());

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Anything that is freed by dropping it.
pub type Garbage = Box<dyn Any + Send>;

/// Proof that the update lock is held.
#[derive(Debug)]
pub struct UpdateGuard<'a>(#[expect(dead_code, reason = "held for its Drop")] MutexGuard<'a, ()>);

/// Takes the update lock. Not re-entrant, and never needed by a site.
pub fn lock() -> UpdateGuard<'static> {
    thread::pin_this_object();
    let locked = lock_without_setup();
    prepare(&locked);
    locked
}

/// Takes the update lock and makes no choices: for what only looks, and for what runs before `main` or inside `dlopen`, in whatever
/// process that happens, and switches nothing on by itself.
pub fn lock_without_setup() -> UpdateGuard<'static> {
    // First: a child that is forked while the lock is held must find it free.
    fork::register(&FORK_HOOKS);
    UpdateGuard(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Once per process, before anything is switched on. Under the lock, which is held around a fork: a child finds it done or not begun.
fn prepare(_: &UpdateGuard<'_>) {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    // Relaxed: both under the update lock.
    if !PREPARED.load(Ordering::Relaxed) {
        thread::prepare();
        PREPARED.store(true, Ordering::Relaxed);
    }
}

/// Frees `garbage`, and what earlier calls put aside, after a grace period. The update lock is not held.
///
/// Inside a section nothing can be waited for: there `garbage` is put aside. Without any garbage there is nothing to wait for.
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
        // Dropping runs user code (what a probe owns); nothing is locked here.
        drop(garbage);
        drop(earlier);
    } else {
        // Somebody may be using it, and there is no way to find out: it stays, and is counted.
        KEPT.fetch_add(garbage.len() + earlier.len(), Ordering::Relaxed);
        std::mem::forget((garbage, earlier));
    }
}

/// Whether something was put aside, for which the next `retire` waits.
pub(crate) fn has_deferred() -> bool {
    !DEFERRED.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Waits for a grace period; `false` if none can be had.
#[must_use]
pub(crate) fn wait_for_grace_period() -> bool {
    thread::wait_for_grace_period()
}

/// How many replaced lists and probes were kept because the kernel refused the fence that a grace period needs.
pub fn kept() -> usize {
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
        let _ = thread::wait_for_grace_period();
    }
    retire(Vec::new());
}

/// Holds the locks of this module around a fork, so that the child finds them free and the lists whole.
#[cfg(posix)]
mod around_fork {
    use super::{DEFERRED, Garbage, LOCK};
    use crate::primitive::MutexGuard;
    use std::cell::UnsafeCell;
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Held {
        _control: MutexGuard<'static, ()>,
        _deferred: MutexGuard<'static, Vec<Garbage>>,
        /// How often `before` was called: handlers that were installed twice are run twice.
        times: u32,
    }

    /// What the thread that forks holds. Not in a thread-local: its first use would ask the dynamic linker.
    struct Place(UnsafeCell<Option<Held>>);

    // SAFETY: only the holder of the update lock touches what is inside, and the guards are dropped by the thread that put them there
    // (in the child, by its copy): `before` and `after` see to both.
    unsafe impl Sync for Place {}

    static HELD: Place = Place(UnsafeCell::new(None));

    /// The thread that holds the locks for its fork; 0 if none does. Relaxed: a thread looks for itself only, which nobody else
    /// stores.
    static FORKING: AtomicUsize = AtomicUsize::new(0);

    fn this_thread() -> usize {
        // SAFETY: takes nothing and cannot fail.
        unsafe { libc::pthread_self() as usize }
    }

    /// In the parent, before.
    pub(super) fn before() {
        let this_thread = this_thread();
        if FORKING.load(Ordering::Relaxed) == this_thread {
            // SAFETY: this thread holds the update lock since it stored itself, and the reference ends here.
            if let Some(held) = unsafe { &mut *HELD.0.get() } {
                held.times += 1;
            }
            return;
        }
        let held = Held {
            _control: LOCK.lock().unwrap_or_else(PoisonError::into_inner),
            _deferred: DEFERRED.lock().unwrap_or_else(PoisonError::into_inner),
            times: 1,
        };
        // SAFETY: this thread holds the update lock.
        unsafe { *HELD.0.get() = Some(held) };
        FORKING.store(this_thread, Ordering::Relaxed);
    }

    /// In the parent and in the child, after: gives the locks back.
    pub(super) fn after() {
        if FORKING.load(Ordering::Relaxed) != this_thread() {
            return;
        }
        // SAFETY: this thread holds the update lock since it stored itself; the reference is not used once the lock is given back.
        let place = unsafe { &mut *HELD.0.get() };
        if let Some(held) = place {
            held.times -= 1;
            if held.times > 0 {
                return;
            }
        }
        FORKING.store(0, Ordering::Relaxed);
        let held = place.take();
        drop(held);
    }
}

/// There is no fork.
#[cfg(not(posix))]
mod around_fork {
    pub(super) fn before() {}
    pub(super) fn after() {}
}
