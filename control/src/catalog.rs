//! The tracepoints and markers of the program that can be recorded: all except the library's own.

use tracepoint_core::private::{self, PinnedTables};
use tracepoint_core::{Marker, Tracepoint};

/// The provider of the library's own events.
pub(crate) const OWN: &str = "tracepoint";

/// The markers of the program.
pub(crate) fn markers() -> impl Iterator<Item = &'static Marker> {
    tracepoint_core::markers().filter(|marker| marker.provider() != OWN)
}

/// A snapshot of the program's tracepoints and markers. It keeps the shared objects that contain them loaded.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    tables: PinnedTables,
    /// Whether a part of the program registers markers while it runs: it declares `tracepoint:registers_markers`.
    pub(crate) registers_markers: bool,
}

impl Catalog {
    /// Takes a snapshot.
    pub(crate) fn new() -> Self {
        let mut tables = private::pin_objects();
        let declares = |marker: &&Marker| marker.provider() == OWN && marker.name() == "registers_markers";
        let registers_markers = tables.markers.iter().any(declares);
        tables.tracepoints.retain(|tracepoint| tracepoint.provider() != OWN);
        tables.markers.retain(|marker| marker.provider() != OWN);
        Self { tables, registers_markers }
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
