//! The description of a marker's event, for tests that drive a drain without a session.

use tracepoint::Marker;
use tracepoint::sinks::EventDescription;

pub(crate) fn describe(marker: &Marker, class: u32, id: u16) -> EventDescription {
    EventDescription {
        class,
        id,
        name: marker.full_name(),
        level: marker.level(),
        fields: marker.fields(),
        doc: marker.doc(),
        format: marker.format(),
    }
}
