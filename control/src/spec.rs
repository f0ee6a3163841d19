//! The description of a session, in code and in `session.toml`.
//!
//! ```text
//!   SessionBuilder (code) ──┐                     ┌─▶ session.toml ─▶ agents of all processes ─┐
//!                           ├──▶ SessionSpec ─────┤                                            ├─▶ Matcher ─▶ Recording
//!   tracectl, Controller ───┘                     └─▶ Session, of this process alone ──────────┘
//! ```
//!
//! [`SessionSpec`] says which events are recorded (rules), through which rings (channels), into which sinks, within which bounds (limits,
//! budget). It is plain data: code builds it through [`SessionBuilder`](crate::SessionBuilder), `tracectl` through options, and
//! either can be turned into the other ([`SessionBuilder::from_spec`](crate::SessionBuilder::from_spec),
//! [`Session::spec`](crate::Session::spec)). A session without a rule that includes events records nothing. What a process decides for
//! itself is no part of it: where its rings are, its clock, and sinks that are objects of the program. Those stand in the description by
//! their names, and cannot be made from it.
//!
//! **One way from the description to a recording.** `rule_match::Matcher` finds the events and compiles their filters, `outputs` makes the
//! sinks that the description names, and `session::Recording` owns channels, sinks and the thread between them. The owner of a description
//! is the [`Session`](crate::Session) in code, under its lock, or the agent's thread for a file.
//!
//! **Changes while it runs** replace the description: the recording compares it with the one before, and adds and removes what differs.
//! Each step is complete or has no effect; a step that fails leaves the recording as it was before that step.
//!
//! | what | added | removed |
//! |---|---|---|
//! | rule | events are described to sinks and readers, then switched on | events are switched off; ids and counters stay |
//! | filter, limit | exchanged while the event stays on; each event passes one or the other | the same |
//! | channel | rings are made, the stream class is described to all sinks, then rules may name it | its events are switched off, its rings drained into the sinks; its account stays |
//! | sink | is told the trace, all channels and events, then gets each packet that follows; what came before is not its loss | gets what was recorded until then, and is finished with an account of its part |
//!
//! Failures: a rule that cannot be used is an error in code, and `unsupported` alone in an acknowledgement. A sink that cannot be made,
//! or a channel that a sink cannot take, is refused, and the rest goes on. What is refused is told by
//! [`SessionError`](crate::SessionError) in code, and in the acknowledgement's `error` otherwise.
//!
//! `docs/format-run-directory.md` describes the file.

mod budget;
mod channel;
mod check;
mod context;
mod drain;
mod error;
mod owner;
mod rule;
mod sink;
#[cfg(test)]
mod tests;

pub use budget::{BudgetSpec, CpuPercent, CpuPercentError};
pub use channel::{ChannelSpec, Limits};
pub use drain::DrainedBy;
pub use error::SpecError;
pub(crate) use owner::Owner;
pub(crate) use rule::{Compiled, NameRule, RuleEntry};
pub use rule::{Rule, RuleError, RuleProblem};
pub use sink::SinkSpec;

use crate::process::ProcessKey;
use serde::{Deserialize, Serialize};
use std::iter::once;
use toml::{Table, Value};
use uuid::Uuid;

const FORMAT: &str = "tracepoint-session";
const VERSION: i64 = 1;
/// The most rules in a file.
const MAX_RULES: usize = 10_000;

/// Whether a session records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// Its events are on.
    Active,
    /// They are off.
    #[default]
    Stopped,
    /// It is about to be removed.
    Destroyed,
}

/// What is wanted of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionSpec {
    /// Tells sessions apart that had the same name, one after the other.
    pub id: String,
    /// One more with each change.
    pub generation: u64,
    /// Whether it records.
    pub state: State,
    /// Only processes take part that have this in `TRACEPOINT_TAG`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The process with which it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Owner>,
    /// The default channel, of which each process opens one: that of rules that name none.
    pub channel: ChannelSpec,
    /// Further ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelSpec>,
    /// Who takes the packets out of the rings.
    #[serde(skip_serializing_if = "DrainedBy::is_default")]
    pub drain: DrainedBy,
    /// Bounds on what it takes.
    pub limits: Limits,
    /// What it may cost each process; `None` is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpec>,
    /// One more whenever its traces shall go on in other chunks.
    #[serde(skip_serializing_if = "is_zero")]
    pub rotations: u64,
    /// Where the packets go. Without a sink they stay in the rings.
    #[serde(rename = "sink", skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<SinkSpec>,
    /// Which events are recorded.
    #[serde(rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<RuleEntry>,
}

