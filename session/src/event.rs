//! The events that a session can record: groups of markers with one name and id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tracepoint_core::field::FieldType;
use tracepoint_core::internal::update_lock;
use tracepoint_core::{Level, Marker};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::notice::Notice;
use tracepoint_session_spec::event_filter::EventFilter;

/// The markers that are recorded as one event.
#[derive(Clone, Debug)]
pub(crate) struct PlannedEvent {
    /// The name in the trace.
    pub(crate) name: String,
    /// Its markers, in the order of their declarations. At least one.
    pub(crate) markers: Vec<&'static Marker>,
    /// Decides which firings are recorded; `None` records all.
    pub(crate) filter: Option<Arc<EventFilter>>,
    /// The name of its channel; empty while no rule has selected it.
    pub(crate) channel: String,
}

impl PlannedEvent {
    /// Returns the declared `provider:name`.
    pub(crate) fn declared(&self) -> String {
        self.markers[0].full_name()
    }

    /// Returns its level, which all its markers share.
    pub(crate) fn level(&self) -> Level {
        self.markers[0].level()
    }
}

/// The process, and its events that a session can record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program<'a> {
    pub(crate) key: ProcessKey,
    pub(crate) executable: &'a str,
    pub(crate) events: &'a [PlannedEvent],
}

/// The properties that two markers of one event share.
type Layout = (Level, Vec<(&'static str, FieldType)>);

/// For each marker, the number of the call of [`all_events`] that first found it.
static ROUNDS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);

/// Returns all events of these markers: one for all markers that share name and layout. If markers share a name and differ in layout, all
/// but the first event get a number; the order is that of the declarations, so that it is the same in every run. Later markers (loaded
/// libraries, callsites that are reached for the first time) come last, so that an event keeps its name.
pub(crate) fn all_events(
    markers: impl Iterator<Item = &'static Marker>,
    notices: &mut Vec<Notice>,
) -> Vec<PlannedEvent> {
    let mut markers: Vec<_> = markers.map(|marker| (marker.full_name(), marker)).collect();
    // Under the update lock, so that no fork finds the mutex locked.
    let locked = update_lock();
    let mut known = ROUNDS.lock().unwrap_or_else(PoisonError::into_inner);
    let rounds = known.get_or_insert_default();
    let round = rounds.len();
    markers.sort_by_cached_key(|(name, marker)| {
        let place = marker.location();
        let round = *rounds.entry(std::ptr::from_ref(*marker).addr()).or_insert(round);
        (name.clone(), round, place.file, place.line, place.module)
    });
    drop(known);
    drop(locked);
    let mut all: Vec<PlannedEvent> = Vec::new();
    // The place in `all` of the first event of the current name, and the layouts of its events.
    let (mut first, mut layouts) = (0, Vec::new());
    for (name, marker) in markers {
        if all.get(first).is_some_and(|event| event.name != name) {
            (first, layouts) = (all.len(), Vec::new());
        }
        let layout = layout(marker);
        if let Some(known) = layouts.iter().position(|other| *other == layout) {
            all[first + known].markers.push(marker);
            continue;
        }
        layouts.push(layout);
        let recorded = if layouts.len() == 1 { name.clone() } else { format!("{name}#{}", layouts.len()) };
        if layouts.len() > 1 {
            let place = marker.location();
            let declared = format!("{}:{}", place.file, place.line);
            notices.push(Notice::Renamed { name, recorded: recorded.clone(), declared });
        }
        all.push(PlannedEvent { name: recorded, markers: vec![marker], filter: None, channel: String::new() });
    }
    all
}

fn layout(marker: &Marker) -> Layout {
    (marker.level(), marker.fields().iter().map(|field| (field.name, field.ty)).collect())
}
