//! A trigger of a session: a condition, and actions on the session. One `[[trigger]]` of `session.toml`.

mod action;
mod condition;
mod entry;
mod error;
#[cfg(test)]
mod tests;
mod threshold;

pub use action::TriggerAction;
pub use condition::{TriggerCondition, signal_number};
pub use entry::TriggerEntry;
pub use error::TriggerPartError;
pub use threshold::{Aggregate, Threshold, ThresholdError};

use super::SpecError;
use crate::limit::{Limit, LimitError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum number of actions within the period of a limit: the state stores the time of each.
const MAX_LIMIT: u64 = 1000;
/// Maximum number of actions.
const MAX_ACTIONS: usize = 16;
/// Maximum time that a snapshot waits after the occurrence.
const MAX_AFTER: Duration = Duration::from_secs(3600);

/// A trigger of a session: a condition, the actions, and how often they are done.
///
/// ```
/// use std::time::Duration;
/// use tracepoint_session_spec::{Rule, TriggerAction, TriggerCondition, TriggerSpec};
///
/// let trigger = TriggerSpec::new(TriggerCondition::CoreDump, TriggerAction::Snapshot("/var/tmp/crashes".into())).then(TriggerAction::Stop).keep(3);
/// assert_eq!(trigger.actions.len(), 2);
///
/// let slow = TriggerCondition::Event(Rule::new("shop:request").filter("ns > 1_000_000_000"));
/// let trigger = TriggerSpec::new(slow, TriggerAction::Snapshot("/var/tmp/slow".into())).before(Duration::from_secs(10)).limit("5/h");
/// # assert!(trigger.before.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TriggerSpec {
    /// Its name within the session: up to 64 letters, digits, `-` and `_`. Empty until the trigger is added to a session, which then gives it
    /// `t1`, `t2` and so on.
    pub id: String,
    /// The condition.
    pub when: TriggerCondition,
    /// The actions, done in this order. If an action fails, the following ones are still done.
    pub actions: Vec<TriggerAction>,
    /// Act only on each Nth occurrence of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Act once: on the Nth occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_after: Option<u64>,
    /// Maximum rate of the actions, for example `5/h`: a [`Limit`] without a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Time before the occurrence from which its snapshots include events; by default everything in the rings. In files: `10s`.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub before: Option<Duration>,
    /// Delay between the occurrence and its snapshots, at most an hour; none by default. In files: `5s`.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// Number of its snapshots that are kept, the newest; the default is 10.
    #[serde(default = "TriggerSpec::default_keep")]
    pub keep: u32,
    /// Maximum total size of its kept snapshots in bytes; the default is 1 GiB.
    #[serde(default = "TriggerSpec::default_size")]
    pub max_size: u64,
    /// The problem of a limit whose text could not be parsed.
    #[serde(skip)]
    invalid_limit: Option<LimitError>,
}

impl TriggerSpec {
    /// Creates a trigger that does `action` whenever `when` occurs.
    pub fn new(when: TriggerCondition, action: TriggerAction) -> Self {
        Self {
            id: String::new(),
            when,
            actions: vec![action],
            every: None,
            once_after: None,
            limit: None,
            before: None,
            after: None,
            keep: Self::default_keep(),
            max_size: Self::default_size(),
            invalid_limit: None,
        }
    }

    /// Sets its name.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Adds an action, which is done after the others.
    #[must_use]
    pub fn then(mut self, action: TriggerAction) -> Self {
        self.actions.push(action);
        self
    }

    /// Acts only on each Nth occurrence.
    #[must_use]
    pub const fn every(mut self, nth: u64) -> Self {
        self.every = Some(nth);
        self
    }

    /// Acts once: on the Nth occurrence.
    #[must_use]
    pub const fn once_after(mut self, nth: u64) -> Self {
        self.once_after = Some(nth);
        self
    }

