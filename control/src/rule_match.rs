//! Matches the rules of a session with the events of a process, for sessions in code and in files alike.

#[cfg(test)]
mod tests;

use crate::event::PlannedEvent;
use crate::event_filter::{Condition, EventFilter, RateConditions, RuleConditions};
use crate::limit::Bucket;
use crate::notice::Notice;
use crate::process::ProcessKey;
use crate::spec::{Compiled, RuleEntry, RuleError, RuleProblem, SessionSpec};
use crate::statistics::{PlannedStatistic, plan};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracepoint_core::Level;
use tracepoint_core::clock::{self, Clock};
use tracepoint_probes::{Role, Sample};

/// A recordable event, as other processes know it.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// `provider:name`.
    pub(crate) name: String,
    pub(crate) level: Level,
}

/// The result of matching rules with candidates.
#[derive(Debug)]
pub(crate) struct Selected {
    /// For each channel and candidate: whether it is recorded.
    recorded: Vec<Vec<bool>>,
    /// For each channel and candidate: whether a rule excludes it.
    excluded: Vec<Vec<bool>>,
    /// For each rule: the number of candidates that it applies to; `None` if the rule is for another process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
}

impl Selected {
    /// Whether anything is recorded.
    pub(crate) fn records_any(&self) -> bool {
        self.recorded.iter().flatten().any(|is_recorded| *is_recorded)
    }
}

/// Matches the rules with the events of one process, by name and level. Costs one pattern match for each rule and event.
pub(crate) fn select(spec: &SessionSpec, process: ProcessKey, exe: &str, events: &[Candidate]) -> Selected {
    select_with(spec, process, exe, events, |_, _, _, matched| Ok(matched))
}

/// Does the same, where `apply` returns those of a rule's matching candidates to which the rule applies in a channel, or an error.
fn select_with(
    spec: &SessionSpec,
    process: ProcessKey,
    exe: &str,
    events: &[Candidate],
    mut apply: impl FnMut(&RuleEntry, &Compiled, usize, Vec<usize>) -> Result<Vec<usize>, RuleProblem>,
) -> Selected {
    let names = spec.channel_names();
    let mut recorded = vec![vec![false; events.len()]; names.len()];
    let mut excluded = recorded.clone();
    let mut rules = Vec::with_capacity(spec.rules.len());
    for entry in &spec.rules {
        let rule = match entry.rule.as_ref().map_err(Clone::clone).and_then(Compiled::new) {
            Ok(rule) if rule.is_for(process, exe) => rule,
            Ok(_) => {
                rules.push(None);
                continue;
            }
            Err(error) => {
                rules.push(Some(Err(error)));
                continue;
            }
        };
        let mut matched: Vec<usize> =
            (0..events.len()).filter(|&index| rule.matches(&events[index].name, events[index].level)).collect();
        if let Some(statistic) = &rule.statistic {
            // A latency is one of its two events; without either there is none.
            let has = |role: Role| matched.iter().any(|&index| statistic.roles(&events[index].name).contains(&role));
            if statistic.is_latency() && !(has(Role::Begin) && has(Role::Observed)) {
                matched.clear();
            }
            matched.retain(|&index| !statistic.roles(&events[index].name).is_empty());
        }
        let channels = rule.channels(&names);
        let (marks, applies) = if rule.name.excludes() {
            (Some(&mut excluded), Ok(matched))
        } else {
            let error = |problem| RuleError { rule: rule.name.text().to_owned(), problem };
            let marks = rule.records.then_some(&mut recorded);
            (marks, apply(entry, &rule, channels.start, matched).map_err(error))
        };
        rules.push(Some(applies.map(|applies: Vec<usize>| {
            for marks in marks.map_or(&mut [][..], |marks| &mut marks[channels]) {
                for index in &applies {
                    marks[*index] = true;
                }
            }
            applies.len()
        })));
    }
    for (recorded, excluded) in recorded.iter_mut().flatten().zip(excluded.iter().flatten()) {
        *recorded &= !excluded;
    }
    Selected { recorded, excluded, rules }
}

/// The events that a session records in this process, with their filters.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    pub(crate) events: Vec<PlannedEvent>,
    /// For each rule: the number of events that it applies to, or its error; `None` if the rule is for another process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
    pub(crate) notices: Vec<Notice>,
    /// What the rules compute of the events.
    pub(crate) statistics: Vec<PlannedStatistic>,
}

