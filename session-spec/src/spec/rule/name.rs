//! Rules on names: globs such as `sched:*`, `net:recv_?` and `io:[a-m]*`. A rule that begins with `!` excludes the matching events.

use crate::glob::Glob;
use crate::syntax::SyntaxError;
use std::fmt;

/// A glob for `provider:name`, and whether it includes or excludes events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRule {
    text: String,
    glob: Glob,
    excludes: bool,
}

/// The text is not a rule on names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameRuleError {
    /// It is empty.
    #[error("it is empty; expected a name such as `provider:name`, or a pattern such as `provider:*`")]
    Empty,
    /// It is a name without a provider.
    #[error(
        "it names no provider; expected `provider:name`: `*:{0}` for one event of any provider, `{0}:*` for a provider"
    )]
    NoProvider(String),
    /// It is not a glob.
    #[error(transparent)]
    Syntax(SyntaxError),
}

impl NameRule {
    /// Parses a rule for events of this library, whose names have a provider.
    pub fn parse(text: &str) -> Result<Self, NameRuleError> {
        let glob = text.strip_prefix('!').unwrap_or(text);
        if !glob.is_empty() && !glob.contains([':', '*', '?', '[']) {
            return Err(NameRuleError::NoProvider(glob.to_owned()));
        }
        Self::parse_any(text)
    }

    /// Parses a rule for events of any tracer.
    pub(crate) fn parse_any(text: &str) -> Result<Self, NameRuleError> {
        let (excludes, glob) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        if glob.is_empty() {
            return Err(NameRuleError::Empty);
        }
        let glob = Glob::parse(glob).map_err(NameRuleError::Syntax)?;
        Ok(Self { text: text.to_owned(), glob, excludes })
    }

    /// A rule whose text is invalid. It matches no event: no name is empty.
    pub(super) fn invalid(text: String) -> Self {
        let excludes = text.starts_with('!');
        Self { text, glob: Glob::empty_text(), excludes }
    }

    /// Returns the text of the rule as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the rule excludes events.
    pub const fn excludes(&self) -> bool {
        self.excludes
    }

    /// Returns whether the rule's glob matches `name`, a `provider:name`.
    pub fn matches(&self, name: &str) -> bool {
        self.glob.matches_str(name)
    }
}

impl fmt::Display for NameRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(rule: &str, name: &str) -> bool {
        NameRule::parse(rule).is_ok_and(|rule| rule.matches(name))
    }

    #[test]
    fn patterns_match_whole_names() {
        for (rule, name, expected) in [
            ("sched:*", "sched:switch", true),
            ("sched:*", "xsched:switch", false),
            ("*", "a:b", true),
            ("a:**", "a:b/c", true),
            ("*:recv_?", "net:recv_1", true),
            ("*:recv_?", "net:recv_12", false),
            ("io:[a-m]*", "io:close", true),
            ("io:[!a-m]*", "io:close", false),
            ("s*", "sched:switch", true),
            ("!sched:*", "sched:switch", true),
        ] {
            assert_eq!(matches(rule, name), expected, "{rule} on {name}");
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for (rule, part) in [("", "empty"), ("!", "empty"), ("sched", "`sched:*`"), ("a:[", "at byte 3")] {
            let error = NameRule::parse(rule).expect_err(rule).to_string();
            assert!(error.contains(part), "{rule}: {error}");
        }
    }
}
