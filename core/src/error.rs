//! What can go wrong when a probe is registered.

use crate::site::SwitchError;
use std::fmt;

/// Why a probe could not be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The tracepoint's sites cannot be switched on.
    Switch(SwitchError),
    /// A probe that was registered by name has another signature than the tracepoint.
    Signature {
        /// `provider:name` of the tracepoint.
        tracepoint: String,
        /// The signature of the tracepoint, as Rust writes the type of a function pointer.
        expected: String,
        /// The signature of the probe.
        found: String,
    },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(error) => error.fmt(f),
            Self::Signature { tracepoint, expected, found } => {
                write!(f, "the probes of {tracepoint} are `{expected}`, this one is `{found}`")
            }
        }
    }
}

impl std::error::Error for RegisterError {}

impl From<SwitchError> for RegisterError {
    fn from(error: SwitchError) -> Self {
        Self::Switch(error)
    }
}

/// No tracepoint has the name that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    pub(crate) name: String,
    pub(crate) nearest: Vec<String>,
}

impl NotFound {
    /// The names that come nearest, best first; at most three.
    pub fn nearest(&self) -> &[String] {
        &self.nearest
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no tracepoint is called `{}`", self.name)?;
        match self.nearest.as_slice() {
            [] => write!(f, "; names are written `provider:name`"),
            nearest => write!(f, "; did you mean {}?", nearest.join(" or ")),
        }
    }
}

impl std::error::Error for NotFound {}

/// The names nearest to `wanted`, best first, at most three: by edit distance, none further than a third of the name's length. A
/// provider that both have in common (what stands before the colon) does not count.
pub fn nearest_names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let (wanted, compared) = match (wanted.split_once(':'), name.split_once(':')) {
                (Some((wanted_provider, wanted)), Some((provider, event))) if wanted_provider == provider => {
                    (wanted, event)
                }
                _ => (wanted, name),
            };
            let distance = edit_distance(wanted, compared);
            let near = distance <= compared.len().max(3) / 3 || (!wanted.is_empty() && compared.contains(wanted));
            near.then_some((distance, name))
        })
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Levenshtein's distance, by rows.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_first() {
        let names = ["sched:sched_switch", "sched:sched_migrate", "net:recv"];
        assert_eq!(nearest_names("sched:sched_swich", names), ["sched:sched_switch"]);
        assert_eq!(nearest_names("recv", names), ["net:recv"]);
        assert!(nearest_names("sched:exit", names).is_empty(), "the provider they share does not make names near");
        assert!(nearest_names("zzz", names).is_empty());
    }
}
