//! The plan of a session: which markers are recorded as which event.

use super::{Notice, SessionError};
use crate::catalog;
use crate::gate::Gate;
use crate::nearest::nearest_names;
use crate::rule::{LevelRule, NameRule};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracepoint_core::field::FieldType;
use tracepoint_core::{Level, Marker};

/// An event to be: the markers that are recorded under one id.
#[derive(Clone, Debug)]
pub(crate) struct PlannedEvent {
    /// The name in the trace.
    pub(crate) name: String,
    /// Its markers, in the order of their declarations. At least one.
    pub(crate) markers: Vec<&'static Marker>,
    /// What decides which of them are recorded; `None`: all are.
    pub(crate) gate: Option<Arc<Gate>>,
    /// The stream class of the channel that it goes into; 0 is the default one.
    pub(crate) channel: u32,
}

/// A rule for names, and the channel that it is for.
#[derive(Debug)]
pub(crate) struct RoutedRule {
    pub(crate) name: NameRule,
    /// `None`: it takes in for the default channel, and leaves out of all.
    pub(crate) channel: Option<u32>,
}

impl RoutedRule {
    /// Whether it takes events in for this channel.
    pub(crate) fn takes_in_for(&self, channel: u32) -> bool {
        !self.name.excludes() && self.channel.unwrap_or(0) == channel
    }

    /// Whether it leaves events out of this channel.
    fn leaves_out_of(&self, channel: u32) -> bool {
        self.name.excludes() && self.channel.is_none_or(|own| own == channel)
    }
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

/// Applies the rules to all markers of the program, for each of so many channels.
pub(super) fn plan(
    rules: &[RoutedRule],
    level: Option<(&str, LevelRule)>,
    channels: u32,
    notices: &mut Vec<Notice>,
) -> Result<Vec<PlannedEvent>, SessionError> {
    let mut all: Vec<(String, &'static Marker)> = catalog::markers().map(|m| (m.full_name(), m)).collect();
    if all.is_empty() {
        return Err(SessionError::NoEvents);
    }
    let names = rules.iter().map(|rule| &rule.name);
    for rule in names.clone().filter(|rule| !all.iter().any(|(name, _)| rule.matches(name))) {
        if !rule.excludes() {
            let nearest = nearest_names(rule.text(), all.iter().map(|(name, _)| name.as_str()));
            return Err(SessionError::NoMatch { rule: rule.text().to_owned(), nearest });
        }
        notices.push(Notice::UselessExclusion { rule: rule.text().to_owned() });
    }
    // Without a rule that takes events in, the default channel has all.
    let takes_all = names.clone().all(NameRule::excludes);
    let is_in = |channel: u32, name: &str| {
        let mut taking = rules.iter().filter(|rule| rule.takes_in_for(channel));
        ((takes_all && channel == 0) || taking.any(|rule| rule.name.matches(name)))
            && !rules.iter().any(|rule| rule.leaves_out_of(channel) && rule.name.matches(name))
    };
    all.retain(|(name, _)| (0..channels).any(|channel| is_in(channel, name)));
    if all.is_empty() {
        let rules: Vec<_> = names.filter(|rule| rule.excludes()).map(|rule| format!("`{}`", rule.text())).collect();
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
    let events = group(all, notices);
    let into = |channel: u32| {
        let chosen = events.iter().filter(move |event| is_in(channel, &event.declared()));
        chosen.map(move |event| PlannedEvent { channel, ..event.clone() })
    };
    Ok((0..channels).flat_map(into).collect())
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
        events.push((layout, PlannedEvent { name: recorded, markers: vec![marker], gate: None, channel: 0 }));
    }
    by_name.into_values().flatten().map(|(_, event)| event).collect()
}

fn layout(marker: &Marker) -> Layout {
    (marker.level(), marker.fields().iter().map(|field| (field.name, field.ty)).collect())
}
