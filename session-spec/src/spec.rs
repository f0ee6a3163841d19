//! The description of a session, in code and in `session.toml`.
//!
//! ```text
//!   SessionBuilder (code) ──┐                     ┌─▶ session.toml ─▶ agents of all processes ─┐
//!                           ├──▶ SessionSpec ─────┤                                            ├─▶ Matcher ─▶ Recording
//!   tracectl, Controller ───┘                     └─▶ Session, of this process alone ──────────┘
//! ```
//!
//! [`SessionSpec`] describes which events are recorded (rules), through which rings (channels), into which sinks, and within which limits
//! and budget. It is plain data: code builds it through `SessionBuilder`, `tracectl` through options, and each form converts into the other
//! (`SessionBuilder::from_spec`, `Session::spec`). A session without a rule that includes events records nothing. The location of the
//! rings, the clock, and sinks that are objects of the program are local to a process and not part of it. Such sinks appear in the
//! description by name, and cannot be created from it.
//!
//! **All recordings start in the same way.** In `tracepoint-session`, `Matcher` finds the events and compiles their filters, the outputs of
//! `tracepoint-session-io` create the sinks in the description, and `Recording` owns channels, sinks and the drain thread. The owner of a
//! description is the `Session` in code, under its lock, or the agent's thread for a file.
//!
//! **Changes to a running session** replace the description: the recording compares it with the previous one, and adds and removes what
//! differs. Each step completes or has no effect; a step that fails leaves the recording in its state before that step.
//!
//! | what | added | removed |
//! |---|---|---|
//! | rule | events are described to sinks and readers, then enabled | events are disabled; ids and counters stay |
//! | filter, limit | replaced while the event stays enabled; each firing is checked by the old or the new one | the same |
//! | channel | rings are created, its stream class is described to the sinks, then rules may name it | events are disabled, rings drained; the account stays |
//! | setting of a channel | a notice names it; it applies to the next recording | the same |
//! | sink | gets the descriptions, then each later packet; earlier events are not its losses | gets the packets recorded until then, and ends with an account |
//!
//! Failures: an invalid rule is an error in code, and `unsupported` in an acknowledgement, without effect on other rules. A sink that
//! cannot be created, or a channel that a sink cannot accept, is refused, and the other parts are applied. Errors are returned as
//! `SessionError` in code, and reported in the acknowledgement's `error` otherwise.
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
mod shared;
mod sink;
mod sink_source;
mod stream;
#[cfg(test)]
mod tests;
mod trigger;

pub use budget::{BudgetSpec, CpuPercent, CpuPercentError};
pub use channel::{ChannelSpec, Limits};
pub use drain::DrainedBy;
pub use error::SpecError;
pub use owner::Owner;
pub use rule::{
    LevelError, LevelRule, NameRule, NameRuleError, ProgramPattern, Rule, RuleEntry, RuleError, RuleProblem,
    RuleStatistic, RuleStatisticError,
};
pub use sink::{
    CtfSinkSpec, DropPolicy, DtSinkSpec, ExistingTraces, ObjectSinkSpec, SinkSpec, StreamSinkSpec, TextSinkSpec,
    UdpSinkSpec,
};
pub use sink_source::SinkSource;
pub use stream::StreamSpec;
pub use trigger::{
    Aggregate, Threshold, ThresholdError, TriggerAction, TriggerCondition, TriggerEntry, TriggerPartError, TriggerSpec,
    signal_number,
};

use crate::random_id::random_id;
use crate::table::{self, Table, Value};
use serde::{Deserialize, Serialize};
use std::iter::once;
use tracepoint_reader::account::uuid_text;
use tracepoint_reader::process::ProcessKey;

const FORMAT: &str = "tracepoint-session";
const VERSION: i64 = 1;
/// The key under which a file names its session.
const SESSION: &str = "session";
/// Maximum number of rules in a file.
const MAX_RULES: usize = 10_000;

/// The recording state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// Its events are enabled.
    Active,
    /// Its events are disabled.
    #[default]
    Stopped,
    /// It is to be removed.
    Destroyed,
}

