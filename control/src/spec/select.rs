//! Which events of a process the rules choose.

use super::rule::Compiled;
use super::{RuleEntry, RuleError};
use crate::process::ProcessKey;
use tracepoint::Level;

/// An event that can be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// `provider:name`.
    pub(crate) name: String,
    pub(crate) level: Level,
}

/// What the rules choose.
#[derive(Debug)]
pub(crate) struct Selected {
    /// For each candidate whether it is chosen.
    pub(crate) chosen: Vec<bool>,
    /// For each whether a rule leaves it out.
    pub(crate) left_out: Vec<bool>,
    /// For each rule how many candidates it speaks of; `None` if it is not for this process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
}

/// Asks the rules about the events of one process, by their names and levels. Costs one match of a pattern for each rule and event.
pub(crate) fn select(rules: &[RuleEntry], process: ProcessKey, exe: &str, events: &[Candidate]) -> Selected {
    select_with(rules, process, exe, events, |_, _, matched| Ok(matched))
}

/// The same, where it is `taken` that says which of the candidates that a rule matches by name and level it takes in; or why it cannot.
pub(crate) fn select_with(
    rules: &[RuleEntry],
    process: ProcessKey,
    exe: &str,
    events: &[Candidate],
    mut taken: impl FnMut(&RuleEntry, &Compiled, Vec<usize>) -> Result<Vec<usize>, String>,
) -> Selected {
    let mut chosen = vec![false; events.len()];
    let mut left_out = vec![false; events.len()];
    let mut told = Vec::with_capacity(rules.len());
    for entry in rules {
        let compiled = match entry.rule.as_ref().map_err(Clone::clone).and_then(Compiled::new) {
            Ok(compiled) if compiled.is_for(process, exe) => compiled,
            Ok(_) => {
                told.push(None);
                continue;
            }
            Err(error) => {
                told.push(Some(Err(error)));
                continue;
            }
        };
        let is_matched = |event: &Candidate| {
            compiled.level.is_none_or(|level| level.matches(event.level)) && compiled.name.matches(&event.name)
        };
        let matched = (0..events.len()).filter(|index| is_matched(&events[*index])).collect();
        let (marks, matched) = if compiled.name.excludes() {
            (&mut left_out, Ok(matched))
        } else {
            let bad = |reason| RuleError { rule: compiled.name.text().to_owned(), reason };
            (&mut chosen, taken(entry, &compiled, matched).map_err(bad))
        };
        told.push(Some(matched.map(|matched: Vec<usize>| {
            for index in &matched {
                marks[*index] = true;
            }
            matched.len()
        })));
    }
    for (chosen, left_out) in chosen.iter_mut().zip(&left_out) {
        *chosen &= !left_out;
    }
    Selected { chosen, left_out, rules: told }
}
