//! A rule of a session: selects events in some processes, under conditions, for one channel.
//!
//! A rule has three forms: its text (the keys of a `[[rule]]`, in `rule/text.rs`; an entry of a description keeps it), a [`Rule`], which is
//! parsed, and for each event that it matches the [`Condition`](crate::event_filter::Condition), which is compiled for the event's fields.

mod entry;
mod error;
mod level;
mod name;
mod program;
mod statistic;
mod text;

pub use entry::RuleEntry;
pub use error::{RuleError, RuleProblem};
pub use level::{LevelError, LevelRule};
pub use name::{NameRule, NameRuleError};
pub use program::ProgramPattern;
pub use statistic::{RuleStatistic, RuleStatisticError};

use crate::filter::Expression;
use crate::limit::Limit;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use text::RuleText;
use tracepoint_core::Level;
use tracepoint_probes::StatisticSpec;
use tracepoint_reader::process::ProcessKey;

/// Selects events to record or exclude in some processes, with optional conditions.
///
/// Conditions are values, or texts that are parsed at once. An invalid text makes the rule invalid, which is an error when the session starts
/// or the rule is added.
///
/// ```
/// use tracepoint_session_spec::{Limit, Rule};
///
/// let rule = Rule::new("io:*").level("<=info").filter("n > 4096").limit("1000/s");
/// assert_eq!(rule, Rule::new("io:*").level("<=info").filter("n > 4096").limit(Limit::per_second(1000)));
/// assert_eq!(Rule::from("!io:poll"), Rule::new("!io:poll"));
/// assert!(Rule::new("io:*").limit("many").check().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RuleText", into = "RuleText")]
#[non_exhaustive]
pub struct Rule {
    /// A pattern for `provider:name`; a pattern that starts with `!` excludes the events that it matches.
    pub event: NameRule,
    /// Restricts it to events of these levels: `<=info`, `==err`, `>=debug`.
    pub level: Option<LevelRule>,
    /// Restricts it to programs whose path, or its last component, matches this pattern.
    pub exe: Option<ProgramPattern>,
    /// Restricts it to this process.
    pub process: Option<ProcessKey>,
    /// Restricts it to events whose fields satisfy this expression.
    pub filter: Option<Expression>,
    /// Maximum rate of the events that pass the filter, in each process.
    pub limit: Option<Limit>,
    /// The channel of the session that the events go into; by default the default channel. An excluding rule excludes events from this
    /// channel; by default from all channels.
    pub channel: Option<String>,
    /// A statistic of the events that replaces recording each of them, such as `count by route` or `sample(1/100)`.
    pub statistic: Option<RuleStatistic>,
    /// True if a rule that computes a statistic also records its events. A rule without a statistic, or with a sample, always records.
    pub record: bool,
    /// The problem of the first text that could not be parsed.
    problem: Option<Box<RuleProblem>>,
}

impl Rule {
    /// Creates a rule that records the events whose `provider:name` matches `event`, in all processes. `*` matches any characters, `?`
    /// matches one, `[a-m]` matches one of a set; a pattern that starts with `!` excludes the matching events, regardless of the other
    /// rules.
    pub fn new(event: impl Into<String>) -> Self {
        let event = event.into();
        let (event, problem) = match NameRule::parse(&event) {
            Ok(rule) => (rule, None),
            Err(error) => (NameRule::invalid(event), Some(Box::new(error.into()))),
        };
        Self {
            event,
            level: None,
            exe: None,
            process: None,
            filter: None,
            limit: None,
            channel: None,
            statistic: None,
            record: false,
            problem,
        }
    }

    /// Restricts the rule to events of certain levels: `<=info` (at least as important as info), `==err`, `>=debug`.
    #[must_use]
    pub fn level(mut self, level: impl TryInto<LevelRule, Error: Into<RuleProblem>>) -> Self {
        self.level = self.convert(level);
        self
    }

    /// Restricts the rule to events whose fields satisfy `filter`, such as `size > 4096 && comm == "postgres*"`; `docs/filters.md` describes
    /// the language.
    ///
    /// An event that matches several rules is recorded if one of them accepts it. A rule does not apply to an event that lacks a field of
    /// the filter, or whose field has a type that cannot be compared; a notice reports this if no other rule records the event.
    #[must_use]
    pub fn filter(mut self, filter: impl TryInto<Expression, Error: Into<RuleProblem>>) -> Self {
        self.filter = self.convert(filter);
        self
    }

