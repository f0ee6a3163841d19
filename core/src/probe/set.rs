//! The probes of a tracepoint: an immutable list that every change replaces.

use super::MAX_PROBE_DEPTH;
use crate::key::Key;
use crate::site::{KeyBatch, SiteSwitchError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tracepoint_ring::rcu_pointer::RcuPointer;
use tracepoint_ring::thread::ThreadSlot;
use tracepoint_ring::update::{self, Garbage, UpdateGuard};

/// Calls the closure behind `node` with the arguments behind `args`.
type Call = unsafe fn(node: *const (), args: *const ());

/// A registered closure. Lists point to it; the registration owns it, and it is freed after the grace period of its removal.
#[repr(C)]
struct Node<F> {
    head: NodeHead,
    probe: F,
}

/// The part of a [`Node`] that does not depend on the closure's type; it is the first field.
#[derive(Debug)]
struct NodeHead {
    set: &'static ProbeSet,
    /// Set when the probe has panicked; it is then not called again. The cold path, which may run in a signal handler, only sets this flag. The
    /// node stays in the list until the probe is unregistered, because unregistering guarantees that the probe's data are dropped.
    dead: AtomicBool,
}

/// Owns a [`Node`] whose type is erased, from its removal from the list on.
#[derive(Debug)]
struct NodePtr {
    node: *mut (),
    free: unsafe fn(*mut ()),
}

// SAFETY: a raw box with this one owner; `connect` requires that the closure is Send and Sync.
unsafe impl Send for NodePtr {}

impl Drop for NodePtr {
    fn drop(&mut self) {
        // SAFETY: `node` came from `Box::into_raw` for the type that `free` was made for. It is dropped once, after the grace period that
        // follows its removal from the list.
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

/// The type of the arguments of one call, generic over their lifetime. Implemented for tracepoint types by the macros.
pub trait ArgumentsType: 'static {
    /// The arguments.
    #[doc(hidden)]
    type Args<'a>;
}

/// The probes of a tracepoint at one time. Immutable.
#[derive(Debug)]
struct ProbeList {
    entries: Box<[Entry]>,
}

// SAFETY: entries point to nodes whose closures are Send and Sync (`connect` requires it); the list itself is plain data.
unsafe impl Send for ProbeList {}
// SAFETY: as above; nothing in a list changes after it is published.
unsafe impl Sync for ProbeList {}

/// The probes of one tracepoint, and the key that they keep on.
#[derive(Debug)]
pub struct ProbeSet {
    key: &'static Key,
    list: RcuPointer<ProbeList>,
    /// Called under the update lock after each change of the list, before the grace period, because the change may decide between fast
    /// path and full path.
    changed: fn(&UpdateGuard<'_>),
    panics: AtomicU64,
    skipped: AtomicU64,
}

impl ProbeSet {
    /// Built by the macros only.
    pub const fn new(key: &'static Key, changed: fn(&UpdateGuard<'_>)) -> Self {
        Self { key, list: RcuPointer::null(), changed, panics: AtomicU64::new(0), skipped: AtomicU64::new(0) }
    }

    /// The tracepoint's key.
    pub(crate) const fn key(&self) -> &'static Key {
        self.key
    }

    /// The number of probe calls and condition evaluations that panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of probe calls that were skipped because probes were nested too deep.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }
}

// -- called by sites ---------------------------------------------------------------------------------------------------------

impl ProbeSet {
    /// Returns whether a probe is connected at the moment.
    pub(crate) fn has_probes(&self) -> bool {
        self.list.is_some()
    }

    /// Runs all probes. Called inside a read-side section of `slot`.
    ///
    /// # Safety
    ///
    /// `args` points to live arguments of the set's tracepoint.
    #[inline(always)]
    pub(crate) unsafe fn run(&self, slot: &ThreadSlot, args: *const ()) {
        // SAFETY: the caller is inside a read-side section, and the list is not used after it ends.
        let Some(list) = (unsafe { self.list.read() }) else { return };
        let depth = slot.callback_depth.load(Ordering::Relaxed);
        if depth >= MAX_PROBE_DEPTH {
            self.skipped.fetch_add(list.entries.len() as u64, Ordering::Relaxed);
            return;
        }
        slot.callback_depth.store(depth + 1, Ordering::Relaxed);
        for entry in &list.entries {
            // SAFETY: nodes outlive the lists that hold them: they are freed after the grace period of their removal. The node and
            // `args` have the types that `call` was made for, those of this set.
            unsafe { (entry.call)(entry.node, args) }
        }
        slot.callback_depth.store(depth, Ordering::Relaxed);
    }
}

/// # Safety
///
/// `node` points to a live `Node<F>`, `args` to live arguments of `T`.
unsafe fn call<T: ArgumentsType, F>(node: *const (), args: *const ())
where
    F: for<'a, 'b> Fn(&'b T::Args<'a>) + Send + Sync + 'static,
{
    // SAFETY: the caller passes a live node of this type.
    let node = unsafe { &*node.cast::<Node<F>>() };
    if node.head.dead.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the caller passes live arguments of T.
    let args = unsafe { &*args.cast::<T::Args<'_>>() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (node.probe)(args))) {
        node.head.panicked();
        tracepoint_ring::panic::swallow(panic);
    }
}

impl NodeHead {
    #[cold]
    fn panicked(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.set.panics.fetch_add(1, Ordering::Relaxed);
    }
}

/// # Safety
///
/// `node` came from `Box::into_raw` of a `Box<Node<F>>` and is freed once.
unsafe fn free<F>(node: *mut ()) {
    // SAFETY: the caller passes a node from `Box::into_raw`, and frees it once.
    drop(unsafe { Box::from_raw(node.cast::<Node<F>>()) });
}

// -- called by updaters ------------------------------------------------------------------------------------------------------

impl ProbeSet {
    /// Connects `probe` and returns the ticket of the registration.
    ///
    /// # Errors
    ///
    /// If the sites cannot be switched on; then the probe is dropped.
    pub(crate) fn connect<T, F>(&'static self, priority: i32, probe: F) -> Result<u64, SiteSwitchError>
    where
        T: ArgumentsType,
        F: for<'a, 'b> Fn(&'b T::Args<'a>) + Send + Sync + 'static,
    {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let ticket = NEXT.fetch_add(1, Ordering::Relaxed);
        let head = NodeHead { set: self, dead: AtomicBool::new(false) };
        let node = Box::into_raw(Box::new(Node { head, probe })).cast::<()>();
        let entry = Entry { call: call::<T, F>, node, free: free::<F>, priority, ticket };
        let locked = update::lock();
        let mut entries = self.entries(&locked);
        let place = entries.partition_point(|other| other.priority >= priority);
        entries.insert(place, entry);
        // The list is published before the key goes on, so that a site that sees the key on finds the probe.
        let mut garbage = self.publish(entries, &locked);
        let mut batch = KeyBatch::on(&locked);
        batch.add(self.key);
        let switched = batch.apply();
        if switched.is_err() {
            garbage.append(&mut self.remove(ticket, &locked));
        }
        drop(locked);
        update::retire(garbage);
        switched.map(|()| ticket)
    }

    /// Disconnects the probe of `ticket`, and waits as [`crate::probe`] describes.
    pub(crate) fn disconnect(&self, ticket: u64) {
        let locked = update::lock();
        // The key goes off before the list is replaced, so that sites stop entering the cold path. Switching off never fails.
        let mut batch = KeyBatch::off(&locked);
        batch.add(self.key);
        let _ = batch.apply();
        let garbage = self.remove(ticket, &locked);
        drop(locked);
        update::retire(garbage);
    }

    /// Publishes the list without the probe of `ticket`, and returns the data to be freed.
    fn remove(&self, ticket: u64, locked: &UpdateGuard<'_>) -> Vec<Garbage> {
        let (gone, kept): (Vec<_>, _) = self.entries(locked).into_iter().partition(|entry| entry.ticket == ticket);
        let mut garbage = self.publish(kept, locked);
        garbage.extend(gone.into_iter().map(|Entry { node, free, .. }| Box::new(NodePtr { node, free }) as Garbage));
        garbage
    }

    /// Number of connected probes, without those disconnected by a panic.
    pub(crate) fn count(&self) -> usize {
        let _locked = update::lock();
        // SAFETY: the update lock is held while the list is read, and lists are replaced under it only.
        let list = unsafe { self.list.read() };
        // SAFETY: nodes in the list are alive while the update lock is held, and begin with their head.
        let alive = |entry: &&Entry| !unsafe { &*entry.node.cast::<NodeHead>() }.dead.load(Ordering::Relaxed);
        list.map_or(0, |list| list.entries.iter().filter(alive).count())
    }

    fn entries(&self, _: &UpdateGuard<'_>) -> Vec<Entry> {
        // SAFETY: the update lock is held while the list is copied, and lists are replaced under it only.
        unsafe { self.list.read() }.map_or_else(Vec::new, |list| list.entries.to_vec())
    }

    fn publish(&self, entries: Vec<Entry>, locked: &UpdateGuard<'_>) -> Vec<Garbage> {
        let next = (!entries.is_empty()).then(|| Box::new(ProbeList { entries: entries.into() }));
        let old = self.list.replace(next);
        (self.changed)(locked);
        old.map(|old| Box::new(old) as Garbage).into_iter().collect()
    }
}