/// The file, its format and version aside, with rules that are not looked at yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    id: String,
    generation: u64,
    state: State,
    owner: Option<Owner>,
    tag: Option<String>,
    #[serde(default)]
    channel: ChannelSpec,
    #[serde(default)]
    channels: Vec<ChannelSpec>,
    #[serde(default)]
    drain: DrainedBy,
    #[serde(default)]
    limits: Limits,
    budget: Option<BudgetSpec>,
    #[serde(default)]
    rotations: u64,
    #[serde(default, rename = "sink")]
    sinks: Vec<SinkSpec>,
    #[serde(default, rename = "rule")]
    rules: Vec<Table>,
}

impl SessionSpec {
    /// The longest `session.toml` that is read, in bytes.
    pub const MAX_SIZE: u64 = 4 << 20;

    /// A session that is stopped, with no rule and no sink.
    pub fn new() -> Self {
        Self { id: Uuid::new_v4().to_string(), generation: 1, ..Self::default() }
    }

    /// The rules, in their order. An error in place of one that this version does not know.
    pub fn rules(&self) -> impl Iterator<Item = Result<&Rule, &RuleError>> {
        self.rules.iter().map(|entry| entry.rule.as_ref())
    }

    /// Its channels, the default one first.
    pub fn all_channels(&self) -> impl Iterator<Item = &ChannelSpec> {
        once(&self.channel).chain(&self.channels)
    }

    /// What they are called.
    pub(crate) fn channel_names(&self) -> Vec<&str> {
        self.all_channels().map(|channel| channel.name.as_str()).collect()
    }

    /// Adds a rule, unless there is an equal one: whether it was added.
    ///
    /// # Errors
    ///
    /// If the rule does not read as one, or names no channel of the session, or if there are 10,000 already.
    pub fn add_rule(&mut self, rule: &Rule) -> Result<bool, SpecError> {
        let entry = RuleEntry::new(rule).in_channels(&self.channel_names());
        if let Err(error) = &entry.rule {
            return Err(SpecError::Rule(error.clone()));
        }
        if self.rules.contains(&entry) {
            return Ok(false);
        }
        if self.rules.len() >= MAX_RULES {
            return Err(SpecError::TooManyRules { most: MAX_RULES });
        }
        self.rules.push(entry);
        Ok(true)
    }

    /// Adds a rule that may be malformed, which [`SessionSpec::first_bad_rule`] finds; not if there is an equal one.
    pub(crate) fn push_rule(&mut self, rule: &Rule) {
        let entry = RuleEntry::new(rule);
        if !self.rules.contains(&entry) {
            self.rules.push(entry);
        }
    }

    /// Why the first rule that cannot be used cannot.
    pub(crate) fn first_bad_rule(&self) -> Option<RuleError> {
        let names = self.channel_names();
        let error = |entry: &RuleEntry| entry.clone().in_channels(&names).rule.err();
        self.rules.iter().find_map(error)
    }

    /// Puts a channel in the place of the one that is called the same; adds it if there is none.
    pub fn set_channel(&mut self, channel: ChannelSpec) {
        let same = once(&mut self.channel).chain(&mut self.channels).find(|known| known.name == channel.name);
        match same {
            Some(known) => *known = channel,
            None => self.channels.push(channel),
        }
    }

    /// Adds a rule in the place of those for the same events, programs, process and channel: whether the rules are others then. So the
    /// conditions of a rule are changed.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::add_rule`].
    pub fn enable(&mut self, rule: &Rule) -> Result<bool, SpecError> {
        let before = self.rules.clone();
        let place = self.rules.iter().position(|entry| entry.is_for_same(rule));
        self.rules.retain(|entry| !entry.is_for_same(rule));
        if let Err(error) = self.add_rule(rule) {
            self.rules = before;
            return Err(error);
        }
        if let Some(place) = place {
            self.rules[place..].rotate_right(1);
        }
        Ok(self.rules != before)
    }

    /// Removes the rules for the same events, programs, process and channel; where `rule` has a condition, only those that have it, too.
    /// How many there were.
    pub fn disable(&mut self, rule: &Rule) -> usize {
        let before = self.rules.len();
        self.rules.retain(|entry| !entry.is_for_same(rule) || !entry.has_conditions_of(rule));
        before - self.rules.len()
    }

    /// Removes the sinks of the same kind that write to the same place: how many there were.
    pub fn remove_sink(&mut self, sink: &SinkSpec) -> usize {
        let before = self.sinks.len();
        self.sinks.retain(|known| !known.is_at_same_place(sink));
        before - self.sinks.len()
    }

    /// Removes a channel, and the rules that name it: whether it was there. The default channel stays.
    pub fn remove_channel(&mut self, name: &str) -> bool {
        let before = self.channels.len();
        self.channels.retain(|channel| channel.name != name);
        let is_removed = self.channels.len() < before;
        if is_removed {
            self.rules.retain(|entry| !matches!(&entry.rule, Ok(rule) if rule.channel.as_deref() == Some(name)));
        }
        is_removed
    }

