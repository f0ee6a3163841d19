//! Rules: which events a session records.

mod level;
mod name;

pub(crate) use level::LevelRule;
pub(crate) use name::NameRule;

/// A rule that does not read as one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadRule {
    /// The rule as it was written.
    pub(crate) text: String,
    /// What is wrong with it, and what was expected.
    pub(crate) reason: String,
}
