//! The condition of a rule on levels: `<=info`, `==err`, `>=debug`; `info` means `<=info`.

use crate::from_text::try_from_text;
use std::fmt;
use std::str::FromStr;
use tracepoint_core::Level;

/// A condition on levels. It compares their numbers: the smaller, the more important.
#[derive(Clone, Debug)]
pub struct LevelRule {
    /// As given: `info` or `<=info`.
    text: String,
    comparison: Comparison,
    level: Level,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// `<=`: at least as important.
    AtMost,
    /// `==`: this one.
    Exactly,
    /// `>=`: at most as important.
    AtLeast,
}

/// The text is not a condition on levels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the level `{level}` cannot be used: {reason}")]
pub struct LevelError {
    level: String,
    reason: String,
}

impl LevelRule {
    /// Returns whether it selects events of `level`.
    pub(crate) fn matches(&self, level: Level) -> bool {
        match self.comparison {
            Comparison::AtMost => level <= self.level,
            Comparison::Exactly => level == self.level,
            Comparison::AtLeast => level >= self.level,
        }
    }
}

/// Compares what they select, not the texts: `info` is `<=info`.
impl PartialEq for LevelRule {
    fn eq(&self, other: &Self) -> bool {
        (self.comparison, self.level) == (other.comparison, other.level)
    }
}

impl Eq for LevelRule {}

impl fmt::Display for LevelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Level> for LevelRule {
    /// Selects events that are at least as important.
    fn from(level: Level) -> Self {
        Self { text: level.to_string(), comparison: Comparison::AtMost, level }
    }
}

impl FromStr for LevelRule {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        let trimmed = text.trim();
        let comparisons = [
            ("<=", Comparison::AtMost),
            ("==", Comparison::Exactly),
            (">=", Comparison::AtLeast),
            ("", Comparison::AtMost),
        ];
        let split = |(sign, comparison)| Some((comparison, trimmed.strip_prefix(sign)?));
        let (comparison, level) = comparisons.into_iter().find_map(split).unwrap_or((Comparison::AtMost, trimmed));
        let level = level.trim().parse().map_err(|error| LevelError {
            level: text.to_owned(),
            reason: format!("{error}; use for example `<=info` or `info` for events that are at least as important, `==err`, or `>=debug`"),
        })?;
        Ok(Self { text: text.to_owned(), comparison, level })
    }
}

try_from_text!(LevelRule, LevelError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_numbers_are_more_important() {
        let selects = |text: &str| {
            let rule = text.parse::<LevelRule>().unwrap_or_else(|error| panic!("{error}"));
            Level::ALL.into_iter().filter(|level| rule.matches(*level)).collect::<Vec<_>>()
        };
        let upto = |level: Level| Level::ALL.into_iter().filter(|other| *other <= level).collect::<Vec<_>>();
        assert_eq!(selects("<=info"), upto(Level::Info));
        assert_eq!(selects("info"), upto(Level::Info));
        assert_eq!(selects("<=warn"), upto(Level::Warning));
        assert_eq!(selects("==error"), [Level::Err]);
        assert_eq!(selects(" == debug_line "), [Level::DebugLine]);
        assert_eq!([selects(">=info").first(), selects(">=info").last()], [Some(&Level::Info), Some(&Level::Debug)]);
        assert!(
            LevelRule::from(Level::Info).matches(Level::Err) && !LevelRule::from(Level::Info).matches(Level::Debug)
        );
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, part) in
            [("", "`<=info`"), ("loud", "not a level"), ("<=loud", "not a level"), ("=info", "`<=info`")]
        {
            let error = text.parse::<LevelRule>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
