//! The channels of a session, and the bounds on what it takes.

use super::SpecError;
use super::context;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tracepoint_core::channel::{Channel, Policy};

/// A channel of a session: as [`Channel`] has it, in a form that can be written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ChannelSpec {
    /// What rules call it, and traces: `channel0` unless it is said. Of the channels of a session each has another name.
    #[serde(skip_serializing_if = "is_default_name")]
    pub name: String,
    /// What happens when a ring is full: `discard`, `overwrite` or `wait`.
    pub policy: String,
    /// Bytes of a thread's ring.
    pub ring_size: usize,
    /// Into how many packets it is cut.
    pub packets: usize,
    /// Rings that are kept ready.
    pub spares: usize,
    /// How many of them are made when a recording begins: all, if it is not given; of a named session, one for each thread at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_first: Option<usize>,
    /// How many rings a process has at most; as the policy has it if it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rings: Option<usize>,
    /// How long an event waits for room at most, under `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u32>,
    /// What each record says beside its event's fields: `process`, `thread`, `thread_name`, `cpu`, `user`, `call_stack`, as
    /// [`Context`](tracepoint_core::context::Context) has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<String>,
    /// How many callers a `call_stack` has at most: 16 if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_stack_depth: Option<usize>,
}

impl Default for ChannelSpec {
    fn default() -> Self {
        let policy = Policy::Discard.name().to_owned();
        Self {
            name: default_name(),
            policy,
            ring_size: 1 << 20,
            packets: 8,
            spares: 16,
            at_first: None,
            max_rings: None,
            patience_ms: None,
            contexts: Vec::new(),
            call_stack_depth: None,
        }
    }
}

impl ChannelSpec {
    /// A flight recorder with rings of so many bytes.
    pub fn overwrite(ring_size: usize) -> Self {
        Self { policy: Policy::Overwrite.name().to_owned(), ring_size, ..Self::default() }
    }

    /// The same under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Whether it keeps the newest without anybody who takes them.
    pub(super) fn keeps_newest(&self) -> bool {
        self.policy == Policy::Overwrite.name()
    }

    /// Whether it can be opened.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let known = [Policy::Discard, Policy::Overwrite, Policy::Wait].map(Policy::name);
        if !known.contains(&self.policy.as_str()) {
            let text = format!("the policy `{}` is not known; there are {}", self.policy, known.join(", "));
            return Err(self.refused(&text));
        }
        self.contexts.iter().try_for_each(|name| context::find(name).map(drop)).map_err(|text| self.refused(&text))?;
        self.channel().check().map_err(|error| self.refused(&error.to_string()))
    }

    /// Why it cannot be used.
    pub(super) fn refused(&self, reason: &str) -> SpecError {
        SpecError::invalid(format!("channel `{}`: {reason}", self.name))
    }

    /// The size of a packet in bytes, as far as there can be one.
    pub(super) fn packet_size(&self) -> usize {
        self.ring_size / self.packets.max(1)
    }

    /// All numbers, by their keys.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("ring_size", self.ring_size as u64),
            ("packets", self.packets as u64),
            ("spares", self.spares as u64),
            ("at_first", self.at_first.unwrap_or(0) as u64),
            ("max_rings", self.max_rings.unwrap_or(0) as u64),
            ("call_stack_depth", self.call_stack_depth.unwrap_or(0) as u64),
        ]
        .into_iter()
    }

    /// The channel that it describes.
    pub(crate) fn channel(&self) -> Channel {
        let patience = Duration::from_millis(self.patience_ms.unwrap_or(50).into());
        let channel = match self.policy.as_str() {
            "overwrite" => Channel::overwrite(self.ring_size),
            "wait" => Channel::wait(self.ring_size, patience),
            _ => Channel::discard(self.ring_size),
        };
        let channel = channel.name(&self.name).packets(self.packets).spares(self.spares);
        let channel = self.max_rings.map_or(channel.clone(), |most| channel.max_rings(most));
        let channel = self.at_first.map_or(channel.clone(), |rings| channel.at_first(rings));
        let channel = self.call_stack_depth.map_or(channel.clone(), |callers| channel.call_stack_depth(callers));
        self.contexts.iter().flat_map(|name| context::find(name)).fold(channel, Channel::context)
    }
}

impl From<&Channel> for ChannelSpec {
    fn from(channel: &Channel) -> Self {
        let usual = match channel.policy() {
            Policy::Overwrite => Channel::overwrite(channel.ring_size()),
            _ => Channel::discard(channel.ring_size()),
        };
        let unless_usual = |value: usize, usual: usize| (value != usual).then_some(value);
        Self {
            name: channel.channel_name().to_owned(),
            policy: channel.policy().name().to_owned(),
            ring_size: channel.ring_size(),
            packets: channel.packets_per_ring(),
            spares: channel.spare_rings(),
            at_first: channel.rings_at_first(),
            max_rings: unless_usual(channel.ring_limit(), usual.ring_limit()),
            // Rounded up: an event waits no shorter than its channel says.
            patience_ms: channel
                .max_wait()
                .map(|most| most.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u32::MAX)),
            contexts: channel.contexts().map(|context| context::name(context).to_owned()).collect(),
            call_stack_depth: unless_usual(channel.callers(), usual.callers()),
        }
    }
}

/// As a channel in code is called.
fn default_name() -> String {
    Channel::default().channel_name().to_owned()
}

fn is_default_name(name: &String) -> bool {
    *name == default_name()
}

/// Bounds on what a session takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of rings of all processes together.
    pub memory_cap: u64,
    /// Of how many processes that died the rings are kept.
    pub keep_dead: usize,
    /// How many bytes of rings of processes that died are kept.
    pub keep_dead_bytes: u64,
    /// For how many different events each channel has counters in its rings; as many as the process has if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_cap: 1 << 30, keep_dead: 8, keep_dead_bytes: 1 << 30, max_events: None }
    }
}
