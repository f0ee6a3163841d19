//! A rule of a session that is controlled from outside: which events, in which processes.

use crate::filter::Expression;
use crate::glob::Glob;
use crate::limit::{Limit, LimitError};
use crate::process::ProcessKey;
use crate::rule::{BadRule, LevelRule, NameRule};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use toml::{Table, Value};

/// Which events are recorded, or left out, in which processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// A pattern for `provider:name`; one that begins with `!` leaves out what it matches.
    pub event: String,
    /// Only events of these levels: `<=info`, `==err`, `>=debug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Only in programs whose path, or the last part of it, matches this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// Only in this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessKey>,
    /// Only events whose fields are like this: see [`Expression`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Of those no more than so many, in each process: see [`Limit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Into this channel of the session; the default one if it is not said. What a rule leaves out is left out of this one, or of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

impl Rule {
    /// The rule that takes in, or with `!` leaves out, what matches `event`, in all processes.
    pub fn new(event: impl Into<String>) -> Self {
        Self { event: event.into(), ..Self::default() }
    }

    /// Whether a session whose channels are called so has the rule's.
    pub(super) fn check_channel(&self, names: &[&str]) -> Result<(), RuleError> {
        match &self.channel {
            Some(channel) if !names.contains(&channel.as_str()) => {
                let reason = format!("the session has no channel `{channel}`; it has {}", names.join(", "));
                Err(RuleError { rule: self.event.clone(), reason })
            }
            _ => Ok(()),
        }
    }

    /// Whether it may take something in in this process, whatever events that has.
    pub(super) fn concerns(&self, process: ProcessKey, exe: &str) -> bool {
        // What is no pattern matches nothing.
        let is_program = |pattern: &String| Glob::parse(pattern).is_ok_and(|glob| is_program(&glob, exe));
        !self.event.starts_with('!')
            && self.process.is_none_or(|wanted| wanted == process)
            && self.exe.as_ref().is_none_or(is_program)
    }
}

/// Whether a pattern is for this program: by its path, or the last part of it.
fn is_program(glob: &Glob, exe: &str) -> bool {
    let last = exe.rsplit('/').next().unwrap_or(exe);
    glob.matches_str(exe) || glob.matches_str(last)
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

/// A rule is not understood.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the rule `{rule}` cannot be understood: {reason}")]
#[non_exhaustive]
pub struct RuleError {
    /// The rule, as far as there is one.
    pub rule: String,
    /// What is wrong.
    pub reason: String,
}

/// What stands in the file, whether it is understood or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleEntry {
    /// As text: a table that has a number in it which is none is not equal to itself.
    pub(crate) table: String,
    pub(crate) rule: Result<Rule, RuleError>,
}

impl RuleEntry {
    /// A rule that is understood.
    pub(super) fn new(rule: &Rule) -> Result<Self, RuleError> {
        Compiled::new(rule)?;
        // Texts alone: there is nothing that a table could not hold.
        Ok(Self::read(Table::try_from(rule).unwrap_or_default()))
    }

    /// The same where such a session has the rule's channel.
    pub(super) fn in_channels(mut self, names: &[&str]) -> Self {
        self.rule = self.rule.and_then(|rule| rule.check_channel(names).map(|()| rule));
        self
    }

    pub(super) fn read(table: Table) -> Self {
        let text = toml::to_string(&table).unwrap_or_default();
        let event = table.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
        let bad = |error: toml::de::Error| RuleError { rule: event, reason: error.message().to_owned() };
        let rule = table.try_into().map_err(bad).and_then(|rule| Compiled::new(&rule).map(|_| rule));
        Self { table: text, rule }
    }
}

impl Serialize for RuleEntry {
    /// As it was read, so that nothing is lost of what is not understood.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table.parse::<Table>().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A rule, ready to be asked.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) name: NameRule,
    pub(super) level: Option<LevelRule>,
    exe: Option<Glob>,
    process: Option<ProcessKey>,
    channel: Option<String>,
    pub(crate) filter: Option<Expression>,
    pub(crate) limit: Option<Limit>,
}

impl Compiled {
    pub(super) fn new(rule: &Rule) -> Result<Self, RuleError> {
        let bad = |BadRule { text, reason }: BadRule| RuleError { rule: text, reason };
        let exe = |pattern: &String| {
            let reason = |error| format!("`{pattern}` is not a pattern for executables: {error}");
            Glob::parse(pattern).map_err(|error| RuleError { rule: rule.event.clone(), reason: reason(error) })
        };
        let told = |reason: String| RuleError { rule: rule.event.clone(), reason };
        let filter = rule.filter.as_deref().map(Expression::parse).transpose();
        let limit = rule.limit.as_deref().map(str::parse).transpose();
        let name = NameRule::parse(&rule.event).map_err(bad)?;
        if name.excludes() && (rule.filter.is_some() || rule.limit.is_some()) {
            return Err(told("it leaves events out, and has no use for a filter or a limit".to_owned()));
        }
        Ok(Self {
            name,
            level: rule.level.as_deref().map(LevelRule::parse).transpose().map_err(bad)?,
            exe: rule.exe.as_ref().map(exe).transpose()?,
            process: rule.process,
            channel: rule.channel.clone(),
            filter: filter.map_err(|error| told(format!("the filter cannot be used: {error}")))?,
            limit: limit.map_err(|error: LimitError| told(error.to_string()))?,
        })
    }

    /// Which of the session's channels it speaks of: its own; without one, the default one if it takes events in, and all if it leaves them out.
    pub(super) fn channels(&self, names: &[&str]) -> Range<usize> {
        match &self.channel {
            Some(channel) => {
                let place = names.iter().position(|name| name == channel);
                place.map_or(0..0, |place| place..place + 1)
            }
            None if self.name.excludes() => 0..names.len(),
            None => 0..1,
        }
    }

    /// Whether the rule counts for this process.
    pub(super) fn is_for(&self, process: ProcessKey, exe: &str) -> bool {
        self.process.is_none_or(|wanted| wanted == process)
            && self.exe.as_ref().is_none_or(|glob| is_program(glob, exe))
    }
}
