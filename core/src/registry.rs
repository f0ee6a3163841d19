//! The tables of all tracepoints and markers. The linker collects them, so that they can be read before the first event.
//!
//! linkme puts the entries into linker sections as retained `#[used]` statics, so that linkers which discard unreferenced sections keep
//! them. A crate that is a dependency in `Cargo.toml` only, and never named in the source, is not linked at all: write
//! `use that_crate as _;`.
//!
//! A linkme slice covers one linked object. A program of several objects (Rust `dylib`s that share the core) has one table in each;
//! where sites are patched, the constructor of each object registers its own (see [`crate::site`]). A `cdylib` links its own core.

use crate::error::NotFound;
use crate::marker::Marker;
use crate::nearest::nearest_names;
use crate::site::{self, Table, objects};
use crate::tracepoint::Tracepoint;
use linkme::distributed_slice;
use tracepoint_ring::update::{self, UpdateGuard};

/// The entries of `define_trace!`.
#[distributed_slice]
pub static TRACEPOINTS: [&'static Tracepoint];

/// The entries of `define_trace!` and `trace_mark!`.
#[distributed_slice]
pub static MARKERS: [&'static Marker];

/// All tracepoints of this program (or of this `cdylib`), including those that were never hit, in no particular order.
///
/// The tracepoints of an object that is unloaded later (`dlclose`) go away with it and must not be used from then on.
pub fn tracepoints() -> impl ExactSizeIterator<Item = &'static Tracepoint> + Clone {
    all_tracepoints(&update::lock_without_setup()).into_iter()
}

/// All markers of this program (or of this `cdylib`), derived and hand-written, in no particular order.
///
/// The markers of an object that is unloaded later (`dlclose`) go away with it and must not be used from then on.
pub fn markers() -> impl ExactSizeIterator<Item = &'static Marker> + Clone {
    all_markers(&update::lock_without_setup()).into_iter()
}

/// The tables as of one [`pin_objects`]. Their objects stay loaded until the process ends.
#[derive(Clone, Debug)]
pub struct PinnedTables {
    /// The value of [`object_generation`] at that time.
    pub generation: u64,
    /// All tracepoints.
    pub tracepoints: Vec<&'static Tracepoint>,
    /// All markers.
    pub markers: Vec<&'static Marker>,
}

/// A number that changes whenever a linked object is loaded or unloaded.
pub fn object_generation() -> u64 {
    site::object_generation(&update::lock_without_setup())
}

/// Lists all tracepoints and markers, and pins their objects: `dlclose` does not unload them from here on.
pub fn pin_objects() -> PinnedTables {
    site::pin_objects(|locked| PinnedTables {
        generation: site::object_generation(locked),
        tracepoints: all_tracepoints(locked),
        markers: all_markers(locked),
    })
}

/// All tracepoints. Objects stay loaded while the update lock is held.
fn all_tracepoints(locked: &UpdateGuard<'_>) -> Vec<&'static Tracepoint> {
    // SAFETY: the section holds only the entries of `define_trace!`.
    unsafe { gathered(&TRACEPOINTS, Table::Tracepoints, locked) }
}

/// All markers. Objects stay loaded while the update lock is held.
pub(crate) fn all_markers(locked: &UpdateGuard<'_>) -> Vec<&'static Marker> {
    // SAFETY: the section holds only the entries of `define_trace!` and `trace_mark!`.
    unsafe { gathered(&MARKERS, Table::Markers, locked) }
}

/// The slice of this linked object, and the slices of the other objects of the process that share this copy of the core.
///
/// # Safety
///
/// The objects' tables of this kind hold references to `T`s, statics of their objects.
unsafe fn gathered<T: 'static>(own: &'static [&'static T], table: Table, locked: &UpdateGuard<'_>) -> Vec<&'static T> {
    let mut all = own.to_vec();
    for other in objects(locked).map(|object| object.table(table)) {
        if !std::ptr::eq(other.as_ptr().cast(), own.as_ptr()) {
            // SAFETY: the caller promises that the entries are references to `T`s; objects stay loaded while the update lock is held.
            all.extend(other.iter().map(|entry| unsafe { &*entry.cast::<T>() }));
        }
    }
    all
}

/// The tracepoint called `name`, written `provider:name`; the first one, if several declarations share the name. If its object is
/// unloaded later (`dlclose`), the tracepoint goes away with it.
///
/// # Errors
///
/// [`NotFound`], with the most similar names.
pub fn find(name: &str) -> Result<&'static Tracepoint, NotFound> {
    let is_it = |tracepoint: &&Tracepoint| {
        name.split_once(':')
            .is_some_and(|(provider, rest)| tracepoint.provider() == provider && tracepoint.name() == rest)
    };
    // Held until the names are copied: they belong to objects, which stay loaded meanwhile.
    let locked = update::lock_without_setup();
    let tracepoints = all_tracepoints(&locked);
    if let Some(found) = tracepoints.iter().copied().find(is_it) {
        return Ok(found);
    }
    let names: Vec<String> = tracepoints.iter().map(|tracepoint| tracepoint.full_name()).collect();
    drop(locked);
    Err(NotFound { name: name.to_owned(), nearest: nearest_names(name, names.iter().map(String::as_str)) })
}