/// Description of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionSpec {
    /// A unique id: distinguishes the session from earlier ones of the same name.
    pub id: String,
    /// Incremented by each change.
    pub generation: u64,
    /// The recording state.
    pub state: State,
    /// Restricts the session to processes with this value of `TRACEPOINT_TAG`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The session ends when this process exits.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The default channel, for rules that name none. Each process opens its own.
    pub channel: ChannelSpec,
    /// Further channels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelSpec>,
    /// The process that drains the rings.
    #[serde(skip_serializing_if = "DrainedBy::is_default")]
    pub drain: DrainedBy,
    /// The age in ms at which packets that are not full are closed, from 10 to 500; by default 500, or less for a stream. Events of threads
    /// with few events reach the outputs after about that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_ms: Option<u64>,
    /// Limits on its memory.
    pub limits: Limits,
    /// Maximum cost in each process; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpec>,
    /// Incremented to make the traces continue in new chunks.
    #[serde(skip_serializing_if = "is_zero")]
    pub rotations: u64,
    /// Destinations of the packets. Without a sink they stay in the rings.
    #[serde(rename = "sink", skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<SinkSpec>,
    /// The rules that select events.
    #[doc(hidden)]
    #[serde(rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleEntry>,
    /// The triggers: conditions with actions.
    #[serde(rename = "trigger", skip_serializing_if = "Vec::is_empty")]
    pub(crate) triggers: Vec<TriggerEntry>,
}

/// The contents of the file, without format and version, with unparsed sinks, rules and triggers.
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
    flush_ms: Option<u64>,
    #[serde(default)]
    limits: Limits,
    budget: Option<BudgetSpec>,
    #[serde(default)]
    rotations: u64,
    #[serde(default, rename = "sink")]
    sinks: Vec<Table>,
    #[serde(default, rename = "rule")]
    rules: Vec<Table>,
    #[serde(default, rename = "trigger")]
    triggers: Vec<Table>,
}

impl SessionSpec {
    /// Maximum length of a `session.toml` that is read, in bytes.
    pub const MAX_SIZE: u64 = 4 << 20;

    /// A stopped session without rules and sinks.
    pub fn new() -> Self {
        Self { id: uuid_text(random_id()), generation: 1, ..Self::default() }
    }

    /// Returns the rules in order, with an error for each rule that this version does not understand.
    pub fn rules(&self) -> impl Iterator<Item = Result<&Rule, &RuleError>> {
        self.rules.iter().map(|entry| entry.rule.as_ref())
    }

    /// Returns whether a channel has the context `call_stack`.
    #[doc(hidden)]
    pub fn records_call_stacks(&self) -> bool {
        self.all_channels().any(|channel| channel.contexts.iter().any(|context| context == "call_stack"))
    }

    /// All channels, the default one first.
    pub fn all_channels(&self) -> impl Iterator<Item = &ChannelSpec> {
        once(&self.channel).chain(&self.channels)
    }

    /// Names of all channels.
    pub fn channel_names(&self) -> Vec<&str> {
        self.all_channels().map(|channel| channel.name.as_str()).collect()
    }

    /// Adds a rule, unless an equal one exists; returns whether it was added.
    ///
    /// # Errors
    ///
    /// If the rule is invalid, names a channel that the session does not have, or would be the 10,001st.
    pub fn add_rule(&mut self, rule: &Rule) -> Result<bool, SpecError> {
        let entry = RuleEntry::new(rule).in_channels(&self.channel_names());
        if let Err(error) = &entry.rule {
            return Err(SpecError::Rule(error.clone()));
        }
        if self.rules.iter().any(|known| known.rule == entry.rule) {
            return Ok(false);
        }
        if self.rules.len() >= MAX_RULES {
            return Err(SpecError::TooManyRules(MAX_RULES));
        }
        self.rules.push(entry);
        Ok(true)
    }

    /// Adds a rule unless an equal one exists. The rule may be malformed; [`SessionSpec::first_bad_rule`] reports that.
    #[doc(hidden)]
    pub fn push_rule(&mut self, rule: &Rule) {
        let entry = RuleEntry::new(rule);
        if !self.rules.iter().any(|known| known.rule == entry.rule) {
            self.rules.push(entry);
        }
    }

