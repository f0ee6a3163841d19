//! Finds the rules of a session that match no event.

use super::{ControlError, Controller};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use tracepoint_core::internal::nearest_names;
use tracepoint_probes::Measure;
use tracepoint_session_spec::selection::select;
use tracepoint_session_spec::{Rule, SessionSpec};

/// Maximum time that processes may take to list their events again.
const ANSWER: Duration = Duration::from_millis(500);

/// A rule that matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmatchedRule {
    /// The rule.
    pub rule: String,
    /// Number of traced processes that it was compared with.
    pub processes: usize,
    /// The most similar names; may be empty.
    pub nearest: Vec<String>,
    /// The part of the rule that no event satisfies.
    pub mismatch: Mismatch,
}

/// The part of a rule that no event satisfies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// Its pattern.
    Name,
    /// Its level: events match its pattern, and have other levels.
    Level(String),
    /// The name of an event of its latency.
    LatencyEvent(String),
    /// The session's exclusions match every event that it matches.
    Excluded,
}

impl fmt::Display for UnmatchedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, processes, nearest, mismatch } = self;
        let of = match processes {
            0 => return write!(f, "`{rule}` matches nothing: no traced process takes part"),
            1 => "the process".to_owned(),
            _ => format!("{processes} processes"),
        };
        match mismatch {
            Mismatch::Name => write!(f, "no event of {of} matches `{rule}`")?,
            Mismatch::Level(level) => write!(f, "no event of {of} that matches `{rule}` has a level `{level}`")?,
            Mismatch::LatencyEvent(event) => {
                write!(f, "no event of {of} is called `{event}`, which the latency needs")?;
            }
            Mismatch::Excluded => {
                write!(
                    f,
                    "the rules with `!` exclude every event of {of} that matches `{rule}`; leave one of them out"
                )?;
            }
        }
        if nearest.is_empty() { Ok(()) } else { write!(f, "; did you mean {}?", nearest.join(" or ")) }
    }
}

impl Controller {
    /// Returns the rules of a session that match no event of any living process. Exclusions are not included. If there are such rules, the
    /// processes are first requested to list their events again, with a timeout of half a second.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn unmatched(&self, spec: &SessionSpec) -> Result<Vec<UnmatchedRule>, ControlError> {
        let unmatched = self.unmatched_by_list(spec)?;
        if unmatched.is_empty() {
            return Ok(unmatched);
        }
        self.refresh(ANSWER)?;
        self.unmatched_by_list(spec)
    }

    /// Returns the rules that match no event in the lists that the processes have published.
    fn unmatched_by_list(&self, spec: &SessionSpec) -> Result<Vec<UnmatchedRule>, ControlError> {
        let mut counts = vec![0; spec.rules.len()];
        let mut names = BTreeSet::new();
        let (mut processes, mut records_any) = (0, false);
        for process in self.processes()? {
            let info = process.info();
            if !spec.is_for(info.tag.as_deref()) {
                continue;
            }
            let candidates = process.candidates();
            let selected = select(spec, info.key(), &info.executable, &candidates);
            for (count, rule) in counts.iter_mut().zip(&selected.rules) {
                *count += rule.as_ref().and_then(|rule| rule.as_ref().ok()).copied().unwrap_or(0);
            }
            records_any |= selected.records_any();
            processes += usize::from(selected.rules.iter().any(Option::is_some));
            names.extend(candidates.into_iter().map(|event| event.name));
        }
        // Such events are excluded from all channels; the statistics of a session continue, if it has any.
        let is_all_excluded =
            processes > 0 && !records_any && spec.rules().flatten().all(|rule| rule.statistic.is_none());
        let unmatched = |rule: &Rule, count: usize| {
            let (mismatch, nearest) = match count {
                0 => mismatch(rule, &names),
                _ => (Mismatch::Excluded, Vec::new()),
            };
            UnmatchedRule { rule: rule.event.to_string(), processes, nearest, mismatch }
        };
        let rules = spec.rules().zip(counts).filter_map(|(rule, count)| Some((rule.ok()?, count)));
        let rules = rules.filter(|(rule, count)| !rule.excludes() && (*count == 0 || is_all_excluded));
        Ok(rules.map(|(rule, count)| unmatched(rule, count)).collect())
    }
}

/// Returns the part of a rule that no event satisfies, and the names most similar to the one in the rule.
fn mismatch(rule: &Rule, names: &BTreeSet<String>) -> (Mismatch, Vec<String>) {
    if let Some(spec) = rule.computes()
        && let Measure::Latency { begin, end, .. } = spec.measure()
        && let Some(event) = [begin, end].into_iter().find(|event| !names.contains(*event))
    {
        let nearest = nearest_names(event, names.iter().map(String::as_str));
        return (Mismatch::LatencyEvent(event.clone()), nearest);
    }
    match &rule.level {
        Some(level) if names.iter().any(|name| rule.matches(name)) => (Mismatch::Level(level.to_string()), Vec::new()),
        _ => (Mismatch::Name, nearest(rule.event.text(), names)),
    }
}

/// The event names most similar to a rule. For `PROVIDER:*`, the same rule for the most similar providers.
fn nearest(rule: &str, names: &BTreeSet<String>) -> Vec<String> {
    let Some(provider) = rule.strip_suffix(":*") else {
        return nearest_names(rule, names.iter().map(String::as_str));
    };
    let providers: BTreeSet<_> = names.iter().filter_map(|name| Some(name.split_once(':')?.0)).collect();
    nearest_names(provider, providers).into_iter().map(|provider| format!("{provider}:*")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_and_providers() {
        let names = ["shop:paid", "shop:refused", "net:received"].map(str::to_owned).into();
        for (rule, expected) in [
            ("shop:pajd", &["shop:paid"][..]),
            ("shpo:*", &["shop:*"]),
            ("hsop_:*", &[]),
            ("shap:*", &["shop:*"]),
            ("nt:*", &["net:*"]),
            ("x:*", &[]),
        ] {
            assert_eq!(nearest(rule, &names), expected, "{rule}");
        }
    }
}