/// Matches the rules of one session, again after each change.
///
/// Keeps the token buckets of the rules' limits, and the counters of their samples, by the text of the rule, so that a rule keeps its own when
/// others change.
#[derive(Debug, Default)]
pub(crate) struct Matcher(BTreeMap<String, RateConditions>);

impl Matcher {
    /// Matches the rules with the events of this process, whose program is `exe`.
    pub(crate) fn run(
        &mut self,
        spec: &SessionSpec,
        process: ProcessKey,
        exe: &str,
        events: &[PlannedEvent],
    ) -> Matched {
        let candidates: Vec<_> =
            events.iter().map(|event| Candidate { name: event.declared(), level: event.level() }).collect();
        let names = spec.channel_names();
        let channels = names.len();
        let (mut buckets, mut statistics) = (BTreeMap::new(), Vec::new());
        // For each channel and event.
        let mut conditions: Vec<Vec<Vec<Condition>>> =
            (0..channels).map(|_| events.iter().map(|_| Vec::new()).collect()).collect();
        let mut compile_errors = vec![vec![None; events.len()]; channels];
        let apply = |entry: &RuleEntry, rule: &Compiled, channel: usize, matched: Vec<usize>| {
            let (conditions, compile_errors) = (&mut conditions[channel], &mut compile_errors[channel]);
            let planned = rule.statistic.as_ref().map(|spec| plan(entry, rule, spec, events, &matched)).transpose()?;
            let planned = planned.unwrap_or_default();
            let counted = planned.iter().map(|planned| planned.parts.len()).sum();
            statistics.extend(planned);
            if !rule.records {
                // Only their number matters: they are not recorded.
                return Ok((0..counted).collect());
            }
            let rates = self.rates(entry, rule)?;
            buckets.insert(entry.table.clone(), rates.clone());
            let mut rule_conditions = RuleConditions::new(rule.filter.clone(), rates);
            let (mut applies, mut unfit) = (Vec::new(), Vec::new());
            for index in matched {
                match rule_conditions.compile(events[index].markers[0].fields()) {
                    Ok(condition) => {
                        condition.add_to(&mut conditions[index]);
                        applies.push(index);
                    }
                    Err(error) => unfit.push((index, error.reason().to_owned())),
                }
            }
            if let Some(error) = rule_conditions.compile_error() {
                return Err(RuleProblem::Filter(error.into()));
            }
            for (index, reason) in unfit {
                compile_errors[index] = Some(reason);
            }
            Ok(applies)
        };
        let selected = select_with(spec, process, exe, &candidates, apply);
        self.0 = buckets;
        // A rule without a channel excludes events from all of them, and from the statistics.
        let is_excluded = |index: usize| selected.excluded.iter().all(|excluded| excluded[index]);
        for planned in &mut statistics {
            planned.parts.retain(|part| !is_excluded(part.index));
        }
        statistics.retain(PlannedStatistic::is_whole);
        let mut matched = Matched { rules: selected.rules, statistics, ..Matched::default() };
        for (channel, conditions) in conditions.into_iter().enumerate() {
            for (index, (event, conditions)) in events.iter().zip(conditions).enumerate() {
                if selected.recorded[channel][index] {
                    let (filter, channel) = (EventFilter::new(conditions), names[channel].to_owned());
                    matched.events.push(PlannedEvent { filter, channel, ..event.clone() });
                } else if let Some(reason) =
                    compile_errors[channel][index].take().filter(|_| !selected.excluded[channel][index])
                {
                    matched.notices.push(Notice::FilterDoesNotFit { event: event.name.clone(), reason });
                }
            }
        }
        matched
    }

    /// The rule's token bucket and sample, kept from the last match, or new: a bucket is full then.
    fn rates(&self, entry: &RuleEntry, rule: &Compiled) -> Result<RateConditions, RuleProblem> {
        if let Some(known) = self.0.get(&entry.table) {
            return Ok(known.clone());
        }
        if rule.limit.is_some() && matches!(clock::selected(), Clock::None) {
            return Err(RuleProblem::LimitWithoutClock);
        }
        Ok(RateConditions {
            sample: rule.sample.map(|one_in| Arc::new(Sample::one_in(one_in))),
            bucket: rule.limit.map(|limit| Arc::new(Bucket::new(limit))),
        })
    }
}
