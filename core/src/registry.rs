//! The tables of all tracepoints and markers. The linker collects them, so that they can be read before the first event.
//!
//! `__tracepoint_list!` puts references into linker sections that linkers retain even where they discard unreferenced sections. A crate
//! that is a dependency in `Cargo.toml` only, and never named in the source, is not linked at all: write `use that_crate as _;`.
//!
//! A program of several linked objects (Rust `dylib`s that share the core) has one table in each; where sites are patched, the
//! constructor of each object registers its own (see [`crate::site`]). A `cdylib` links its own core. The sections are our own there, next
//! to those of the sites, because a slice of `linkme` covers one object; elsewhere it is `linkme`, which knows other object formats.

#[cfg(patched_sites)]
mod sections;
#[cfg(not(patched_sites))]
mod slices;

#[cfg(patched_sites)]
use sections as tables;
#[cfg(not(patched_sites))]
use slices as tables;

use crate::error::TracepointNotFound;
use crate::marker::{Marker, runtime};
use crate::nearest::nearest_names;
use crate::site;
use crate::tracepoint::Tracepoint;
use tracepoint_ring::update::{self, UpdateGuard};

/// The entries of `define_trace!`.
#[cfg(not(any(patched_sites, target_family = "wasm")))]
#[linkme::distributed_slice]
pub static TRACEPOINTS: [&'static Tracepoint];

/// The entries of `define_trace!` and `trace_mark!`.
#[cfg(not(any(patched_sites, target_family = "wasm")))]
#[linkme::distributed_slice]
pub static MARKERS: [&'static Marker];

/// WebAssembly has no tables: `linkme` does not know its linker. What is declared there is not listed, and so never enabled.
#[cfg(target_family = "wasm")]
pub static TRACEPOINTS: [&Tracepoint; 0] = [];
/// See [`TRACEPOINTS`].
#[cfg(target_family = "wasm")]
pub static MARKERS: [&Marker; 0] = [];

/// All tracepoints of this program (or of this `cdylib`), including those that were never hit, in no particular order.
///
/// The tracepoints of an object that is unloaded later (`dlclose`) go away with it and must not be used from then on.
pub fn tracepoints() -> impl ExactSizeIterator<Item = &'static Tracepoint> + Clone {
    tables::tracepoints(&update::lock_without_setup()).into_iter()
}

/// All markers of this program (or of this `cdylib`), derived, hand-written and registered at run time, in no particular order.
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

/// A number that changes whenever a linked object is loaded or unloaded, or a marker is registered.
pub fn object_generation() -> u64 {
    generation(&update::lock_without_setup())
}

/// The sum of two numbers that only grow.
fn generation(locked: &UpdateGuard<'_>) -> u64 {
    site::object_generation(locked) + runtime::generation(locked)
}

/// Returns whether objects other than the core's own have tables: the core is then a shared object, and more objects may be loaded.
pub fn has_several_objects() -> bool {
    tables::has_several_objects(&update::lock_without_setup())
}

/// Lists all tracepoints and markers, and pins their objects: `dlclose` does not unload them from here on.
pub fn pin_objects() -> PinnedTables {
    site::pin_objects(|locked| PinnedTables {
        generation: generation(locked),
        tracepoints: tables::tracepoints(locked),
        markers: all_markers(locked),
    })
}

/// All markers. Objects stay loaded while the update lock is held.
pub(crate) fn all_markers(locked: &UpdateGuard<'_>) -> Vec<&'static Marker> {
    let mut markers = tables::markers(locked);
    markers.extend(runtime::registered(locked));
    markers
}

/// The tracepoint called `name`, written `provider:name`; the first one, if several declarations share the name. If its object is
/// unloaded later (`dlclose`), the tracepoint goes away with it.
///
/// # Errors
///
/// [`TracepointNotFound`], with the most similar names.
pub fn find(name: &str) -> Result<&'static Tracepoint, TracepointNotFound> {
    let is_it = |tracepoint: &&Tracepoint| {
        name.split_once(':')
            .is_some_and(|(provider, rest)| tracepoint.provider() == provider && tracepoint.name() == rest)
    };
    // Held until the names are copied: they belong to objects, which stay loaded meanwhile.
    let locked = update::lock_without_setup();
    let tracepoints = tables::tracepoints(&locked);
    if let Some(found) = tracepoints.iter().copied().find(is_it) {
        return Ok(found);
    }
    let names: Vec<String> = tracepoints.iter().map(|tracepoint| tracepoint.full_name()).collect();
    drop(locked);
    Err(TracepointNotFound { name: name.to_owned(), nearest: nearest_names(name, names.iter().map(String::as_str)) })
}
