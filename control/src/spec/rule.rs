//! A rule of a session: which events, in which processes, under which conditions, into which channel.

mod compiled;
mod entry;
mod error;
mod level;
mod name;

pub(crate) use compiled::Compiled;
pub(crate) use entry::RuleEntry;
pub use error::{RuleError, RuleProblem};
pub(crate) use level::LevelRule;
pub(crate) use name::NameRule;

use crate::glob::Glob;
use crate::process::ProcessKey;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which events are recorded, or excluded, in which processes; with conditions of its own.
///
/// The texts are parsed when the session starts, or when the rule is added to one: a rule that cannot be parsed is an error there.
///
/// ```
/// use tracepoint_control::{Limit, Rule};
///
/// let rule = Rule::new("io:*").level("<=info").filter("n > 4096").limit("1000/s");
/// assert_eq!(rule, Rule::new("io:*").level("<=info").filter("n > 4096").limit(Limit::per_second(1000)));
/// assert_eq!(Rule::from("!io:poll"), Rule::new("!io:poll"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// A pattern for `provider:name`; one that begins with `!` excludes the events that it matches.
    pub event: String,
    /// Only events of these levels: `<=info`, `==err`, `>=debug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Only in programs whose path, or its last component, matches this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// Only in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessKey>,
    /// Only events whose fields satisfy this [expression](crate::filter::Expression).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// At most so many of the events that pass the filter, in each process: a [`Limit`](crate::Limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The channel of the session that the events go into; the default one if it is not given. A rule that excludes events excludes them
    /// from this channel, or from all if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

impl Rule {
    /// The rule that records the events whose `provider:name` matches `event`, in all processes. `*` stands for any characters, `?` for one,
    /// `[a-m]` for one of a set; a pattern that begins with `!` excludes the events that it matches, whatever the other rules say.
    pub fn new(event: impl Into<String>) -> Self {
        Self { event: event.into(), ..Self::default() }
    }

    /// Only events of certain levels: `<=info` for those at least as important as info, `==err`, `>=debug`.
    #[must_use]
    pub fn level(mut self, level: impl Into<String>) -> Self {
        self.level = Some(level.into());
        self
    }

    /// Only events whose fields satisfy `filter`, such as `size > 4096 && comm == "postgres*"`; `docs/filters.md` describes the language.
    ///
    /// An event that several rules match is recorded if one of them accepts it. A rule does not apply to an event that lacks a field of
    /// the filter, or has it with a type that cannot be compared; a [notice](crate::Notice) says so where no other rule records that event.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// At most so many of the events that the filter accepts, all events of the rule together: a [`Limit`](crate::Limit), or its text
    /// (`1000/s`, `5/15min`, `1000/s burst 20`). The other events are counted as suppressed.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a text or a `Limit` reads best by value")]
    pub fn limit(mut self, limit: impl ToString) -> Self {
        self.limit = Some(limit.to_string());
        self
    }

    /// Into (of a rule that excludes events: from) the channel of the session that is called so.
    ///
    /// An event that rules for several channels match is recorded in each of them, as their filters and limits decide, and counted in each.
    /// It costs what it costs in as many sessions.
    #[must_use]
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = Some(channel.into());
        self
    }

    /// Only in programs whose path, or its last component, matches this pattern.
    #[must_use]
    pub fn exe(mut self, pattern: impl Into<String>) -> Self {
        self.exe = Some(pattern.into());
        self
    }

    /// Only in this process.
    #[must_use]
    pub const fn process(mut self, process: ProcessKey) -> Self {
        self.process = Some(process);
        self
    }

    /// Whether it excludes events.
    pub fn excludes(&self) -> bool {
        self.event.starts_with('!')
    }

    /// Fails unless the session has the rule's channel; `names` are its channels.
    pub(super) fn check_channel(&self, names: &[&str]) -> Result<(), RuleError> {
        match &self.channel {
            Some(channel) if !names.contains(&channel.as_str()) => {
                Err(self.problem(RuleProblem::NoChannel { channel: channel.clone(), known: names.join(", ") }))
            }
            _ => Ok(()),
        }
    }

    /// Whether it may record something in this process, whatever events that has.
    pub(super) fn concerns(&self, process: ProcessKey, exe: &str) -> bool {
        // A malformed pattern matches nothing.
        let is_program = |pattern: &String| Glob::parse(pattern).is_ok_and(|glob| is_program(&glob, exe));
        !self.excludes()
            && self.process.is_none_or(|wanted| wanted == process)
            && self.exe.as_ref().is_none_or(is_program)
    }

    fn problem(&self, problem: RuleProblem) -> RuleError {
        RuleError { rule: self.event.clone(), problem }
    }
}

/// Whether a pattern matches this program: its path, or the last component of it.
fn is_program(glob: &Glob, exe: &str) -> bool {
    let last = exe.rsplit('/').next().unwrap_or(exe);
    glob.matches_str(exe) || glob.matches_str(last)
}

impl From<&str> for Rule {
    fn from(event: &str) -> Self {
        Self::new(event)
    }
}

impl From<String> for Rule {
    fn from(event: String) -> Self {
        Self::new(event)
    }
}

impl From<&String> for Rule {
    fn from(event: &String) -> Self {
        Self::new(event)
    }
}

impl From<&Self> for Rule {
    fn from(rule: &Self) -> Self {
        rule.clone()
    }
}

impl fmt::Display for Rule {
    /// As it is written on the command line of `tracectl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.event)?;
        if let Some(level) = &self.level {
            write!(f, " --level '{level}'")?;
        }
        if let Some(exe) = &self.exe {
            write!(f, " --exe '{exe}'")?;
        }
        if let Some(process) = self.process {
            write!(f, " -p {}", process.pid)?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " --filter '{filter}'")?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " --limit '{limit}'")?;
        }
        self.channel.as_ref().map_or(Ok(()), |channel| write!(f, " --channel '{channel}'"))
    }
}
