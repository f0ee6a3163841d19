//! Hooks around `fork`.
//!
//! After a fork the child has one thread, but a copy of the complete state. Each module with state of other threads, or of the parent,
//! [registers](register) hooks: the update lock is held around the fork, so that the child finds it free and the lists consistent; the
//! thread table is reset in the child, because a section that was open in another thread would stay open forever; channels are detached in
//! the child, because their rings belong to the parent.
//!
//! The hooks of the update lock are registered first: the lock is taken before the other hooks run, and released after them.
//!
//! A fork that begins before the handlers are installed runs without them. So does a child created by a raw `clone` system call; the C
//! library requires such a child to `exec` anyway.

#[cfg(posix)]
use crate::primitive::AtomicUsize;
use crate::primitive::Ordering;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

/// The hooks of one module around a fork.
#[derive(Debug)]
#[cfg_attr(not(posix), expect(dead_code, reason = "this target has no fork"))]
pub(crate) struct ForkHooks {
    /// Runs in the parent, before the fork.
    pub(crate) before: fn(),
    /// Runs in the parent, after the fork.
    pub(crate) in_parent: fn(),
    /// Runs in the child, where no other thread exists.
    pub(crate) in_child: fn(),
}

/// Maximum number of modules.
const MODULES: usize = 4;

static HOOKS: [AtomicPtr<ForkHooks>; MODULES] = [const { AtomicPtr::new(null_mut()) }; MODULES];

/// Registers hooks; registering the same ones again has no effect. Does not allocate. A concurrent fork may run without them.
///
/// # Panics
///
/// If there are more modules than [`MODULES`].
pub(crate) fn register(hooks: &'static ForkHooks) {
    let new = std::ptr::from_ref(hooks).cast_mut();
    let found = HOOKS.iter().any(|entry| {
        // A3: pairs with the load in `hooks`: the module's actions before registering happen before its hooks run.
        let taken = entry.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(new)
    });
    assert!(found, "at most {MODULES} modules register fork hooks");
    install();
}

/// The hooks of all modules in the order of registration.
#[cfg(posix)]
fn hooks() -> impl DoubleEndedIterator<Item = &'static ForkHooks> {
    HOOKS.iter().filter_map(|entry| {
        // A3: pairs with the exchange in `register`.
        // SAFETY: null, or made of a `&'static ForkHooks` in `register`.
        unsafe { entry.load(Ordering::Acquire).as_ref() }
    })
}

/// Installs the handlers, possibly more than once: two threads may be the first, and a child forked in the middle of this could not
/// rely on another thread to finish it. Handlers that run twice are harmless.
#[cfg(posix)]
fn install() {
    static INSTALLED: AtomicUsize = AtomicUsize::new(0);
    // A1: pairs with the Release store below.
    if INSTALLED.load(Ordering::Acquire) != 0 {
        return;
    }
    // A failure (out of memory) leaves children without the reset; there is no way to report it.
    // SAFETY: the three handlers have the required signature, and only access state of this crate.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    // A1: pairs with the Acquire load above: for a thread that finds them installed, a later fork runs them.
    INSTALLED.store(1, Ordering::Release);
}

#[cfg(not(posix))]
fn install() {}

#[cfg(posix)]
extern "C" fn before() {
    hooks().for_each(|module| (module.before)());
}

#[cfg(posix)]
extern "C" fn in_parent() {
    hooks().rev().for_each(|module| (module.in_parent)());
}

#[cfg(posix)]
extern "C" fn in_child() {
    hooks().rev().for_each(|module| (module.in_child)());
}
