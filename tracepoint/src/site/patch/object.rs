//! The linked objects of the process that hold sites: a list of nodes that live in the objects themselves.

use super::entry::{Entry, Site};
use super::segment::Segments;
use crate::control;
use crate::marker::Marker;
use crate::tracepoint::Tracepoint;
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A linked object's description of itself, made by the assembler (`__tracepoint_object!`); writable, for the link.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    next: AtomicPtr<Object>,
    sites: [*const Entry; 2],
    tracepoints: [*const &'static Tracepoint; 2],
    markers: [*const &'static Marker; 2],
    /// Filled in when the object is registered; zeros before.
    code: UnsafeCell<Segments>,
}

/// The objects, last come first. Changed under the control lock; nodes stay linked while their object is loaded.
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(null_mut());

/// What stands between a section's start and stop. Both are null where the object has no such section.
fn between<T>([start, stop]: [*const T; 2]) -> &'static [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the linker's start and stop symbols of one section, which holds nothing but `T`s, aligned and without gaps, and is
    // loaded for as long as the object's node is linked.
    unsafe { std::slice::from_raw_parts(start, stop.offset_from_unsigned(start)) }
}

impl Object {
    pub(super) fn entries(&self) -> &'static [Entry] {
        between(self.sites)
    }

    /// The site that `entry`, one of this object's, describes, unless what stands there is foreign.
    pub(super) fn site(&self, entry: &Entry) -> Option<Site> {
        // SAFETY: written once, in `register_object`, before the node could be found.
        entry.site(unsafe { &*self.code.get() })
    }

    pub(crate) fn tracepoints(&self) -> &'static [&'static Tracepoint] {
        between(self.tracepoints)
    }

    pub(crate) fn markers(&self) -> &'static [&'static Marker] {
        between(self.markers)
    }
}

/// All objects.
pub(crate) fn objects() -> impl Iterator<Item = &'static Object> {
    // O1: Acquire pairs with the Release store in `register_object`.
    let mut at = OBJECTS.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: linked nodes are statics of objects that are loaded.
        let object = unsafe { at.as_ref() }?;
        at = object.next.load(Ordering::Acquire);
        Some(object)
    })
}

/// Makes a linked object known. Called by its constructor, before `main` or inside `dlopen`.
///
/// # Safety
///
/// `object` is the object's own description, alive until [`unregister_object`] is called with it.
pub unsafe extern "C" fn register_object(object: *mut Object) {
    let _locked = control::lock_alone();
    // SAFETY: the caller's promise; `next` is the only part that changes, and it is atomic.
    let node = unsafe { &*object };
    // Linkers that compile (linker-plugin LTO) keep every copy of the constructor: each calls with the one description.
    if objects().any(|known| std::ptr::eq(known, node)) {
        return;
    }
    // SAFETY: nobody reads it before the node is linked, below; only this function writes, under the control lock.
    unsafe { *node.code.get() = Segments::of_object_with(object.addr()) };
    node.next.store(OBJECTS.load(Ordering::Relaxed), Ordering::Relaxed);
    // O1: the node is whole before it is found. Pairs with the Acquire loads in `objects`.
    OBJECTS.store(object, Ordering::Release);
    super::switch_arrived(node);
}

/// Forgets a linked object. Called by its destructor: at exit, or inside `dlclose`.
///
/// # Safety
///
/// `object` was registered.
pub unsafe extern "C" fn unregister_object(object: *mut Object) {
    let _locked = control::lock_alone();
    let mut link = &OBJECTS;
    loop {
        let at = link.load(Ordering::Relaxed);
        // SAFETY: linked nodes are statics of objects that are loaded; the control lock keeps the list as it is.
        let Some(node) = (unsafe { at.as_ref() }) else { return };
        if at == object {
            link.store(node.next.load(Ordering::Relaxed), Ordering::Release);
            return;
        }
        link = &node.next;
    }
}
