//! The events around what a dump fires.

use crate::catalog::OWN;
use crate::event::PlannedEvent;

tracepoint_core::define_trace! {
    provider = "tracepoint";

    /// What this thread fires from here on, until `state_end`, tells what there was already.
    #[level(Info)]
    pub(super) state_begin(dump: &str) { dump: str = dump }

    /// The dump has told all; or it panicked, and has not.
    #[level(Info)]
    pub(super) state_end(dump: &str, panicked: bool) { dump: str = dump, panicked: bool = panicked }
}

/// How many they are.
pub(crate) const EVENTS: usize = 2;

/// The two, as events of a session's channel.
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