    /// The error of the first invalid rule.
    #[doc(hidden)]
    pub fn first_bad_rule(&self) -> Option<RuleError> {
        let names = self.channel_names();
        let error = |entry: &RuleEntry| entry.clone().in_channels(&names).rule.err();
        self.rules.iter().find_map(error)
    }

    /// Replaces the channel of the same name, or adds the channel.
    pub fn set_channel(&mut self, channel: ChannelSpec) {
        let same = once(&mut self.channel).chain(&mut self.channels).find(|known| known.name == channel.name);
        match same {
            Some(known) => *known = channel,
            None => self.channels.push(channel),
        }
    }

    /// Adds a rule and removes the rules for the same events, programs, process and channel with the same statistic: changes the conditions
    /// of a rule. Returns whether the rules changed.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::add_rule`].
    pub fn enable(&mut self, rule: &Rule) -> Result<bool, SpecError> {
        // The text of an equal rule stays as it is: its limit and its statistic continue.
        let replaced: Vec<_> = self.rules.iter().filter(|entry| entry.is_replaced_by(rule)).collect();
        if let [entry] = &replaced[..]
            && entry.rule.as_ref() == Ok(rule)
        {
            return Ok(false);
        }
        let before = self.rules.clone();
        let place = self.rules.iter().position(|entry| entry.is_replaced_by(rule));
        self.rules.retain(|entry| !entry.is_replaced_by(rule));
        if let Err(error) = self.add_rule(rule) {
            self.rules = before;
            return Err(error);
        }
        if let Some(place) = place {
            self.rules[place..].rotate_right(1);
        }
        Ok(self.rules != before)
    }

    /// Removes the rules for the same events, programs, process and channel; if `rule` has conditions, only rules with the same conditions.
    /// Returns their number.
    pub fn disable(&mut self, rule: &Rule) -> usize {
        let before = self.rules.len();
        self.rules.retain(|entry| !entry.is_for_same(rule) || !entry.has_conditions_of(rule));
        before - self.rules.len()
    }

    /// Removes the sinks of the same kind and destination; returns their number.
    pub fn remove_sink(&mut self, sink: &SinkSpec) -> usize {
        let before = self.sinks.len();
        self.sinks.retain(|known| !known.is_at_same_place(sink));
        before - self.sinks.len()
    }

    /// Removes a channel and the rules that name it; returns whether it existed. The default channel cannot be removed.
    pub fn remove_channel(&mut self, name: &str) -> bool {
        let before = self.channels.len();
        self.channels.retain(|channel| channel.name != name);
        let is_removed = self.channels.len() < before;
        if is_removed {
            self.rules.retain(|entry| !matches!(&entry.rule, Ok(rule) if rule.channel.as_deref() == Some(name)));
        }
        is_removed
    }

    /// Removes the rules equal to `rule`; returns their number.
    pub fn remove_rule(&mut self, rule: &Rule) -> usize {
        let before = self.rules.len();
        self.rules.retain(|entry| entry.rule.as_ref() != Ok(rule));
        before - self.rules.len()
    }

