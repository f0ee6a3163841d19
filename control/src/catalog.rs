//! What of the program can be recorded: all but the events by which recordings speak of themselves.

use tracepoint::{Marker, Tracepoint};

/// The provider of those.
pub(crate) const OWN: &str = "tracepoint";

/// The markers of the program.
pub(crate) fn markers() -> impl Iterator<Item = &'static Marker> {
    tracepoint::markers().filter(|marker| marker.provider() != OWN)
}

/// The tracepoints of the program.
pub(crate) fn tracepoints() -> impl Iterator<Item = &'static Tracepoint> {
    tracepoint::tracepoints().filter(|tracepoint| tracepoint.provider() != OWN)
}
