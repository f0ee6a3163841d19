//! The tracepoints and markers of the program that can be recorded: all except the library's own.

use tracepoint_core::private::{self, PinnedTables};
use tracepoint_core::{Marker, Tracepoint};

/// The provider of the library's own events.
pub(crate) const OWN: &str = "tracepoint";

/// The room of a program to which events may come while it runs.
const LATER_EVENTS: usize = 512;

/// The markers of the program.
pub(crate) fn markers() -> impl Iterator<Item = &'static Marker> {
    tracepoint_core::markers().filter(|marker| marker.provider() != OWN)
}

/// For how many events that may come later a recording has room. What is linked decides, because the recording may begin first: a part of the
/// program registers markers while it runs, and declares `tracepoint:registers_markers`; or objects share the core, of which further ones may be
/// loaded. Each takes 128 bytes in each ring.
pub(crate) fn later_events() -> usize {
    let declares = |marker: &Marker| marker.provider() == OWN && marker.name() == "registers_markers";
    if private::has_several_objects() || tracepoint_core::markers().any(declares) { LATER_EVENTS } else { 0 }
}

/// A snapshot of the program's tracepoints and markers. It keeps the shared objects that contain them loaded.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    tables: PinnedTables,
}

impl Catalog {
    /// Takes a snapshot.
    pub(crate) fn new() -> Self {
        let mut tables = private::pin_objects();
        tables.tracepoints.retain(|tracepoint| tracepoint.provider() != OWN);
        tables.markers.retain(|marker| marker.provider() != OWN);
        Self { tables }
    }

    /// Whether objects were loaded or unloaded since the snapshot.
    pub(crate) fn is_old(&self) -> bool {
        self.tables.generation != private::object_generation()
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
