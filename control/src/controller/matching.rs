//! Finds the rules of a session that match no event.

use super::Controller;
use crate::nearest::nearest_names;
use crate::rule_match::select;
use crate::spec::SessionSpec;
use std::collections::BTreeSet;
use std::fmt;

/// A rule that matches nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// The rule.
    pub rule: String,
    /// How many traced processes it was compared with.
    pub processes: usize,
    /// The most similar names; may be empty.
    pub nearest: Vec<String>,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, processes, nearest } = self;
        match processes {
            0 => return write!(f, "`{rule}` matches nothing: no traced process takes part"),
            1 => write!(f, "no event of the process matches `{rule}`")?,
            _ => write!(f, "no event of {processes} processes matches `{rule}`")?,
        }
        if nearest.is_empty() { Ok(()) } else { write!(f, "; did you mean {}?", nearest.join(" or ")) }
    }
}

impl Controller {
    /// The rules of a session that match no event of any living process. Exclusions are not included.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn unmatched(&self, spec: &SessionSpec) -> Result<Vec<Unmatched>, super::ControlError> {
        let mut counts = vec![0; spec.rules.len()];
        let mut names = BTreeSet::new();
        let mut processes = 0;
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
            processes += usize::from(selected.rules.iter().any(Option::is_some));
            names.extend(candidates.into_iter().map(|event| event.name));
        }
        let none = spec.rules().zip(counts).filter(|(_, count)| *count == 0);
        let rules = none.filter_map(|(rule, _)| rule.ok()).filter(|rule| !rule.event.starts_with('!'));
        let unmatched = |rule: &crate::spec::Rule| Unmatched {
            rule: rule.event.clone(),
            processes,
            nearest: nearest(&rule.event, &names),
        };
        Ok(rules.map(unmatched).collect())
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
