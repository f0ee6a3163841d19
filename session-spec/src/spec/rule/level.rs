//! The condition of a rule on levels: `<=info`, `==err`, `>=debug`; `info` means `<=info`.

use tracepoint_core::Level;

/// Compares the numbers of levels: the smaller, the more important.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelRule {
    /// `<=`: at least as important.
    AtMost(Level),
    /// `==`: this one.
    Exactly(Level),
    /// `>=`: at most as important.
    AtLeast(Level),
}

impl LevelRule {
    /// Parses a condition; the error describes the expected form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let (rule, rest): (fn(Level) -> Self, _) = if let Some(rest) = trimmed.strip_prefix("<=") {
            (Self::AtMost, rest)
        } else if let Some(rest) = trimmed.strip_prefix("==") {
            (Self::Exactly, rest)
        } else if let Some(rest) = trimmed.strip_prefix(">=") {
            (Self::AtLeast, rest)
        } else {
            (Self::AtMost, trimmed)
        };
        rest.trim().parse().map(rule).map_err(|error| {
            format!("{error}; use for example `<=info` or `info` for events that are at least as important, `==err`, or `>=debug`")
        })
    }

    /// Returns whether it selects events of `level`.
    pub(crate) fn matches(self, level: Level) -> bool {
        match self {
            Self::AtMost(limit) => level <= limit,
            Self::Exactly(wanted) => level == wanted,
            Self::AtLeast(limit) => level >= limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_numbers_are_more_important() {
        assert_eq!(LevelRule::parse("<=info"), Ok(LevelRule::AtMost(Level::Info)));
        assert_eq!(LevelRule::parse("info"), Ok(LevelRule::AtMost(Level::Info)));
        assert_eq!(LevelRule::parse("<=warn"), Ok(LevelRule::AtMost(Level::Warning)));
        assert_eq!(LevelRule::parse("==error"), Ok(LevelRule::Exactly(Level::Err)));
        assert_eq!(LevelRule::parse(" == debug_line "), Ok(LevelRule::Exactly(Level::DebugLine)));
        let rule = LevelRule::AtMost(Level::Info);
        assert!(rule.matches(Level::Err) && rule.matches(Level::Info) && !rule.matches(Level::Debug));
        assert!(LevelRule::AtLeast(Level::Info).matches(Level::Debug));
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, part) in
            [("", "`<=info`"), ("loud", "not a level"), ("<=loud", "not a level"), ("=info", "`<=info`")]
        {
            let error = LevelRule::parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
