//! Matches the rules of a session with the events of a process, for sessions in code and in files alike.

use crate::event::{PlannedEvent, Program};
use crate::statistics::{PlannedStatistic, plan};
use std::collections::HashMap;
use std::sync::Arc;
use tracepoint_core::clock::{self, Clock};
use tracepoint_probes::Sample;
use tracepoint_run_dir::notice::Notice;
use tracepoint_session_spec::event_filter::{Condition, EventFilter, RateConditions, RuleConditions};
use tracepoint_session_spec::limit::Bucket;
use tracepoint_session_spec::selection::{Candidate, select_with};
use tracepoint_session_spec::{Rule, RuleEntry, RuleError, RuleProblem, SessionSpec};

/// The events that a session records in this process, with their filters.
#[derive(Debug, Default)]
pub(crate) struct RuleMatch {
    pub(crate) events: Vec<PlannedEvent>,
    /// For each rule: the number of events that it applies to, or its error; `None` if the rule is for another process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
    pub(crate) notices: Vec<Notice>,
    /// The statistics that the rules compute of the events.
    pub(crate) statistics: Vec<PlannedStatistic>,
}

/// Matches the rules of one session, again after each change.
///
/// Keeps the token buckets of the rules' limits, and the counters of their samples, by the text of the rule, so that a rule keeps its state
/// when others change.
#[derive(Debug, Default)]
pub(crate) struct Matcher(HashMap<String, RateConditions>);

impl Matcher {
    /// Matches the rules with the events of the program.
    pub(crate) fn run(&mut self, spec: &SessionSpec, program: Program<'_>) -> RuleMatch {
        let events = program.events;
        let candidates: Vec<_> =
            events.iter().map(|event| Candidate { name: event.declared(), level: event.level() }).collect();
        let names = spec.channel_names();
        let channels = names.len();
        let (mut buckets, mut statistics) = (HashMap::new(), Vec::new());
        // For each channel and event.
        let mut conditions: Vec<Vec<Vec<Condition>>> =
            (0..channels).map(|_| events.iter().map(|_| Vec::new()).collect()).collect();
        let mut compile_errors = vec![vec![None; events.len()]; channels];
        let apply = |entry: &RuleEntry, rule: &Rule, channel: usize, matched: Vec<usize>| {
            let (conditions, compile_errors) = (&mut conditions[channel], &mut compile_errors[channel]);
            let planned = rule.computes().map(|spec| plan(entry, rule, spec, events, &matched)).transpose()?;
            let planned = planned.unwrap_or_default();
            let counted = planned.iter().map(|planned| planned.parts.len()).sum();
            statistics.extend(planned);
            if !rule.records() {
                // Only their number is needed: they are not recorded.
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
        let selected = select_with(spec, program.key, program.executable, &candidates, apply);
        self.0 = buckets;
        // A rule without a channel excludes events from all of them, and from the statistics.
        let is_excluded = |index: usize| selected.excluded.iter().all(|excluded| excluded[index]);
        for planned in &mut statistics {
            planned.parts.retain(|part| !is_excluded(part.index));
        }
        statistics.retain(PlannedStatistic::is_whole);
        let mut matched = RuleMatch { rules: selected.rules, statistics, ..RuleMatch::default() };
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

    /// Returns the rule's token bucket and sample, kept from the last match, or new: a new bucket is full.
    fn rates(&self, entry: &RuleEntry, rule: &Rule) -> Result<RateConditions, RuleProblem> {
        if let Some(known) = self.0.get(&entry.table) {
            return Ok(known.clone());
        }
        if rule.limit.is_some() && matches!(clock::selected(), Clock::None) {
            return Err(RuleProblem::LimitWithoutClock);
        }
        Ok(RateConditions {
            sample: rule.sample().map(|one_in| Arc::new(Sample::one_in(one_in))),
            bucket: rule.limit.map(|limit| Arc::new(Bucket::new(limit))),
        })
    }
}
