//! The linked objects of the process that hold sites: a list of nodes that live in the objects themselves.

use super::entry::{Entry, Site};
use super::segment::Segments;
use super::writable;
use crate::site::Table;
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use tracepoint_ring::update::{self, UpdateGuard};

/// A linked object's description of itself, made by the assembler (`__tracepoint_object!`); writable, for the link.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    next: AtomicPtr<Object>,
    sites: [*const Entry; 2],
    /// The registry's tables of tracepoints and of markers: arrays of references.
    tables: [[*const *const (); 2]; 2],
    /// Filled in when the object is registered; zeros before, and where its code was not found.
    code: UnsafeCell<Segments>,
}

// The assembler's description: an address, three pairs of addresses, and `.fill 12, 8, 0`.
const _: () = assert!(size_of::<Object>() == (1 + 3 * 2 + 12) * 8 && align_of::<Object>() == 8);

/// The objects, last come first. Read and changed under the control lock, so that all that is done to it is Relaxed; nodes stay linked
/// while their object is loaded.
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(null_mut());

/// How often the list has changed.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Another number than before: objects have come, or gone.
pub(crate) fn changes(_: &UpdateGuard<'_>) -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// What stands between a section's start and stop. Both are null where the object has no such section.
///
/// # Safety
///
/// They stay where they are for the whole of `'a`.
unsafe fn between<'a, T>([start, stop]: [*const T; 2]) -> &'a [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the linker's start and stop symbols of one section, which holds nothing but `T`s, aligned and without gaps, and is
    // loaded, as the caller says.
    unsafe { std::slice::from_raw_parts(start, stop.offset_from_unsigned(start)) }
}

impl Object {
    pub(super) fn entries(&self) -> &[Entry] {
        // SAFETY: a part of the object that `self` is a part of.
        unsafe { between(self.sites) }
    }

    /// The site that `entry`, one of this object's, describes, unless what stands there is foreign.
    pub(super) fn site(&self, entry: &Entry) -> Option<Site<'_>> {
        entry.site(self.code())
    }

    /// Whether its code was found; without it every site is foreign.
    pub(super) fn is_known(&self) -> bool {
        self.code().is_known()
    }

    /// One of the object's tables.
    pub(crate) fn table(&self, table: Table) -> &[*const ()] {
        // SAFETY: as in `entries`.
        unsafe { between(self.tables[table as usize]) }
    }

    fn code(&self) -> &Segments {
        // SAFETY: written once, in `register_object`, before the node could be found.
        unsafe { &*self.code.get() }
    }
}

/// All objects. They stay where they are while the control lock is held: who unloads one waits for it.
pub(crate) fn objects<'l>(_: &'l UpdateGuard<'_>) -> impl Iterator<Item = &'l Object> {
    let mut at = OBJECTS.load(Ordering::Relaxed);
    std::iter::from_fn(move || {
        // SAFETY: linked nodes are statics of objects that are loaded: they are unlinked, under the control lock, before that ends.
        let object = unsafe { at.as_ref() }?;
        at = object.next.load(Ordering::Relaxed);
        Some(object)
    })
}

/// Makes a linked object known. Called by its constructor, before `main` or inside `dlopen`.
///
/// # Safety
///
/// `object` is the object's own description, alive until [`unregister_object`] is called with it.
pub unsafe extern "C" fn register_object(object: *mut Object) {
    let code = Segments::of_object_with(object.addr());
    let locked = update::lock_without_setup();
    // SAFETY: the caller's promise; `next` is the only part that changes once the node is linked, and it is atomic.
    let node = unsafe { &*object };
    // Linkers that compile (linker-plugin LTO) keep every copy of the constructor: each calls with the one description.
    if objects(&locked).any(|known| std::ptr::eq(known, node)) {
        return;
    }
    // SAFETY: nobody reads it before the node is linked, below; only this function writes, under the control lock.
    unsafe { *node.code.get() = code };
    node.next.store(OBJECTS.load(Ordering::Relaxed), Ordering::Relaxed);
    OBJECTS.store(object, Ordering::Relaxed);
    CHANGES.fetch_add(1, Ordering::Relaxed);
    super::switch_arrived(node, &locked);
}

/// Forgets a linked object. Called by its destructor: at exit, or inside `dlclose`.
///
/// # Safety
///
/// `object` was registered.
pub unsafe extern "C" fn unregister_object(object: *mut Object) {
    let _locked = update::lock_without_setup();
    let mut link = &OBJECTS;
    loop {
        let at = link.load(Ordering::Relaxed);
        // SAFETY: linked nodes are statics of objects that are loaded; the control lock keeps the list as it is.
        let Some(node) = (unsafe { at.as_ref() }) else { return };
        if at == object {
            link.store(node.next.load(Ordering::Relaxed), Ordering::Relaxed);
            CHANGES.fetch_add(1, Ordering::Relaxed);
            writable::forget(node.code());
            return;
        }
        link = &node.next;
    }
}
