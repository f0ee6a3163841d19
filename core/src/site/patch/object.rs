//! The linked objects of the process that contain sites: a linked list whose nodes are statics of the objects.

use super::entry::{Entry, Site};
use super::machine::own_description;
use super::segment::Segments;
use super::{indirect, split, writable};
use crate::hooks::{self, Registration};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use tracepoint_ring::update::{self, UpdateGuard};

/// A table of a linked object, other than the table of its sites.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Table {
    /// References to its tracepoints.
    Tracepoints,
    /// References to its markers.
    Markers,
}

/// The description of a linked object, emitted by the assembler (`__tracepoint_object!`) into writable data, for `next` and `code`.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    next: AtomicPtr<Object>,
    sites: [*const Entry; 2],
    /// The registry's tables of tracepoints and of markers: arrays of references.
    tables: [[*const *const (); 2]; 2],
    /// Set when the object is registered. Before, and if its code was not found, it is zero.
    code: UnsafeCell<Segments>,
}

// The assembler's description: an address, three pairs of addresses, and `.fill 12, 8, 0`.
const _: () = assert!(size_of::<Object>() == (1 + 3 * 2 + 12) * 8 && align_of::<Object>() == 8);

/// The objects, the most recently registered one first. Read and changed under the update lock, so all accesses are relaxed. A node stays linked
/// while its object is loaded.
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(null_mut());

/// The number of changes of the list.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// A number that changes whenever an object is registered or unregistered.
pub(crate) fn object_generation(_: &UpdateGuard<'_>) -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// The contents of a section, from its start and stop symbols. Both are null if the object has no such section.
///
/// # Safety
///
/// The pointers are the start and stop of a section of `T`s, which stays loaded for the whole of `'a`.
unsafe fn between<'a, T>([start, stop]: [*const T; 2]) -> &'a [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the linker's start and stop symbols of one section, which holds only `T`s, aligned and without gaps, and is
    // loaded, as the caller promises.
    unsafe { std::slice::from_raw_parts(start, stop.offset_from_unsigned(start)) }
}

impl Object {
    pub(super) fn entries(&self) -> &[Entry] {
        // SAFETY: the section of sites of the object that contains `self`, and is loaded as long as `self` is.
        unsafe { between(self.sites) }
    }

    /// The site of `entry`, which is an entry of this object; `None` if its bytes are foreign.
    pub(super) fn site(&self, entry: &Entry) -> Option<Site<'_>> {
        entry.site(self.code())
    }

    /// Returns whether the object's code was found; if not, all its sites are foreign.
    pub(super) fn is_known(&self) -> bool {
        self.code().is_known()
    }

    /// One of the object's tables.
    pub(crate) fn table(&self, table: Table) -> &[*const ()] {
        // SAFETY: a section of references in the object that contains `self`, as in `entries`.
        unsafe { between(self.tables[table as usize]) }
    }

    fn code(&self) -> &Segments {
        // SAFETY: written once, in `register_object`, before the node is linked.
        unsafe { &*self.code.get() }
    }
}

/// The object that contains the core; `None` if it has neither sites nor entries in its tables. It may be unregistered: its constructor
/// may not have run yet, and its destructor may have run already.
#[inline(never)]
pub(crate) fn own_object() -> Option<&'static Object> {
    // SAFETY: null, or a static of this object, which is loaded as long as this function is.
    unsafe { own_description().cast::<Object>().as_ref() }
}

/// All objects. They stay loaded while the update lock is held: the destructor of an object waits for the lock to unregister it.
pub(crate) fn objects<'l>(_: &'l UpdateGuard<'_>) -> impl Iterator<Item = &'l Object> {
    let mut at = OBJECTS.load(Ordering::Relaxed);
    std::iter::from_fn(move || {
        // SAFETY: linked nodes are statics of loaded objects: they are unlinked under the update lock before the object is unloaded.
        let object = unsafe { at.as_ref() }?;
        at = object.next.load(Ordering::Relaxed);
        Some(object)
    })
}

/// Registers a linked object, switches on its sites whose keys are on, and announces the object. Called by its constructor, before `main` or inside `dlopen`.
///
/// # Safety
///
/// `object` is the object's own description, alive until [`unregister_object`] is called with it.
pub unsafe extern "C" fn register_object(object: *mut Object) {
    let code = Segments::of_object_with(object.addr());
    let locked = update::lock_without_setup();
    // SAFETY: alive, as the caller promises; `next` is the only field that changes once the node is linked, and it is atomic.
    let node = unsafe { &*object };
    // Under linker-plugin LTO the linker keeps every copy of the constructor; all of them pass the same description.
    if objects(&locked).any(|known| std::ptr::eq(known, node)) {
        return;
    }
    // SAFETY: no thread reads it before the node is linked, below; only this function writes it, under the update lock.
    unsafe { *node.code.get() = code };
    node.next.store(OBJECTS.load(Ordering::Relaxed), Ordering::Relaxed);
    OBJECTS.store(object, Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    indirect::convert(node.entries(), node.code());
    super::switch_loaded(node, &locked);
    drop(locked);
    hooks::announce(Registration::Object);
}

/// Unregisters a linked object. Called by its destructor: at exit, or inside `dlclose`.
///
/// # Safety
///
/// `object` was registered.
pub unsafe extern "C" fn unregister_object(object: *mut Object) {
    let _locked = update::lock_without_setup();
    let mut link = &OBJECTS;
    loop {
        let at = link.load(Ordering::Relaxed);
        // SAFETY: linked nodes are statics of loaded objects, and the list does not change while the update lock is held.
        let Some(node) = (unsafe { at.as_ref() }) else { return };
        if at == object {
            link.store(node.next.load(Ordering::Relaxed), Ordering::Relaxed);
            GENERATION.fetch_add(1, Ordering::Relaxed);
            writable::forget(node.code());
            split::forget(node.code());
            indirect::forget(node.entries());
            return;
        }
        link = &node.next;
    }
}
