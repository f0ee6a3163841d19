//! A trigger of a session: when something happens, do something to the session. One `[[trigger]]` of `session.toml`.

mod entry;
#[cfg(test)]
mod tests;

pub(crate) use entry::TriggerEntry;

use super::SpecError;
use crate::limit::Limit;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Maximum number of actions within the period of a limit: each has its time in the state.
const MAX_LIMIT: u64 = 1000;

/// The condition of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum When {
    /// Any process of the system dumps core, and its helper notifies this user. On the command line and in files: `OnAnyCoreDump`.
    #[serde(rename = "OnAnyCoreDump")]
    CoreDump,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CoreDump => f.write_str("OnAnyCoreDump"),
        }
    }
}

impl FromStr for When {
    type Err = String;

    /// Parses the name on the command line.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "OnAnyCoreDump" => Ok(Self::CoreDump),
            _ => Err("there is `OnAnyCoreDump`".to_owned()),
        }
    }
}

/// An action of a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Do {
    /// Writes what the session's rings hold into a new directory in this one, an absolute path: a trace of each process.
    Snapshot(PathBuf),
    /// Stops the session.
    Stop,
}

impl Do {
    /// Its name on the command line: `snapshot` or `stop`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Snapshot(_) => "snapshot",
            Self::Stop => "stop",
        }
    }
}

/// A trigger of a session: a condition, the actions, and how often they are done.
///
/// ```
/// use tracepoint_control::{Do, TriggerSpec, When};
///
/// let trigger = TriggerSpec::new(When::CoreDump, Do::Snapshot("/var/tmp/crashes".into())).then(Do::Stop).keep(3);
/// assert_eq!(trigger.actions.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TriggerSpec {
    /// Its name within the session: up to 64 letters, digits, `-` and `_`. Empty until the trigger is added to a session, which then gives it
    /// `t1`, `t2` and so on.
    pub id: String,
    /// The condition.
    pub when: When,
    /// The actions, done in this order. One that fails does not keep the following ones from being done.
    pub actions: Vec<Do>,
    /// Act on each Nth occurrence of the condition only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Act once: on the Nth occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_after: Option<u64>,
    /// Act at most so often, for example `5/h`: a [`Limit`] without a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How many of its snapshots are kept, the newest: 10 by default.
    #[serde(default = "TriggerSpec::default_keep")]
    pub keep: u32,
    /// How many bytes its kept snapshots may take in sum: 1 GiB by default.
    #[serde(default = "TriggerSpec::default_size")]
    pub max_size: u64,
}

impl TriggerSpec {
    /// Does `action` whenever `when` occurs.
    pub fn new(when: When, action: Do) -> Self {
        Self {
            id: String::new(),
            when,
            actions: vec![action],
            every: None,
            once_after: None,
            limit: None,
            keep: Self::default_keep(),
            max_size: Self::default_size(),
        }
    }

    /// Names it.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Adds an action, which is done after the others.
    #[must_use]
    pub fn then(mut self, action: Do) -> Self {
        self.actions.push(action);
        self
    }

    /// Acts on each Nth occurrence only.
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

    /// Acts at most so often: a [`Limit`], or its text, such as `5/h`.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a text or a `Limit` reads best by value")]
    pub fn limit(mut self, limit: impl ToString) -> Self {
        self.limit = Some(limit.to_string());
        self
    }

    /// Keeps this many snapshots.
    #[must_use]
    pub const fn keep(mut self, snapshots: u32) -> Self {
        self.keep = snapshots;
        self
    }

    /// Keeps snapshots of this many bytes in sum.
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

    /// How many times it may act, and in which period; `None` for no limit.
    pub(crate) fn at_most(&self) -> Option<(usize, Duration)> {
        let limit: Limit = self.limit.as_ref()?.parse().ok()?;
        Some((usize::try_from(limit.events()).ok()?, limit.period()))
    }

    fn check(&self) -> Result<(), SpecError> {
        let bad = |reason: String| Err(SpecError::invalid(format!("trigger `{}`: {reason}", self.id)));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if self.id.is_empty() || self.id.len() > 64 || !self.id.bytes().all(is_plain) {
            return bad("its id must have 1 to 64 letters, digits, `-` and `_`".to_owned());
        }
        if self.actions.is_empty() {
            return bad("it has no action; there are `snapshot` and `stop`".to_owned());
        }
        for action in &self.actions {
            if let Do::Snapshot(path) = action
                && !path.is_absolute()
            {
                return bad(format!("the directory of its snapshots must be absolute, not `{}`", path.display()));
            }
        }
        if self.every == Some(0) || self.once_after == Some(0) || self.keep == 0 || self.max_size == 0 {
            return bad("`every`, `once_after`, `keep` and `max_size` must be more than 0".to_owned());
        }
        if self.every.is_some() && self.once_after.is_some() {
            return bad("it either acts on each Nth occurrence (`every`) or once (`once_after`)".to_owned());
        }
        if let Some(limit) = &self.limit {
            match limit.parse::<Limit>() {
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
