//! The tracepoints and markers of the program that can be recorded: all except those of the library itself.

use tracepoint_core::internal::{self, PinnedTables};
use tracepoint_core::{Marker, Tracepoint};

/// The provider of the library's own events.
pub(crate) const OWN: &str = "tracepoint";

/// Number of additional events for which a program has room if events may be registered while it runs.
const LATER_EVENTS: usize = 512;

/// The markers of the program.
pub(crate) fn markers() -> impl Iterator<Item = &'static Marker> {
    tracepoint_core::markers().filter(|marker| marker.provider() != OWN)
}

/// Returns the number of later events for which a recording has room. The linked code determines this, because the recording may begin
/// first: a part of the program registers markers while it runs, and declares `tracepoint:registers_markers`; or objects share the core,
/// and further objects may be loaded. Each event takes 128 bytes in each ring.
pub(crate) fn later_events() -> usize {
    let declares = |marker: &Marker| marker.provider() == OWN && marker.name() == "registers_markers";
    if internal::has_several_objects() || tracepoint_core::markers().any(declares) { LATER_EVENTS } else { 0 }
}

/// A snapshot of the program's tracepoints and markers. It keeps the shared objects that contain them loaded.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    tables: PinnedTables,
}

impl Catalog {
    /// Takes a snapshot.
    pub(crate) fn new() -> Self {
        let mut tables = internal::pin_objects();
        tables.tracepoints.retain(|tracepoint| tracepoint.provider() != OWN);
        tables.markers.retain(|marker| marker.provider() != OWN);
        Self { tables }
    }

    /// Returns whether objects were loaded or unloaded since the snapshot.
    pub(crate) fn is_old(&self) -> bool {
        self.tables.generation != internal::object_generation()
    }

    /// The tracepoints of the program.
    pub(crate) fn tracepoints(&self) -> impl Iterator<Item = &'static Tracepoint> {
        self.tables.tracepoints.iter().copied()
    }

    /// The markers of the program.
    pub(crate) fn markers(&self) -> impl Iterator<Item = &'static Marker> {
        self.tables.markers.iter().copied()
    }
}