    /// Limits the rate of the events that the filter accepts, summed over all events of the rule: a [`Limit`](crate::Limit), or its text
    /// (`1000/s`, `5/15min`, `1000/s burst 20`). Further events are counted as suppressed.
    #[must_use]
    pub fn limit(mut self, limit: impl TryInto<Limit, Error: Into<RuleProblem>>) -> Self {
        self.limit = self.convert(limit);
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
    pub fn statistic(mut self, statistic: impl TryInto<RuleStatistic, Error: Into<RuleProblem>>) -> Self {
        self.statistic = self.convert(statistic);
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
    pub fn exe(mut self, pattern: impl TryInto<ProgramPattern, Error: Into<RuleProblem>>) -> Self {
        self.exe = self.convert(pattern);
        self
    }

    /// Restricts the rule to this process.
    #[must_use]
    pub const fn process(mut self, process: ProcessKey) -> Self {
        self.process = Some(process);
        self
    }

    /// Converts a part; a text that cannot be parsed makes the rule invalid.
    fn convert<T>(&mut self, part: impl TryInto<T, Error: Into<RuleProblem>>) -> Option<T> {
        match part.try_into() {
            Ok(part) => Some(part),
            Err(error) => {
                self.problem.get_or_insert_with(|| Box::new(error.into()));
                None
            }
        }
    }

    /// Checks that all parts are valid, and can be combined.
    ///
    /// # Errors
    ///
    /// The first problem found.
    pub fn check(&self) -> Result<(), RuleError> {
        self.check_parts()?;
        let limit = || self.limit.and_then(|limit| limit.check().err()).map(RuleProblem::Limit);
        self.conflict().or_else(limit).map_or(Ok(()), |problem| Err(self.error(problem)))
    }

    /// Checks that all parts could be parsed, whether or not they can be combined.
    #[doc(hidden)]
    pub fn check_parts(&self) -> Result<(), RuleError> {
        // The pattern may be that of another rule, which is invalid.
        let event = || NameRule::parse(self.event.text()).err().map(RuleProblem::Name);
        let problem = self.problem.as_deref().cloned().or_else(event);
        problem.map_or(Ok(()), |problem| Err(self.error(problem)))
    }

    /// Returns the reason why the parts cannot be combined.
    fn conflict(&self) -> Option<RuleProblem> {
        let (excludes, records) = (self.excludes(), self.records());
        if excludes && (self.filter.is_some() || self.limit.is_some()) {
            return Some(RuleProblem::ConditionOnExclusion);
        }
        let why = match self {
            Self { statistic: None, record: true, .. } if !excludes => {
                "a rule without a statistic records anyway; leave `record` out, or give it a statistic"
            }
            Self { statistic, record, .. } if excludes && (statistic.is_some() || *record) => {
                "a rule that excludes events (`!`) takes none; it excludes them from the statistics of the other rules, too"
            }
            Self { limit: Some(_), .. } if !records && !excludes => {
                "a limit is for events that are recorded, and a statistic counts all; leave the limit out, or add `record`"
            }
            Self { channel: Some(_), .. } if !records && !excludes => {
                "a channel is for events that are recorded; leave the channel out, or add `record`"
            }
            _ => return None,
        };
        Some(RuleProblem::Statistic(why.to_owned()))
    }

    /// Returns whether it excludes events.
    pub const fn excludes(&self) -> bool {
        self.event.excludes()
    }

    /// Returns whether the rule records its events: all that its conditions select, or a sample.
    pub const fn records(&self) -> bool {
        !self.excludes() && (self.record || self.computes().is_none())
    }

    /// The statistic that it computes, if it has one that is not a sample.
    #[doc(hidden)]
    pub const fn computes(&self) -> Option<&StatisticSpec> {
        if let Some(RuleStatistic::Compute(spec)) = &self.statistic { Some(spec) } else { None }
    }

    /// The N of its sample, if it has one: one in N events is recorded.
    #[doc(hidden)]
    pub const fn sample(&self) -> Option<NonZeroU64> {
        if let Some(RuleStatistic::Sample { one_in }) = self.statistic { Some(one_in) } else { None }
    }

    /// Checks that the rule's channel is in `names`, the channels of the session.
    pub(super) fn check_channel(&self, names: &[&str]) -> Result<(), RuleError> {
        match &self.channel {
            Some(channel) if !names.contains(&channel.as_str()) => {
                Err(self.error(RuleProblem::NoChannel { channel: channel.clone(), known: names.join(", ") }))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether its pattern matches the name of an event.
    #[doc(hidden)]
    pub fn matches(&self, name: &str) -> bool {
        self.event.matches(name)
    }

    /// Returns whether its pattern and its condition on levels match an event.
    #[doc(hidden)]
    pub fn selects(&self, name: &str, level: Level) -> bool {
        self.level.as_ref().is_none_or(|wanted| wanted.matches(level)) && self.matches(name)
    }

    /// Returns whether it applies to this process, regardless of the process's events.
    #[doc(hidden)]
    pub fn is_for(&self, process: ProcessKey, exe: &str) -> bool {
        self.process.is_none_or(|wanted| wanted == process)
            && self.exe.as_ref().is_none_or(|pattern| pattern.matches(exe))
    }

    /// Returns the indices of the session's channels that the rule applies to: the channel that it names; without a name, the default
    /// channel if the rule includes events, and all channels if it excludes them.
    pub(crate) fn channels(&self, names: &[&str]) -> Range<usize> {
        match &self.channel {
            Some(channel) => {
                let index = names.iter().position(|name| name == channel);
                index.map_or(0..0, |index| index..index + 1)
            }
            None if self.excludes() => 0..names.len(),
            None => 0..1,
        }
    }

    /// An error about this rule.
    pub(crate) fn error(&self, problem: RuleProblem) -> RuleError {
        RuleError { rule: self.event.to_string(), problem }
    }
}

impl<T: Into<String>> From<T> for Rule {
    fn from(event: T) -> Self {
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
