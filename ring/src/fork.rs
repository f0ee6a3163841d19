//! What a child process must forget: hooks of this library's parts around `fork`.
//!
//! After fork the child has one thread, but a copy of all state. A part that has state of other threads, or of the parent,
//! [registers](register) what it does around a fork: the update lock is taken before and released after, so that the child finds it free
//! and the lists whole; the table of threads is reset in the child, since a section that was open in another thread would stay open for
//! ever; channels are detached in the child, since their rings are the parent's.
//!
//! Parts are registered under the update lock, which is the first of them: it is taken before the others run, and released after them.
//!
//! A fork that has begun before the handlers are installed runs without them. So does a child made by a raw `clone` system call; such
//! a child must `exec`, as the C library asks of it anyway.

#[cfg(posix)]
use crate::primitive::AtomicUsize;
use crate::primitive::Ordering;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

/// What one part does around a fork.
#[derive(Debug)]
#[cfg_attr(not(posix), expect(dead_code, reason = "there is no fork"))]
pub(crate) struct ForkHooks {
    /// In the parent, before.
    pub(crate) before: fn(),
    /// In the parent, after.
    pub(crate) in_parent: fn(),
    /// In the child, where no other thread exists.
    pub(crate) in_child: fn(),
}

/// How many parts there can be.
const PARTS: usize = 4;

static HOOKS: [AtomicPtr<ForkHooks>; PARTS] = [const { AtomicPtr::new(null_mut()) }; PARTS];

/// Adds a part, once or more often. Does not allocate. A fork in the middle of it may run without the part's hooks.
///
/// # Panics
///
/// If there are more parts than places.
pub(crate) fn register(hooks: &'static ForkHooks) {
    let new = std::ptr::from_ref(hooks).cast_mut();
    let found = HOOKS.iter().any(|place| {
        // A2: Release and Acquire: what the part has done before it registered is done when its hooks run.
        let taken = place.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok() || taken == Err(new)
    });
    assert!(found, "there are places for {PARTS} parts");
    install();
}

/// The hooks of all parts, in the order in which they were registered.
#[cfg(posix)]
fn hooks() -> impl DoubleEndedIterator<Item = &'static ForkHooks> {
    HOOKS.iter().filter_map(|place| {
        // SAFETY: null, or a `&'static ForkHooks` (`register`). A2: pairs with the exchange there.
        unsafe { place.load(Ordering::Acquire).as_ref() }
    })
}

/// Installs the handlers, once or more often: two threads may be the first, and a child may be forked in the middle of it, where
/// no thread would finish what one does for all. Handlers that run twice do no harm.
#[cfg(posix)]
fn install() {
    static INSTALLED: AtomicUsize = AtomicUsize::new(0);
    // A1: pairs with the Release store below.
    if INSTALLED.load(Ordering::Acquire) != 0 {
        return;
    }
    // SAFETY: the three handlers take nothing, return nothing, and only use what this crate owns.
    // A failure (out of memory) leaves the child without the reset; there is no one to report it to.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    // A1: a thread that finds them installed, and takes the update lock, knows that a later fork runs them.
    INSTALLED.store(1, Ordering::Release);
}

#[cfg(not(posix))]
fn install() {}

#[cfg(posix)]
extern "C" fn before() {
    hooks().for_each(|part| (part.before)());
}

#[cfg(posix)]
extern "C" fn in_parent() {
    hooks().rev().for_each(|part| (part.in_parent)());
}

#[cfg(posix)]
extern "C" fn in_child() {
    hooks().rev().for_each(|part| (part.in_child)());
}
