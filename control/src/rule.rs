//! The parts of a rule: the names and the levels of events.

mod level;
mod name;

pub(crate) use level::LevelRule;
pub(crate) use name::NameRule;

/// A text is not a rule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the rule `{text}` cannot be understood: {reason}")]
pub(crate) struct BadRule {
    /// The text.
    pub(crate) text: String,
    /// What is wrong, and what was expected.
    pub(crate) reason: String,
}
