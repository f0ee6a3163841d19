//! The immutable list of a tracepoint's probes, and the three ways to replace it.

use crate::control::{self, Garbage, Locked};
use crate::probe::MAX_PROBE_DEPTH;
use crate::thread::ThreadSlot;
use crate::tracepoint::{Tracepoint, TracepointType};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls the closure behind `node` with the arguments behind `args`.
type Call = unsafe fn(node: *const (), args: *const ());

/// A registered closure. Lists point to it; it is owned by the registration and freed after the grace period of its removal.
struct Node<F> {
    tracepoint: &'static Tracepoint,
    ticket: u64,
    probe: F,
}

/// Owns a [`Node`] of some type, as garbage and before.
#[derive(Debug)]
struct NodePtr {
    node: *mut (),
    free: unsafe fn(*mut ()),
}

// SAFETY: the node is a box in waiting, reached by one owner only; `register` demands that the closure is Send and Sync.
unsafe impl Send for NodePtr {}

impl Drop for NodePtr {
    fn drop(&mut self) {
        // SAFETY: `node` came from `Box::into_raw` for the type that `free` was made for, and its owner, who let a grace period
        // pass after it left the list, drops it once.
        unsafe { (self.free)(self.node) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    call: Call,
    node: *mut (),
    free: unsafe fn(*mut ()),
    priority: i32,
    ticket: u64,
}

/// The probes of a tracepoint at one time. Immutable.
#[derive(Debug)]
pub(crate) struct ProbeList {
    entries: Box<[Entry]>,
}

// SAFETY: entries point to nodes whose closures are Send and Sync (`register` demands it); the list itself is plain data.
unsafe impl Send for ProbeList {}
// SAFETY: as above; nothing in a list changes after it is published.
unsafe impl Sync for ProbeList {}

// -- data plane ---------------------------------------------------------------------------------------------------------

impl Tracepoint {
    /// Runs all probes. Called inside a section of `slot`.
    ///
    /// # Safety
    ///
    /// `args` points to live arguments of this tracepoint's type.
    #[inline(always)]
    pub(crate) unsafe fn run_probes(&self, slot: &ThreadSlot, args: *const ()) {
        // SAFETY: inside a section, and done with the list before it ends.
        let Some(list) = (unsafe { self.probes.read() }) else { return };
        let depth = slot.probe_depth.load(Ordering::Relaxed);
        if depth >= MAX_PROBE_DEPTH {
            self.skipped.fetch_add(list.entries.len() as u64, Ordering::Relaxed);
            return;
        }
        slot.probe_depth.store(depth + 1, Ordering::Relaxed);
        for entry in &list.entries {
            // SAFETY: nodes outlive the lists that hold them (they are freed after the grace period of their removal), and both
            // the node and `args` are of the types that `call` was made for, those of this tracepoint.
            unsafe { (entry.call)(entry.node, args) }
        }
        slot.probe_depth.store(depth, Ordering::Relaxed);
    }
}

/// # Safety
///
/// `node` points to a live `Node<F>`, `args` to live arguments of `T`.
unsafe fn call<T: TracepointType, F>(node: *const (), args: *const ())
where
    F: for<'a, 'b> Fn(&'b T::Args<'a>) + Send + Sync + 'static,
{
    // SAFETY: the caller passes a live node of this type.
    let node = unsafe { &*node.cast::<Node<F>>() };
    // SAFETY: the caller passes live arguments of T.
    let args = unsafe { &*args.cast::<T::Args<'_>>() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (node.probe)(args))) {
        node.tracepoint.probe_panicked(node.ticket);
        crate::panic::swallow(panic);
    }
}

/// # Safety
///
/// `node` came from `Box::into_raw` of a `Box<Node<F>>` and is freed once.
unsafe fn free<F>(node: *mut ()) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(node.cast::<Node<F>>()) });
}

// -- control plane ------------------------------------------------------------------------------------------------------

impl Tracepoint {
    /// Connects `probe` and gives the ticket of the registration.
    pub(crate) fn connect<T, F>(&'static self, priority: i32, probe: F) -> u64
    where
        T: TracepointType,
        F: for<'a, 'b> Fn(&'b T::Args<'a>) + Send + Sync + 'static,
    {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        crate::panic::install_silent_hook();
        let ticket = NEXT.fetch_add(1, Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { tracepoint: self, ticket, probe })).cast::<()>();
        let entry = Entry { call: call::<T, F>, node, free: free::<F>, priority, ticket };
        let locked = control::lock();
        let mut entries = self.entries(&locked);
        let place = entries.partition_point(|other| other.priority >= priority);
        entries.insert(place, entry);
        // 0 → 1 and N → N + 1: the list first, so that a site that sees the key on finds the probe.
        let old = self.publish(entries, &locked);
        self.key.enable(&locked);
        drop(locked);
        control::retire(old);
        ticket
    }

    /// Disconnects the probe of `ticket`, if a panic has not done so before, and waits as the module head says.
    pub(crate) fn disconnect(&self, ticket: u64) {
        let garbage = self.remove(ticket);
        if garbage.is_empty() {
            // Disconnected by a panic before: what it owned is freed elsewhere, but it may still be running.
            return control::synchronize();
        }
        control::retire(garbage);
    }

    #[cold]
    fn probe_panicked(&self, ticket: u64) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        let garbage = self.remove(ticket);
        // Inside a section (the probe ran in it), so this only puts the garbage aside.
        control::retire(garbage);
    }

    fn remove(&self, ticket: u64) -> Vec<Garbage> {
        let locked = control::lock();
        let mut entries = self.entries(&locked);
        let Some(place) = entries.iter().position(|entry| entry.ticket == ticket) else {
            return Vec::new();
        };
        let entry = entries.remove(place);
        // 1 → 0: the key first, so that sites stop coming; N → N - 1: it stays on.
        self.key.disable(&locked);
        let mut garbage = self.publish(entries, &locked);
        garbage.push(Box::new(NodePtr { node: entry.node, free: entry.free }));
        garbage
    }

    /// How many probes are connected.
    pub fn probe_count(&self) -> usize {
        self.entries(&control::lock()).len()
    }

    fn entries(&self, _: &Locked<'_>) -> Vec<Entry> {
        // SAFETY: the control lock is held while the list is copied, and lists are replaced under it only.
        unsafe { self.probes.read() }.map_or_else(Vec::new, |list| list.entries.to_vec())
    }

    fn publish(&self, entries: Vec<Entry>, _: &Locked<'_>) -> Vec<Garbage> {
        let next = (!entries.is_empty()).then(|| Box::new(ProbeList { entries: entries.into() }));
        self.probes.replace(next).map(|old| Box::new(old) as Garbage).into_iter().collect()
    }
}
