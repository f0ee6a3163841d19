//! The condition of a rule on programs.

use super::RuleProblem;
use crate::from_text::try_from_text;
use crate::glob::Glob;
use std::fmt;
use std::str::FromStr;

/// A pattern for the path of a program, or the last component of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPattern {
    text: String,
    glob: Glob,
}

impl ProgramPattern {
    /// Returns whether it matches a program.
    pub(super) fn matches(&self, exe: &str) -> bool {
        let last = exe.rsplit('/').next().unwrap_or(exe);
        self.glob.matches_str(exe) || self.glob.matches_str(last)
    }
}

impl FromStr for ProgramPattern {
    type Err = RuleProblem;

    fn from_str(text: &str) -> Result<Self, RuleProblem> {
        let malformed = |error| RuleProblem::Malformed(format!("`{text}` is not a pattern for executables: {error}"));
        Ok(Self { text: text.to_owned(), glob: Glob::parse(text).map_err(malformed)? })
    }
}

try_from_text!(ProgramPattern, RuleProblem);

impl fmt::Display for ProgramPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
