//! Which events of a process the rules choose.

use super::rule::Compiled;
use super::{RuleEntry, RuleError, SessionSpec};
use crate::process::ProcessKey;
use tracepoint_core::Level;

/// An event that can be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// `provider:name`.
    pub(crate) name: String,
    pub(crate) level: Level,
}

/// What the rules choose, for each channel and, in it, for each candidate.
#[derive(Debug)]
pub(crate) struct Selected {
    /// Whether it is chosen.
    pub(crate) chosen: Vec<Vec<bool>>,
    /// Whether a rule leaves it out.
    pub(crate) left_out: Vec<Vec<bool>>,
    /// For each rule how many candidates it speaks of; `None` if it is not for this process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
}

/// Asks the rules about the events of one process, by their names and levels. Costs one match of a pattern for each rule and event.
pub(crate) fn select(spec: &SessionSpec, process: ProcessKey, exe: &str, events: &[Candidate]) -> Selected {
    select_with(spec, process, exe, events, |_, _, _, matched| Ok(matched))
}

/// The same, where it is `taken` that says which of the candidates that a rule matches by name and level it takes in, for which channel; or
/// why it cannot.
pub(crate) fn select_with(
    spec: &SessionSpec,
    process: ProcessKey,
    exe: &str,
    events: &[Candidate],
    mut taken: impl FnMut(&RuleEntry, &Compiled, usize, Vec<usize>) -> Result<Vec<usize>, String>,
) -> Selected {
    let names = spec.channel_names();
    let mut chosen = vec![vec![false; events.len()]; names.len()];
    let mut left_out = chosen.clone();
    let mut told = Vec::with_capacity(spec.rules.len());
    for entry in &spec.rules {
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
        let channels = compiled.channels(&names);
        let (marks, matched) = if compiled.name.excludes() {
            (&mut left_out, Ok(matched))
        } else {
            let bad = |reason| RuleError { rule: compiled.name.text().to_owned(), reason };
            (&mut chosen, taken(entry, &compiled, channels.start, matched).map_err(bad))
        };
        told.push(Some(matched.map(|matched: Vec<usize>| {
            for marks in &mut marks[channels] {
                for index in &matched {
                    marks[*index] = true;
                }
            }
            matched.len()
        })));
    }
    for (chosen, left_out) in chosen.iter_mut().flatten().zip(left_out.iter().flatten()) {
        *chosen &= !left_out;
    }
    Selected { chosen, left_out, rules: told }
}