    /// Enables the events again that the budget has disabled in any process.
    pub fn renew_budget(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.round += 1;
        }
    }

    /// Returns a copy of this session with a new id.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { id: uuid_text(random_id()), generation: 1, owner: None, ..self.clone() }
    }

    /// Returns whether the session applies to a process with this tag.
    #[doc(hidden)]
    pub fn is_for(&self, tag: Option<&str>) -> bool {
        self.tag.is_none() || self.tag.as_deref() == tag
    }

    /// Returns whether this process may have events to record, judged by tag and rules. A controller waits only for such processes.
    #[doc(hidden)]
    pub fn concerns(&self, tag: Option<&str>, process: ProcessKey, exe: &str) -> bool {
        // A rule that this version does not understand may match events of a process with a newer version.
        let may_be =
            |rule: Result<&Rule, &RuleError>| rule.map_or(true, |rule| !rule.excludes() && rule.is_for(process, exe));
        self.is_for(tag) && self.rules().any(may_be)
    }

    /// Returns the text of the file.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::check`].
    pub fn to_toml(&self) -> Result<String, SpecError> {
        self.check()?;
        self.text()
    }

    /// Returns the text of the file; sinks may be objects.
    #[doc(hidden)]
    pub fn text(&self) -> Result<String, SpecError> {
        table::to_text(self.table()?).map_err(SpecError::malformed)
    }

    fn table(&self) -> Result<Table, SpecError> {
        let mut table = Table::new();
        table.insert("format".to_owned(), FORMAT.into());
        table.insert("version".to_owned(), VERSION.into());
        table.extend(table::write(self).map_err(SpecError::malformed)?);
        Ok(table)
    }

    /// Parses a file. A rule that is not understood becomes an entry with an error.
    ///
    /// # Errors
    ///
    /// If it is longer than 4 MiB, is not TOML, has another format or a newer version, or contains unknown keys or values.
    pub fn parse(bytes: &[u8]) -> Result<Self, SpecError> {
        let spec = Self::parse_in_code(bytes)?;
        spec.sinks.iter().try_for_each(SinkSpec::check)?;
        Ok(spec)
    }

    /// Parses the description of a session in code; sinks may be objects.
    #[doc(hidden)]
    pub fn parse_in_code(bytes: &[u8]) -> Result<Self, SpecError> {
        if bytes.len() as u64 > Self::MAX_SIZE {
            return Err(SpecError::malformed("the file is longer than 4 MiB"));
        }
        let text = str::from_utf8(bytes).map_err(SpecError::malformed)?;
        let mut table = table::parse(text).map_err(SpecError::malformed)?;
        if table.remove("format").as_ref().and_then(Value::as_str) != Some(FORMAT) {
            return Err(SpecError::malformed(format!("its `format` is not \"{FORMAT}\"")));
        }
        match table.remove("version").as_ref().and_then(Value::as_i64) {
            Some(VERSION) => {}
            Some(version) if version > VERSION => return Err(SpecError::Newer { version, known: VERSION }),
            _ => return Err(SpecError::malformed("it has no `version`")),
        }
        // Controllers compare it with the name of the session that they read.
        table.remove(SESSION);
        let raw: Raw = table::read(table).map_err(SpecError::malformed)?;
        if raw.rules.len() > MAX_RULES {
            return Err(SpecError::TooManyRules(MAX_RULES));
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
            flush_ms: raw.flush_ms,
            limits: raw.limits,
            budget: raw.budget,
            rotations: raw.rotations,
            sinks: raw.sinks.into_iter().map(SinkSpec::read).collect::<Result<_, _>>()?,
            rules: Vec::new(),
            triggers: raw.triggers.into_iter().map(TriggerEntry::read).collect(),
        };
        let channels = spec.channel_names();
        spec.rules = raw.rules.into_iter().map(|table| RuleEntry::read(table).in_channels(&channels)).collect();
        spec.check_in_process()?;
        Ok(spec)
    }

    /// Returns the id and generation of a file; the rest may be invalid.
    #[doc(hidden)]
    pub fn identify(bytes: &[u8]) -> Option<(String, u64)> {
        let table = table::parse(str::from_utf8(bytes).ok()?).ok()?;
        let id = table.get("id")?.as_str()?.to_owned();
        Some((id, table.get("generation")?.as_i64()?.try_into().ok()?))
    }

    /// Like [`parse`](Self::parse), for a program that will change the file: fails if a rule or trigger is not understood.
    ///
    /// # Errors
    ///
    /// As [`SessionSpec::parse`], or if a rule or a trigger is not understood.
    pub fn parse_strictly(bytes: &[u8]) -> Result<Self, SpecError> {
        let spec = Self::parse(bytes)?;
        let unknown = spec.rules().find_map(Result::err).cloned().map(SpecError::Rule);
        let unknown = unknown.or_else(|| spec.triggers().find_map(Result::err).cloned());
        unknown.map_or(Ok(spec), Err)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
