//! A rule of a session: selects events in some processes, under conditions, for one channel.

mod compiled;
mod entry;
mod error;
mod level;
mod name;
mod statistic;

pub use compiled::Compiled;
pub use entry::RuleEntry;
pub use error::{RuleError, RuleProblem};
pub use level::LevelRule;
pub use name::NameRule;
pub use statistic::RuleStatistic;

use crate::glob::Glob;
use serde::{Deserialize, Serialize};
use std::fmt;
use tracepoint_reader::process::ProcessKey;

/// Selects events to record or exclude in some processes, with optional conditions.
///
/// The texts are parsed when the session starts or the rule is added; an invalid rule is then an error.
///
/// ```
/// use tracepoint_session_spec::{Limit, Rule};
///
/// let rule = Rule::new("io:*").level("<=info").filter("n > 4096").limit("1000/s");
/// assert_eq!(rule, Rule::new("io:*").level("<=info").filter("n > 4096").limit(Limit::per_second(1000)));
/// assert_eq!(Rule::from("!io:poll"), Rule::new("!io:poll"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// A pattern for `provider:name`; a pattern that starts with `!` excludes the events that it matches.
    pub event: String,
    /// Restricts it to events of these levels: `<=info`, `==err`, `>=debug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Restricts it to programs whose path, or its last component, matches this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// Restricts it to this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessKey>,
    /// Restricts it to events whose fields satisfy this [expression](crate::filter::Expression).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Maximum rate of the events that pass the filter, in each process: a [`Limit`](crate::Limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The channel of the session that the events go into; by default the default channel. An excluding rule excludes events from this
    /// channel; by default from all channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// A statistic of the events that replaces recording each of them: a [`RuleStatistic`], such as `count by route` or `sample(1/100)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistic: Option<String>,
    /// True if a rule that computes a statistic also records its events. A rule without a statistic, or with a sample, always records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record: bool,
}

impl Rule {
    /// Creates a rule that records the events whose `provider:name` matches `event`, in all processes. `*` matches any characters, `?`
    /// matches one, `[a-m]` matches one of a set; a pattern that starts with `!` excludes the matching events, regardless of the other
    /// rules.
    pub fn new(event: impl Into<String>) -> Self {
        Self { event: event.into(), ..Self::default() }
    }

    /// Restricts the rule to events of certain levels: `<=info` (at least as important as info), `==err`, `>=debug`.
    #[must_use]
    pub fn level(mut self, level: impl Into<String>) -> Self {
        self.level = Some(level.into());
        self
    }

    /// Restricts the rule to events whose fields satisfy `filter`, such as `size > 4096 && comm == "postgres*"`; `docs/filters.md` describes
    /// the language.
    ///
    /// An event that matches several rules is recorded if one of them accepts it. A rule does not apply to an event that lacks a field of
    /// the filter, or whose field has a type that cannot be compared; a notice reports this if no other rule records the event.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = Some(filter.into());
        self
    }

    /// Limits the rate of the events that the filter accepts, summed over all events of the rule: a [`Limit`](crate::Limit), or its text
    /// (`1000/s`, `5/15min`, `1000/s burst 20`). Further events are counted as suppressed.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a text or a `Limit` reads best by value")]
    pub fn limit(mut self, limit: impl ToString) -> Self {
        self.limit = Some(limit.to_string());
        self
    }

    /// Sends the events into this channel of the session; an excluding rule excludes them from it.
    ///
    /// An event that matches rules for several channels is recorded and counted in each channel, subject to their filters and limits. This
    /// costs as much as the same number of sessions.
    #[must_use]
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = Some(channel.into());
        self
    }

    /// Computes a statistic of the events instead of recording them: a [`RuleStatistic`], or its text. The filter selects the events that
    /// are counted; the filter of a latency must fit both of its events. `docs/probes.md` describes the statistics and their costs.
    ///
    /// Several rules for the same events compute several statistics.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a text or a `RuleStatistic` reads best by value")]
    pub fn statistic(mut self, statistic: impl ToString) -> Self {
        self.statistic = Some(statistic.to_string());
        self
    }

    /// Records the events in addition to the statistic.
    #[must_use]
    pub const fn record(mut self) -> Self {
        self.record = true;
        self
    }

    /// Restricts the rule to programs whose path, or its last component, matches this pattern.
    #[must_use]
    pub fn exe(mut self, pattern: impl Into<String>) -> Self {
        self.exe = Some(pattern.into());
        self
    }

    /// Restricts the rule to this process.
    #[must_use]
    pub const fn process(mut self, process: ProcessKey) -> Self {
        self.process = Some(process);
        self
    }

    /// Returns whether it excludes events.
    pub fn excludes(&self) -> bool {
        self.event.starts_with('!')
    }

    /// Returns whether the rule records its events: all that its conditions select, or a sample. True for a malformed rule.
    pub fn records(&self) -> bool {
        let computes = |text: &String| matches!(text.parse(), Ok(RuleStatistic::Compute(_)));
        !self.excludes() && (self.record || !self.statistic.as_ref().is_some_and(computes))
    }

    /// Checks that the rule's channel is in `names`, the channels of the session.
    pub(super) fn check_channel(&self, names: &[&str]) -> Result<(), RuleError> {
        match &self.channel {
            Some(channel) if !names.contains(&channel.as_str()) => {
                Err(self.problem(RuleProblem::NoChannel { channel: channel.clone(), known: names.join(", ") }))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether its pattern matches the name of an event.
    pub fn matches(&self, name: &str) -> bool {
        NameRule::parse(&self.event).is_ok_and(|rule| rule.matches(name))
    }

    /// Returns whether it may apply to this process, regardless of the process's events.
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

/// Returns whether a pattern matches a program: its path, or the last component of the path.
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
    /// Formats the rule as on the command line of `tracectl`.
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
        if let Some(statistic) = &self.statistic {
            write!(f, " --statistic '{statistic}'")?;
        }
        if self.record {
            write!(f, " --record")?;
        }
        self.channel.as_ref().map_or(Ok(()), |channel| write!(f, " --channel '{channel}'"))
    }
}