    /// Limits how often it acts: a [`Limit`], or its text, such as `5/h`.
    #[must_use]
    pub fn limit(mut self, limit: impl TryInto<Limit, Error: Into<LimitError>>) -> Self {
        match limit.try_into() {
            Ok(limit) => (self.limit, self.invalid_limit) = (Some(limit), None),
            Err(error) => self.invalid_limit = Some(error.into()),
        }
        self
    }

    /// Excludes events from its snapshots that are older than this at the occurrence.
    #[must_use]
    pub const fn before(mut self, time: Duration) -> Self {
        self.before = Some(time);
        self
    }

    /// Takes its snapshots this long after the occurrence.
    #[must_use]
    pub const fn after(mut self, time: Duration) -> Self {
        self.after = Some(time);
        self
    }

    /// Keeps this many snapshots.
    #[must_use]
    pub const fn keep(mut self, snapshots: u32) -> Self {
        self.keep = snapshots;
        self
    }

    /// Keeps snapshots of at most this many bytes in total.
    #[must_use]
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = bytes;
        self
    }

    const fn default_keep() -> u32 {
        10
    }

    const fn default_size() -> u64 {
        1 << 30
    }

    /// Returns how many times it may act in which period; `None` for no limit.
    #[doc(hidden)]
    pub fn at_most(&self) -> Option<(usize, Duration)> {
        let limit = self.limit?;
        Some((usize::try_from(limit.events()).ok()?, limit.period()))
    }

    fn check(&self) -> Result<(), SpecError> {
        let bad = |reason: String| Err(SpecError::invalid(format!("trigger `{}`: {reason}", self.id)));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if self.id.is_empty() || self.id.len() > 64 || !self.id.bytes().all(is_plain) {
            return bad("its id must have 1 to 64 letters, digits, `-` and `_`".to_owned());
        }
        if self.actions.is_empty() || self.actions.len() > MAX_ACTIONS {
            return bad(format!("it must have 1 to {MAX_ACTIONS} actions"));
        }
        if let Err(error) = self.when.check().and_then(|()| self.actions.iter().try_for_each(TriggerAction::check)) {
            return bad(error.to_string());
        }
        let has_window = self.before.is_some() || self.after.is_some();
        if has_window && !self.actions.iter().any(|action| matches!(action, TriggerAction::Snapshot(_))) {
            return bad("`before` and `after` are for snapshots, and it takes none".to_owned());
        }
        if self.before.is_some_and(|time| time.is_zero()) || self.after.is_some_and(|time| time > MAX_AFTER) {
            return bad("`before` must be more than 0, and `after` at most an hour".to_owned());
        }
        if self.every == Some(0) || self.once_after == Some(0) || self.keep == 0 || self.max_size == 0 {
            return bad("`every`, `once_after`, `keep` and `max_size` must be more than 0".to_owned());
        }
        if self.every.is_some() && self.once_after.is_some() {
            return bad("it either acts on each Nth occurrence (`every`) or once (`once_after`)".to_owned());
        }
        if let Some(limit) = self.invalid_limit.clone().map(Err).or(self.limit.map(Ok)) {
            match limit.and_then(Limit::check) {
                Err(error) => return bad(error.to_string()),
                Ok(limit) if limit.events() > MAX_LIMIT || limit.has_burst() => {
                    return bad(format!("its limit must be at most {MAX_LIMIT} in a period, without a burst"));
                }
                Ok(_) => {}
            }
        }
        let numbers = [self.every, self.once_after, Some(self.max_size)];
        match numbers.into_iter().flatten().find(|number| i64::try_from(*number).is_err()) {
            Some(number) => bad(format!("{number} does not fit into 63 bits")),
            None => Ok(()),
        }
    }
}

/// Durations in files, written as `10s` or `5min`.
mod duration {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    #[expect(clippy::ref_option, reason = "serde requires this signature")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(|time| humantime::format_duration(time).to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| humantime::parse_duration(&text).map_err(serde::de::Error::custom)).transpose()
    }
}
