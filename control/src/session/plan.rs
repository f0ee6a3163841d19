//! The plan of a session: which markers are recorded as which event.

use super::{Notice, SessionError};
use crate::catalog;
use crate::gate::Gate;
use crate::rule::{LevelRule, NameRule};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracepoint::field::FieldType;
use tracepoint::{Level, Marker, nearest_names};

/// An event to be: the markers that are recorded under one id.
#[derive(Clone, Debug)]
pub(crate) struct PlannedEvent {
    /// The name in the trace.
    pub(crate) name: String,
    /// Its markers, in the order of their declarations. At least one.
    pub(crate) markers: Vec<&'static Marker>,
    /// What decides which of them are recorded; `None`: all are.
    pub(crate) gate: Option<Arc<Gate>>,
}

impl PlannedEvent {
    /// `provider:name`, as it is declared.
    pub(crate) fn declared(&self) -> String {
        self.markers[0].full_name()
    }

    /// Its level, which all its markers share.
    pub(crate) fn level(&self) -> Level {
        self.markers[0].level()
    }
}

/// All events with these markers, and nothing is an error.
pub(crate) fn all_events(
    markers: impl Iterator<Item = &'static Marker>,
    notices: &mut Vec<Notice>,
) -> Vec<PlannedEvent> {
    group(markers.map(|marker| (marker.full_name(), marker)).collect(), notices)
}

/// What has to be equal for two markers to be one event.
type Layout = (Level, Vec<(&'static str, FieldType)>);

/// Applies the rules to all markers of the program.
pub(super) fn plan(
    names: &[NameRule],
    level: Option<(&str, LevelRule)>,
    notices: &mut Vec<Notice>,
) -> Result<Vec<PlannedEvent>, SessionError> {
    let mut all: Vec<(String, &'static Marker)> = catalog::markers().map(|m| (m.full_name(), m)).collect();
    if all.is_empty() {
        return Err(SessionError::NoEvents);
    }
    for rule in names.iter().filter(|rule| !all.iter().any(|(name, _)| rule.matches(name))) {
        if !rule.excludes() {
            let nearest = nearest_names(rule.text(), all.iter().map(|(name, _)| name.as_str()));
            return Err(SessionError::NoMatch { rule: rule.text().to_owned(), nearest });
        }
        notices.push(Notice::UselessExclusion { rule: rule.text().to_owned() });
    }
    let (excluding, including): (Vec<_>, Vec<_>) = names.iter().partition(|rule| rule.excludes());
    all.retain(|(name, _)| including.is_empty() || including.iter().any(|rule| rule.matches(name)));
    all.retain(|(name, _)| !excluding.iter().any(|rule| rule.matches(name)));
    if all.is_empty() {
        let rules: Vec<_> = excluding.iter().map(|rule| format!("`{}`", rule.text())).collect();
        let reason = format!("{} exclude all that the others choose", rules.join(" and "));
        return Err(SessionError::NothingLeft { reason });
    }
    if let Some((text, rule)) = level {
        let chosen = all.len();
        let most_important = all.iter().map(|(_, marker)| marker.level()).min().unwrap_or_default();
        all.retain(|(_, marker)| rule.matches(marker.level()));
        if all.is_empty() {
            let reason = format!(
                "the levels of all {chosen} chosen ones are outside `{text}`; the most important of them is {most_important}"
            );
            return Err(SessionError::NothingLeft { reason });
        }
    }
    Ok(group(all, notices))
}

/// Makes one event of the markers that share name and layout. Where names are shared and layouts are not, all but the first
/// get a number; the order is that of the declarations, so that it is the same in every run.
fn group(mut markers: Vec<(String, &'static Marker)>, notices: &mut Vec<Notice>) -> Vec<PlannedEvent> {
    markers.sort_by_cached_key(|(name, marker)| {
        let place = marker.location();
        (name.clone(), place.file, place.line, place.module)
    });
    let mut by_name: BTreeMap<String, Vec<(Layout, PlannedEvent)>> = BTreeMap::new();
    for (name, marker) in markers {
        let events = by_name.entry(name.clone()).or_default();
        let layout = layout(marker);
        if let Some((_, event)) = events.iter_mut().find(|(other, _)| *other == layout) {
            event.markers.push(marker);
            continue;
        }
        let recorded = if events.is_empty() { name.clone() } else { format!("{name}#{}", events.len() + 1) };
        if !events.is_empty() {
            let place = marker.location();
            let declared = format!("{}:{}", place.file, place.line);
            notices.push(Notice::Renamed { name, recorded: recorded.clone(), declared });
        }
        events.push((layout, PlannedEvent { name: recorded, markers: vec![marker], gate: None }));
    }
    by_name.into_values().flatten().map(|(_, event)| event).collect()
}

fn layout(marker: &Marker) -> Layout {
    (marker.level(), marker.fields().iter().map(|field| (field.name, field.ty)).collect())
}
