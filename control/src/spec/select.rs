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
    /// For each rule how many candidates it speaks of; `None` if it is not for this process.
    pub(crate) rules: Vec<Option<Result<usize, RuleError>>>,
}

/// Asks the rules about the events of one process. Costs one match of a pattern for each rule and event.
pub(crate) fn select(rules: &[RuleEntry], process: ProcessKey, exe: &str, events: &[Candidate]) -> Selected {
    let mut taken = vec![false; events.len()];
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
        let marks = if compiled.name.excludes() { &mut left_out } else { &mut taken };
        let mut count = 0;
        for (event, mark) in events.iter().zip(marks) {
            if compiled.level.is_none_or(|level| level.matches(event.level)) && compiled.name.matches(&event.name) {
                *mark = true;
                count += 1;
            }
        }
        told.push(Some(Ok(count)));
    }
    let chosen = taken.into_iter().zip(left_out).map(|(taken, left_out)| taken && !left_out).collect();
    Selected { chosen, rules: told }
}
