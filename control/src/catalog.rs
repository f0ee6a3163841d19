//! What of the program can be recorded: all but the events by which recordings speak of themselves.

use tracepoint_core::private::{self, PinnedTables};
use tracepoint_core::{Marker, Tracepoint};

/// The provider of those.
pub(crate) const OWN: &str = "tracepoint";

/// The markers of the program.
pub(crate) fn markers() -> impl Iterator<Item = &'static Marker> {
    tracepoint_core::markers().filter(|marker| marker.provider() != OWN)
}

/// What there is, for whoever keeps it: objects that it is of stay loaded.
#[derive(Clone, Debug)]
pub(crate) struct Catalog(PinnedTables);

impl Catalog {
    /// As of now.
    pub(crate) fn new() -> Self {
        let mut tables = private::pin_objects();
        tables.tracepoints.retain(|tracepoint| tracepoint.provider() != OWN);
        tables.markers.retain(|marker| marker.provider() != OWN);
        Self(tables)
    }

    /// Whether objects were loaded or unloaded since.
    pub(crate) fn is_old(&self) -> bool {
        self.0.generation != private::object_generation()
    }

    /// The tracepoints of the program.
    pub(crate) fn tracepoints(&self) -> impl Iterator<Item = &'static Tracepoint> {
        self.0.tracepoints.iter().copied()
    }

    /// The markers of the program.
    pub(crate) fn markers(&self) -> impl Iterator<Item = &'static Marker> {
        self.0.markers.iter().copied()
    }
}
