//! One pass over the selected events of traces.

use crate::failure::{Failure, Outcome};
use crate::message;
use crate::selection::EventSelection;
use std::path::PathBuf;
use tracepoint_reader::{Event, Item, LossKind, Trace};

/// What was seen besides the events that were counted.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The times of the first and the last selected event, in nanoseconds since the epoch.
    pub(super) range: Option<(i64, i64)>,
    /// Events that are missing in the traces, of any kind.
    pub(super) lost: u64,
    /// Whether more are missing, whose number is not known.
    pub(super) lost_more: bool,
    damage: u64,
    unchecked: u64,
}

impl Seen {
    /// The time between the first and the last event in seconds; 0 for one event.
    #[expect(clippy::cast_precision_loss, reason = "a time")]
    pub(super) fn seconds(&self) -> f64 {
        self.range.map_or(0.0, |(first, last)| last.abs_diff(first) as f64 / 1e9)
    }

    /// Says what is missing.
    pub(super) fn report(&self) -> Outcome {
        if self.lost > 0 || self.lost_more {
            let more = if self.lost_more { " or more" } else { "" };
            let lost = message::counted(self.lost, "event");
            message::note(&format!("{lost}{more} of these traces were lost, selected ones or others"));
        }
        if self.unchecked > 0 {
            message::note_unchecked(self.unchecked);
        }
        if self.damage == 0 { Outcome::Success } else { Outcome::Incomplete }
    }
}

/// Opens the traces, and has `prepare` look at their metadata; then gives it the selected events in the order of their times.
pub(super) fn pass<T>(
    paths: &[PathBuf],
    selection: &EventSelection,
    prepare: impl FnOnce(&Trace) -> Result<T, Failure>,
    mut each: impl FnMut(&mut T, &Event),
) -> Result<(T, Seen), Failure> {
    let trace = Trace::open_all(paths)?;
    let mut filter = selection.filter()?;
    filter.check(trace.metadata().map(|(_, metadata)| metadata))?;
    let mut state = prepare(&trace)?;
    let mut seen = Seen::default();
    let mut items = trace.items();
    for item in items.by_ref() {
        match item {
            Item::Event(event) if filter.accepts(&event) => {
                let first = seen.range.map_or(event.time_ns, |(first, _)| first);
                seen.range = Some((first, event.time_ns));
                each(&mut state, &event);
            }
            Item::Loss(loss) => match loss.kind {
                LossKind::Events(Some(events)) | LossKind::Packets { events: Some(events), .. } => seen.lost += events,
                _ => seen.lost_more = true,
            },
            Item::Damage(damage) => {
                message::error(&damage.to_string());
                seen.damage += 1;
            }
            _ => {}
        }
    }
    seen.unchecked = items.unchecked();
    Ok((state, seen))
}
