//! The events that enclose the events of a state dump.

use crate::catalog::OWN;
use crate::event::PlannedEvent;

tracepoint_core::define_trace! {
    provider = "tracepoint";

    /// Start of a state dump: until `state_end`, the events of this thread describe existing state.
    #[level(Info)]
    pub(super) state_begin(dump: &str) { dump: str = dump }

    /// End of a state dump. If the dump panicked, the state is incomplete.
    #[level(Info)]
    pub(super) state_end(dump: &str, panicked: bool) { dump: str = dump, panicked: bool = panicked }
}

/// Number of these events.
pub(crate) const EVENTS: usize = 2;

/// The two events, for a session's channel.
pub(crate) fn planned(channel: &str) -> Vec<PlannedEvent> {
    let own = tracepoint_core::markers()
        .filter(|marker| marker.provider() == OWN && ["state_begin", "state_end"].contains(&marker.name()));
    let planned = |marker: &'static tracepoint_core::Marker| PlannedEvent {
        name: marker.full_name(),
        markers: vec![marker],
        filter: None,
        channel: channel.to_owned(),
    };
    own.map(planned).collect()
}
