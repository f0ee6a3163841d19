//! The tables where sites are patched: sections of ours, which the constructor of each linked object registers with its sites.

use super::{Marker, Tracepoint};
use crate::site::{Table, objects, own_object};
use tracepoint_ring::update::UpdateGuard;

pub(super) fn tracepoints(locked: &UpdateGuard<'_>) -> Vec<&'static Tracepoint> {
    // SAFETY: the section holds only what `__tracepoint_list!` puts there.
    unsafe { gathered(Table::Tracepoints, locked) }
}

pub(super) fn markers(locked: &UpdateGuard<'_>) -> Vec<&'static Marker> {
    // SAFETY: as above.
    unsafe { gathered(Table::Markers, locked) }
}

pub(super) fn has_several_objects(locked: &UpdateGuard<'_>) -> bool {
    objects(locked).any(|object| !own_object().is_some_and(|own| std::ptr::eq(own, object)))
}

/// The table of the object that contains the core, and the tables of the other objects that share it. The former does not depend on its
/// registration, because constructors and destructors of the program may also call this.
///
/// # Safety
///
/// The objects' tables of this kind hold references to `T`s, statics of their objects.
unsafe fn gathered<T: 'static>(table: Table, locked: &UpdateGuard<'_>) -> Vec<&'static T> {
    let own = own_object();
    let others = objects(locked).filter(|object| own.is_none_or(|own| !std::ptr::eq(own, *object)));
    let entries = own.into_iter().chain(others).flat_map(|object| object.table(table));
    // SAFETY: the caller promises that the entries are references to `T`s; objects stay loaded while the update lock is held.
    entries.map(|entry| unsafe { &*entry.cast::<T>() }).collect()
}
