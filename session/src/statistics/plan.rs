//! Plans the statistics of a session's rules in a process, and the events that they use.

use crate::event::PlannedEvent;
use std::sync::Arc;
use tracepoint_core::Marker;
use tracepoint_core::internal::nearest_names;
use tracepoint_probes::{FieldKind, Role, StatisticError, StatisticSpec};
use tracepoint_session_spec::event_filter::{EventFilter, RateConditions, RuleConditions};
use tracepoint_session_spec::{Rule, RuleEntry, RuleProblem};

/// A statistic of a rule.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStatistic {
    /// The text of the rule, which identifies it.
    pub(super) key: String,
    pub(super) rule: Rule,
    pub(super) spec: StatisticSpec,
    /// The event; for a latency, the one that ends it.
    pub(super) event: String,
    /// True if its histogram is over a floating-point field.
    pub(super) is_float: bool,
    /// True if its values are nanoseconds.
    pub(super) is_duration: bool,
    pub(crate) parts: Vec<Part>,
}

/// An event of a statistic.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Its index among the events of the process.
    pub(crate) index: usize,
    pub(super) markers: Vec<&'static Marker>,
    pub(super) filter: Option<Arc<EventFilter>>,
    roles: Vec<Role>,
}

impl PlannedStatistic {
    /// Returns whether no event is missing.
    pub(crate) fn is_whole(&self) -> bool {
        let has = |role| self.parts.iter().any(|part| part.roles.contains(&role));
        has(Role::Observed) && (has(Role::Begin) || !self.spec.is_latency())
    }
}

/// Plans the statistics of a rule over those of `events` whose indices are in `matched`. Events without the fields of the statistic or of
/// the filter are left out.
///
/// # Errors
///
/// If all events, or one of the events of a latency, are left out.
pub(crate) fn plan(
    entry: &RuleEntry,
    rule: &Rule,
    spec: &StatisticSpec,
    events: &[PlannedEvent],
    matched: &[usize],
) -> Result<Vec<PlannedStatistic>, RuleProblem> {
    let mut conditions = RuleConditions::new(rule.filter.clone(), RateConditions::default());
    let (mut parts, mut units, mut unfit) = (Vec::new(), Vec::new(), None);
    for &index in matched {
        let (marker, name) = (events[index].markers[0], events[index].declared());
        let fields: Vec<_> = marker.fields().iter().map(|field| (field.name, FieldKind::from(&field.ty))).collect();
        let roles = spec.roles(&name);
        if let Some(error) = roles.iter().find_map(|role| spec.columns(*role, &name, &fields).err()) {
            // An error about the type of a field is more useful than an error about another event that lacks the field.
            if !matches!(unfit, Some(StatisticError::FieldType { .. })) {
                unfit = Some(error);
            }
            continue;
        }
        if let Ok(condition) = conditions.compile(marker.fields()) {
            let filter = EventFilter::new(vec![condition]);
            parts.push(Part { index, markers: events[index].markers.clone(), filter, roles });
            units.push((spec.is_float(&fields), spec.is_duration(&fields)));
        }
    }
    let is_incomplete = parts.is_empty() || spec.is_latency() && parts.len() < matched.len();
    match unfit {
        Some(error) if is_incomplete => return Err(RuleProblem::Statistic(told(error, events, matched))),
        _ => {}
    }
    if spec.is_latency() && is_incomplete && !parts.is_empty() {
        let text = "the filter of a latency must fit both of its events; group by a field of the second one (`by FIELD`) in place of a filter";
        return Err(RuleProblem::Statistic(text.to_owned()));
    }
    if let Some(error) = conditions.compile_error() {
        return Err(RuleProblem::Filter(error.into()));
    }
    let planned = |event: String, (is_float, is_duration), parts| {
        let (key, rule, spec) = (entry.table.clone(), rule.clone(), spec.clone());
        PlannedStatistic { key, rule, spec, event, is_float, is_duration, parts }
    };
    if spec.is_latency() {
        let end = parts.iter().find(|part| part.roles.contains(&Role::Observed)).map(|part| part.index);
        return Ok(end.map(|end| planned(events[end].name.clone(), (false, true), parts)).into_iter().collect());
    }
    let each = parts.into_iter().zip(units);
    Ok(each.map(|(part, units)| planned(events[part.index].name.clone(), units, vec![part])).collect())
}

/// Returns the error of a statistic that fits none of several events, with the most similar fields of all of them.
fn told(error: StatisticError, events: &[PlannedEvent], matched: &[usize]) -> String {
    match error {
        StatisticError::NoField { field, .. } if matched.len() > 1 => {
            let known = matched.iter().flat_map(|&index| events[index].markers[0].fields()).map(|field| field.name);
            let nearest = nearest_names(&field, known);
            StatisticError::NoFieldAnywhere { field, nearest }.to_string()
        }
        other => other.to_string(),
    }
}
