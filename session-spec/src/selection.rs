//! Selects the events of a process that match the rules of a session, by name and level.
//!
//! Controllers select among the events that a process lists; the process itself then applies filters and limits.

#[cfg(test)]
mod tests;

use crate::spec::{Rule, RuleEntry, RuleError, RuleProblem, SessionSpec};
use tracepoint_core::Level;
use tracepoint_probes::Role;
use tracepoint_reader::process::ProcessKey;

/// A recordable event as other processes see it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// `provider:name`.
    pub name: String,
    /// Its level.
    pub level: Level,
}

/// The result of matching rules with candidates.
#[derive(Debug)]
pub struct Selection {
    /// For each channel and candidate: true if it is recorded.
    pub recorded: Vec<Vec<bool>>,
    /// For each channel and candidate: true if a rule excludes it.
    pub excluded: Vec<Vec<bool>>,
    /// For each rule: the number of candidates that it applies to; `None` if the rule is for another process.
    pub rules: Vec<Option<Result<usize, RuleError>>>,
}

impl Selection {
    /// Returns whether anything is recorded.
    pub fn records_any(&self) -> bool {
        self.recorded.iter().flatten().any(|is_recorded| *is_recorded)
    }
}

/// Matches the rules against the events of one process, by name and level. Costs one pattern match for each rule and event.
pub fn select(spec: &SessionSpec, process: ProcessKey, exe: &str, events: &[Candidate]) -> Selection {
    select_with(spec, process, exe, events, |_, _, _, matched| Ok(matched))
}

/// Like [`select`]; `apply` returns the matching candidates to which a rule applies in a channel, or an error.
pub fn select_with(
    spec: &SessionSpec,
    process: ProcessKey,
    exe: &str,
    events: &[Candidate],
    mut apply: impl FnMut(&RuleEntry, &Rule, usize, Vec<usize>) -> Result<Vec<usize>, RuleProblem>,
) -> Selection {
    let names = spec.channel_names();
    let mut recorded = vec![vec![false; events.len()]; names.len()];
    let mut excluded = recorded.clone();
    let mut rules = Vec::with_capacity(spec.rules.len());
    for entry in &spec.rules {
        let rule = match &entry.rule {
            Ok(rule) if rule.is_for(process, exe) => rule,
            Ok(_) => {
                rules.push(None);
                continue;
            }
            Err(error) => {
                rules.push(Some(Err(error.clone())));
                continue;
            }
        };
        let mut matched: Vec<usize> =
            (0..events.len()).filter(|&index| rule.selects(&events[index].name, events[index].level)).collect();
        if let Some(statistic) = rule.computes() {
            // A latency needs both of its events.
            let has = |role: Role| matched.iter().any(|&index| statistic.roles(&events[index].name).contains(&role));
            if statistic.is_latency() && !(has(Role::Begin) && has(Role::Observed)) {
                matched.clear();
            }
            matched.retain(|&index| !statistic.roles(&events[index].name).is_empty());
        }
        let channels = rule.channels(&names);
        let (marks, applies) = if rule.excludes() {
            (Some(&mut excluded), Ok(matched))
        } else {
            let marks = rule.records().then_some(&mut recorded);
            (marks, apply(entry, rule, channels.start, matched).map_err(|problem| rule.error(problem)))
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
    Selection { recorded, excluded, rules }
}