    /// Removes the rules that say what `rule` says: how many there were.
    pub fn remove_rule(&mut self, rule: &Rule) -> usize {
        let before = self.rules.len();
        self.rules.retain(|entry| entry.rule.as_ref() != Ok(rule));
        before - self.rules.len()
    }

    /// Events that the budget had switched off, in whichever process, are on again.
    pub fn renew_budget(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.round += 1;
        }
    }

    /// A session that is as this one, and another one.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { id: Uuid::new_v4().to_string(), generation: 1, owner: None, ..self.clone() }
    }

    /// The session ends with this process, however that ends.
    pub fn end_with_this_process(&mut self) {
        self.owner = Some(Owner::this_process());
    }

    /// Whether a process with this tag takes part.
    pub(crate) fn is_for(&self, tag: Option<&str>) -> bool {
        self.tag.is_none() || self.tag.as_deref() == tag
    }

    /// Whether there is something for this process to do, as far as its rules tell: whoever waits need not wait for the others.
    pub(crate) fn concerns(&self, tag: Option<&str>, process: ProcessKey, exe: &str) -> bool {
        // Of a rule that is not understood here only those know who understand it.
        let may_be = |rule: Result<&Rule, &RuleError>| rule.map_or(true, |rule| rule.concerns(process, exe));
        self.is_for(tag) && self.rules().any(may_be)
    }

    /// Whether its files can be removed: nobody is there who waits for what processes say at its end.
    pub(crate) fn is_left_behind(&self) -> bool {
        match self.owner.filter(Owner::is_comparable) {
            Some(owner) => owner.is_gone(),
            None => self.state == State::Destroyed,
        }
    }

    /// Whether it is, or is as good as, destroyed.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Destroyed || self.owner.is_some_and(|owner| owner.is_gone())
    }

    /// The file's text.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::check`].
    pub fn to_toml(&self) -> Result<String, SpecError> {
        self.check()?;
        let mut table = Table::new();
        table.insert("format".to_owned(), FORMAT.into());
        table.insert("version".to_owned(), VERSION.into());
        table.extend(Table::try_from(self).map_err(SpecError::malformed)?);
        toml::to_string(&table).map_err(SpecError::malformed)
    }

    /// Reads a file. A rule that is not understood is an entry of its own, and no error.
    ///
    /// # Errors
    ///
    /// If it is longer than 4 MiB, is not TOML, of another format or a newer version, or has something that is not understood.
    pub fn parse(bytes: &[u8]) -> Result<Self, SpecError> {
        if bytes.len() as u64 > Self::MAX_SIZE {
            return Err(SpecError::malformed("it is longer than 4 MiB"));
        }
        let text = str::from_utf8(bytes).map_err(SpecError::malformed)?;
        let mut table: Table = text.parse().map_err(SpecError::malformed)?;
        if table.remove("format").as_ref().and_then(Value::as_str) != Some(FORMAT) {
            return Err(SpecError::malformed(format!("its `format` is not \"{FORMAT}\"")));
        }
        match table.remove("version").as_ref().and_then(Value::as_integer) {
            Some(VERSION) => {}
            Some(version) if version > VERSION => return Err(SpecError::Newer { version, known: VERSION }),
            _ => return Err(SpecError::malformed("it has no `version`")),
        }
        let raw: Raw = table.try_into().map_err(SpecError::malformed)?;
        if raw.rules.len() > MAX_RULES {
            return Err(SpecError::TooManyRules { most: MAX_RULES });
        }
        let mut spec = Self {
            id: raw.id,
            generation: raw.generation,
            state: raw.state,
            tag: raw.tag,
            owner: raw.owner,
            channel: raw.channel,
            channels: raw.channels,
            drain: raw.drain,
            limits: raw.limits,
            budget: raw.budget,
            rotations: raw.rotations,
            sinks: raw.sinks,
            rules: Vec::new(),
        };
        let channels = spec.channel_names();
        spec.rules = raw.rules.into_iter().map(|table| RuleEntry::read(table).in_channels(&channels)).collect();
        spec.check()?;
        Ok(spec)
    }

    /// Id and generation of a file that need not be understood otherwise.
    pub(crate) fn identify(bytes: &[u8]) -> Option<(String, u64)> {
        let table: Table = str::from_utf8(bytes).ok()?.parse().ok()?;
        let id = table.get("id")?.as_str()?.to_owned();
        Some((id, table.get("generation")?.as_integer()?.try_into().ok()?))
    }

    /// The same for whoever changes the file: all of it is understood.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::parse`], and if a rule is not understood.
    pub fn parse_strictly(bytes: &[u8]) -> Result<Self, SpecError> {
        let spec = Self::parse(bytes)?;
        let unknown = spec.rules().find_map(Result::err).cloned();
        unknown.map_or(Ok(spec), |error| Err(SpecError::Rule(error)))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how serde asks")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
