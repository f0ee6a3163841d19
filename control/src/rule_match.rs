//! Which events of a process the rules of a session record, through which filters: the same for sessions in code and in files.

#[cfg(test)]
mod tests;

use crate::event::PlannedEvent;
use crate::event_filter::{Condition, EventFilter, RuleConditions};
use crate::limit::Bucket;
use crate::notice::Notice;
use crate::process::ProcessKey;
use crate::spec::{Compiled, RuleEntry, RuleError, RuleProblem, SessionSpec};
use std::collections::BTreeMap;
use std::sync::Arc;
use tracepoint_core::Level;
use tracepoint_core::clock::{self, Clock};

/// An event that can be recorded, as far as it is known outside its process.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// `provider:name`.
    pub(crate) name: String,
    pub(crate) level: Level,
}

/// What the rules choose among candidates.
#[derive(Debug)]
pub(crate) struct Selected {
    /// For each channel, and in it for each candidate: whether it is recorded.
    chosen: Vec<Vec<bool>>,
    /// The same: whether a rule excludes it.
    excluded: Vec<Vec<bool>>,
    /// For each rule how many candidates it applies to; `None` if it is not for this process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
}

/// Matches the rules with the events of one process, by their names and levels. Costs one match of a pattern for each rule and event.
pub(crate) fn select(spec: &SessionSpec, process: ProcessKey, exe: &str, events: &[Candidate]) -> Selected {
    select_with(spec, process, exe, events, |_, _, _, matched| Ok(matched))
}

/// The same, where `apply` says to which of the candidates that a rule matches by name and level it applies, for which channel; or why it
/// cannot.
fn select_with(
    spec: &SessionSpec,
    process: ProcessKey,
    exe: &str,
    events: &[Candidate],
    mut apply: impl FnMut(&RuleEntry, &Compiled, usize, Vec<usize>) -> Result<Vec<usize>, RuleProblem>,
) -> Selected {
    let names = spec.channel_names();
    let mut chosen = vec![vec![false; events.len()]; names.len()];
    let mut excluded = chosen.clone();
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
        let matched =
            (0..events.len()).filter(|&index| rule.matches(&events[index].name, events[index].level)).collect();
        let channels = rule.channels(&names);
        let (marks, applies) = if rule.name.excludes() {
            (&mut excluded, Ok(matched))
        } else {
            let error = |problem| RuleError { rule: rule.name.text().to_owned(), problem };
            (&mut chosen, apply(entry, &rule, channels.start, matched).map_err(error))
        };
        rules.push(Some(applies.map(|applies: Vec<usize>| {
            for marks in &mut marks[channels] {
                for index in &applies {
                    marks[*index] = true;
                }
            }
            applies.len()
        })));
    }
    for (chosen, excluded) in chosen.iter_mut().flatten().zip(excluded.iter().flatten()) {
        *chosen &= !excluded;
    }
    Selected { chosen, excluded, rules }
}

/// The events that a session records in this process.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    pub(crate) events: Vec<PlannedEvent>,
    /// For each rule to how many events it applies, or why it cannot be used; `None` if it is not for this process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
    pub(crate) notices: Vec<Notice>,
}

/// Matches the rules of one session, again whenever they change.
///
/// Keeps the buckets of the rules' limits by the rules' text: a rule that stays keeps its bucket, whatever happens to the others.
#[derive(Debug, Default)]
pub(crate) struct Matcher(BTreeMap<String, Arc<Bucket>>);

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
        let mut buckets = BTreeMap::new();
        // For each channel, and in it for each event.
        let mut conditions: Vec<Vec<Vec<Condition>>> =
            (0..channels).map(|_| events.iter().map(|_| Vec::new()).collect()).collect();
        let mut misfits = vec![vec![None; events.len()]; channels];
        let apply = |entry: &RuleEntry, rule: &Compiled, channel: usize, matched: Vec<usize>| {
            let (conditions, misfits) = (&mut conditions[channel], &mut misfits[channel]);
            let bucket = self.bucket(entry, rule)?;
            buckets.extend(bucket.iter().map(|bucket| (entry.table.clone(), Arc::clone(bucket))));
            let mut of_rule = RuleConditions::new(rule.filter.clone(), bucket);
            let (mut applies, mut others) = (Vec::new(), Vec::new());
            for index in matched {
                match of_rule.compile(events[index].markers[0].fields()) {
                    Ok(condition) => {
                        condition.add_to(&mut conditions[index]);
                        applies.push(index);
                    }
                    Err(error) => others.push((index, error.reason().to_owned())),
                }
            }
            if let Some(error) = of_rule.misfit() {
                return Err(RuleProblem::Filter(error.into()));
            }
            for (index, reason) in others {
                misfits[index] = Some(reason);
            }
            Ok(applies)
        };
        let selected = select_with(spec, process, exe, &candidates, apply);
        self.0 = buckets;
        let mut matched = Matched { rules: selected.rules, ..Matched::default() };
        for (channel, conditions) in conditions.into_iter().enumerate() {
            for (index, (event, conditions)) in events.iter().zip(conditions).enumerate() {
                if selected.chosen[channel][index] {
                    let (filter, channel) = (EventFilter::new(conditions), names[channel].to_owned());
                    matched.events.push(PlannedEvent { filter, channel, ..event.clone() });
                } else if let Some(reason) =
                    misfits[channel][index].take().filter(|_| !selected.excluded[channel][index])
                {
                    matched.notices.push(Notice::FilterDoesNotFit { event: event.name.clone(), reason });
                }
            }
        }
        matched
    }

    /// The rule's bucket: the one that it has had, or a full one; `None` if it has no limit.
    fn bucket(&self, entry: &RuleEntry, rule: &Compiled) -> Result<Option<Arc<Bucket>>, RuleProblem> {
        let Some(limit) = rule.limit else { return Ok(None) };
        if let Some(known) = self.0.get(&entry.table) {
            return Ok(Some(Arc::clone(known)));
        }
        if matches!(clock::selected(), Clock::None) {
            return Err(RuleProblem::LimitWithoutClock);
        }
        Ok(Some(Arc::new(Bucket::new(limit))))
    }
}
