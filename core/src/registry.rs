//! The tables of all tracepoints and markers of the linked object: gathered by the linker, readable before the first hit.
//!
//! `#[used]` statics in sections of their own: linkers that collect unreferenced sections keep them, because linkme retains
//! them. A crate that is a dependency in `Cargo.toml` only, and never named in the source, is not linked at all; write
//! `use that_crate as _;`.
//!
//! linkme's slice is that of one linked object. A program of several (Rust `dylib`s that share the core) has one table in each;
//! where sites are patched, each object makes its own known (see [`crate::site`]). A `cdylib` links a core of its own.

use crate::error::NotFound;
use crate::marker::Marker;
use crate::nearest::nearest_names;
use crate::site::{self, Table, objects};
use crate::tracepoint::Tracepoint;
use linkme::distributed_slice;
use tracepoint_ring::update::{self, UpdateGuard};

/// Where `define_trace!` puts its tracepoints.
#[distributed_slice]
pub static TRACEPOINTS: [&'static Tracepoint];

/// Where `define_trace!` and `trace_mark!` put their markers.
#[distributed_slice]
pub static MARKERS: [&'static Marker];

/// All tracepoints of this program (or of this `cdylib`), those that were never hit included, in no particular order.
///
/// Those of an object that is unloaded later (`dlclose`) are gone with it: nothing may be done with them from then on.
pub fn tracepoints() -> impl ExactSizeIterator<Item = &'static Tracepoint> + Clone {
    all_tracepoints(&update::lock_without_setup()).into_iter()
}

/// All markers of this program (or of this `cdylib`), derived and hand-written, in no particular order.
///
/// Those of an object that is unloaded later (`dlclose`) are gone with it: nothing may be done with them from then on.
pub fn markers() -> impl ExactSizeIterator<Item = &'static Marker> + Clone {
    all_markers(&update::lock_without_setup()).into_iter()
}

/// What there was when somebody listed it, and is there for as long as the process lives.
#[derive(Clone, Debug)]
pub struct Kept {
    /// As [`changes`] was.
    pub changes: u64,
    /// All tracepoints.
    pub tracepoints: Vec<&'static Tracepoint>,
    /// All markers.
    pub markers: Vec<&'static Marker>,
}

/// Another number than before if linked objects were loaded or unloaded since.
pub fn changes() -> u64 {
    site::changes(&update::lock_without_setup())
}

/// All tracepoints and markers, whose objects stay loaded from here on: `dlclose` leaves them where they are.
pub fn kept() -> Kept {
    site::keep_loaded(|locked| Kept {
        changes: site::changes(locked),
        tracepoints: all_tracepoints(locked),
        markers: all_markers(locked),
    })
}

/// All tracepoints, while objects stay loaded.
fn all_tracepoints(locked: &UpdateGuard<'_>) -> Vec<&'static Tracepoint> {
    // SAFETY: the section has the entries of `define_trace!`, and of nothing else.
    unsafe { gathered(&TRACEPOINTS, Table::Tracepoints, locked) }
}

/// All markers, while objects stay loaded.
pub(crate) fn all_markers(locked: &UpdateGuard<'_>) -> Vec<&'static Marker> {
    // SAFETY: the section has the entries of `define_trace!` and `trace_mark!`, and of nothing else.
    unsafe { gathered(&MARKERS, Table::Markers, locked) }
}

/// The slice of this linked object, and those of the other objects of the process that share this copy of the core.
///
/// # Safety
///
/// The objects' tables of this kind hold references to `T`s, statics of their objects.
unsafe fn gathered<T: 'static>(own: &'static [&'static T], table: Table, locked: &UpdateGuard<'_>) -> Vec<&'static T> {
    let mut all = own.to_vec();
    for other in objects(locked).map(|object| object.table(table)) {
        if !std::ptr::eq(other.as_ptr().cast(), own.as_ptr()) {
            // SAFETY: the caller's promise; objects stay loaded while the update lock is held.
            all.extend(other.iter().map(|entry| unsafe { &*entry.cast::<T>() }));
        }
    }
    all
}

/// The tracepoint called `name`, written `provider:name`. If several declarations share the name, the first of them. It is gone
/// with its object, if that is unloaded later (`dlclose`).
///
/// # Errors
///
/// [`NotFound`], with the names that come nearest.
pub fn find(name: &str) -> Result<&'static Tracepoint, NotFound> {
    let is_it = |tracepoint: &&Tracepoint| {
        name.split_once(':')
            .is_some_and(|(provider, rest)| tracepoint.provider() == provider && tracepoint.name() == rest)
    };
    // While objects stay loaded: names are theirs.
    let locked = update::lock_without_setup();
    let tracepoints = all_tracepoints(&locked);
    if let Some(found) = tracepoints.iter().copied().find(is_it) {
        return Ok(found);
    }
    let names: Vec<String> = tracepoints.iter().map(|tracepoint| tracepoint.full_name()).collect();
    drop(locked);
    Err(NotFound { name: name.to_owned(), nearest: nearest_names(name, names.iter().map(String::as_str)) })
}
