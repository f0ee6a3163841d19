//! Tracks which threads belong to a test session, and stores their events.

use super::event::Event;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracepoint_core::marker::{Aggregate, FieldView};

thread_local! {
    /// The ids of the sessions that the thread has entered; sessions may nest.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// True while the thread is storing an event.
    static KEEPING: Cell<bool> = const { Cell::new(false) };
}

/// The events of one session.
#[derive(Debug)]
pub(super) struct KeptEvents {
    id: u64,
    events: Mutex<Vec<Event>>,
    /// Number of events that interrupted the storing of another one on the same thread.
    missed: AtomicU64,
}

impl Default for KeptEvents {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), events: Mutex::default(), missed: AtomicU64::new(0) }
    }
}

impl KeptEvents {
    pub(super) fn member(self: &Arc<Self>) -> Member {
        Member { id: self.id }
    }

    #[track_caller]
    pub(super) fn events(&self) -> Vec<Event> {
        let missed = self.missed.load(Ordering::Relaxed);
        assert!(missed == 0, "{missed} events were missed: they occurred while another event was being stored");
        // Guarded: an event that a probe fires in `clone` would otherwise deadlock on this lock.
        while_keeping(|| self.lock().clone()).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_here(&self) -> bool {
        // A thread whose thread-locals are being destroyed, or that is just entering, belongs to no session.
        let entered = ENTERED.try_with(|entered| entered.try_borrow().is_ok_and(|ids| ids.contains(&self.id)));
        entered.unwrap_or(false)
    }
}

/// Runs `body`, unless the calling thread is already inside such a call.
fn while_keeping<R>(body: impl FnOnce() -> R) -> Option<R> {
    /// Clears the flag, also on a panic.
    struct ClearFlag;

    impl Drop for ClearFlag {
        fn drop(&mut self) {
            let _ = KEEPING.try_with(|keeping| keeping.set(false));
        }
    }

    if KEEPING.try_with(|keeping| keeping.replace(true)).unwrap_or(true) {
        return None;
    }
    let _done = ClearFlag;
    Some(body())
}

impl Aggregate for KeptEvents {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        if self.is_here() && while_keeping(|| self.lock().push(Event::new(time, event))).is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A handle by which other threads enter a test session.
#[derive(Clone, Debug)]
pub struct Member {
    id: u64,
}

impl Member {
    /// Adds the events of the calling thread to the session until the returned guard is dropped.
    #[must_use = "dropping it leaves the session"]
    pub fn enter(&self) -> ThreadGuard {
        ENTERED.with_borrow_mut(|entered| entered.push(self.id));
        ThreadGuard { id: self.id, thread: PhantomData }
    }
}

/// The calling thread's membership in a test session. Dropping it leaves the session.
#[derive(Debug)]
pub struct ThreadGuard {
    id: u64,
    /// Not `Send`: it belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            if let Some(last) = entered.iter().rposition(|id| *id == self.id) {
                entered.remove(last);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_while_storing_clears_the_flag() {
        assert_eq!(while_keeping(|| while_keeping(|| 1)), Some(None));
        let panicked = std::panic::catch_unwind(|| while_keeping(|| panic!("as the test wants it")));
        assert!(panicked.is_err());
        assert_eq!(while_keeping(|| 2), Some(2));
    }
}
