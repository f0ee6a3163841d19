//! The channels of a session, and the limits on its memory.

use super::SpecError;
use super::context;
use crate::table::{self, Table};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tracepoint_core::channel::{Channel, Policy};

/// A channel of a session: the serializable form of [`Channel`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ChannelSpec {
    /// Name of the channel in rules and traces, unique in the session; the default is `channel0`.
    #[serde(skip_serializing_if = "is_default_name")]
    pub name: String,
    /// Behaviour when a ring is full: `discard`, `overwrite` or `wait`.
    pub policy: String,
    /// Size of a thread's ring in bytes; by default it depends on need, as in [`Channel::sized_by_need`]: 1 MiB for the first rings of a
    /// process, down to 64 KiB where it has many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring_size: Option<usize>,
    /// Number of packets in a ring.
    pub packets: usize,
    /// Number of spare rings kept ready for new threads while none appear; by default as many as fit into 2 MiB, from 2 to 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spares: Option<usize>,
    /// Number of spare rings made at the start; by default `spares` or 16, and in a session of a file one per thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_first: Option<usize>,
    /// Maximum number of rings in a process; the default depends on the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rings: Option<usize>,
    /// Maximum time in ms that an event waits for space under the policy `wait`.
    #[serde(alias = "patience_ms", skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u32>,
    /// Contexts recorded with each event: `process`, `thread`, `thread_name`, `cpu`, `user`, `call_stack`; see
    /// [`Context`](tracepoint_core::context::Context).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<String>,
    /// Maximum number of callers in a `call_stack`; the default is 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_stack_depth: Option<usize>,
    /// True if events do not wake a sleeping consumer when a ring fills up. By default they do, which takes one system call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_wake: bool,
    /// Maximum size in bytes of the further rings of threads whose own are full, while the sinks are slower than the events; the default is
    /// 32 rings and at most 32 MiB under `discard`, and 0 otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<usize>,
}

impl Default for ChannelSpec {
    fn default() -> Self {
        let policy = Policy::Discard.name().to_owned();
        Self {
            name: default_name(),
            policy,
            ring_size: None,
            packets: 8,
            spares: None,
            at_first: None,
            max_rings: None,
            max_wait_ms: None,
            contexts: Vec::new(),
            call_stack_depth: None,
            no_wake: false,
            overflow: None,
        }
    }
}

impl ChannelSpec {
    /// The maximum wait in a channel that is [lossless](Channel::lossless).
    pub const LOSSLESS_WAIT: Duration = Channel::LOSSLESS_WAIT;

    /// A flight recorder with rings of this size in bytes.
    pub fn overwrite(ring_size: usize) -> Self {
        Self { policy: Policy::Overwrite.name().to_owned(), ring_size: Some(ring_size), ..Self::default() }
    }

    /// The same channel under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Returns whether its rings keep the newest events without a consumer.
    pub(super) fn keeps_newest(&self) -> bool {
        self.policy == Policy::Overwrite.name()
    }

    /// Checks that the channel can be opened.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let known = [Policy::Discard, Policy::Overwrite, Policy::Wait].map(Policy::name);
        if !known.contains(&self.policy.as_str()) {
            let text = format!("unknown policy `{}`; there are {}", self.policy, known.join(", "));
            return Err(self.error(&text));
        }
        self.contexts
            .iter()
            .try_for_each(|name| context::find(name).map(drop))
            .map_err(|error| self.error(&error.to_string()))?;
        self.channel().check().map_err(|error| self.error(&error.to_string()))
    }

    /// An error about this channel.
    pub(super) fn error(&self, reason: &str) -> SpecError {
        SpecError::invalid(format!("channel `{}`: {reason}", self.name))
    }

    /// Size of a packet in bytes; the description may be invalid.
    pub(super) fn packet_size(&self) -> usize {
        self.first_ring_size() / self.packets.max(1)
    }

    /// Size of the first rings in bytes.
    pub fn first_ring_size(&self) -> usize {
        self.ring_size.unwrap_or(Channel::default().ring_size())
    }

    /// Returns the maximum time that an event waits for space; `None` if events do not wait.
    pub fn max_wait(&self) -> Option<Duration> {
        self.channel().max_wait()
    }

    /// Returns its numbers with their keys.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("ring_size", self.ring_size.unwrap_or(0) as u64),
            ("packets", self.packets as u64),
            ("spares", self.spares.unwrap_or(0) as u64),
            ("at_first", self.at_first.unwrap_or(0) as u64),
            ("max_rings", self.max_rings.unwrap_or(0) as u64),
            ("call_stack_depth", self.call_stack_depth.unwrap_or(0) as u64),
        ]
        .into_iter()
    }

    /// Returns the keys of the settings in which an open channel differs from this description. `at_first` is compared only if it is set:
    /// otherwise the process may have chosen it.
    #[doc(hidden)]
    pub fn settings_unlike(&self, open: &Channel) -> Vec<String> {
        let at_first = self.at_first.and(open.rings_at_first());
        let table = |spec: &Self| table::write(spec).unwrap_or_default();
        let open = table(&Self { at_first, ..Self::from(open) });
        let wanted = table(&Self::from(&self.channel()));
        differing(&open, &wanted)
    }

    /// Returns the described channel.
    #[doc(hidden)]
    pub fn channel(&self) -> Channel {
        let max_wait = Duration::from_millis(self.max_wait_ms.unwrap_or(50).into());
        let ring_size = self.first_ring_size();
        let channel = match self.policy.as_str() {
            "overwrite" => Channel::overwrite(ring_size),
            "wait" => Channel::wait(ring_size, max_wait),
            _ => Channel::discard(ring_size),
        };
        let channel = if self.ring_size.is_some() { channel } else { channel.sized_by_need() };
        let channel = channel.name(&self.name).packets(self.packets);
        let channel = self.spares.map_or(channel.clone(), |spares| channel.spares(spares));
        let channel = self.max_rings.map_or(channel.clone(), |most| channel.max_rings(most));
        let channel = self.at_first.map_or(channel.clone(), |rings| channel.at_first(rings));
        let channel = self.call_stack_depth.map_or(channel.clone(), |callers| channel.call_stack_depth(callers));
        let channel = self.overflow.map_or(channel.clone(), |bytes| channel.overflow(bytes));
        let channel = if self.no_wake { channel.no_wake() } else { channel };
        self.contexts.iter().flat_map(|name| context::find(name)).fold(channel, Channel::context)
    }
}

impl From<&Channel> for ChannelSpec {
    fn from(channel: &Channel) -> Self {
        let ring_size = (!channel.is_sized_by_need()).then_some(channel.ring_size());
        let usual = match channel.policy() {
            Policy::Overwrite => Channel::overwrite(channel.ring_size()),
            Policy::Wait => Channel::wait(channel.ring_size(), Duration::ZERO),
            _ => Channel::discard(channel.ring_size()),
        };
        let usual = if ring_size.is_some() { usual } else { usual.sized_by_need() };
        let unless_usual = |value: usize, usual: usize| (value != usual).then_some(value);
        Self {
            name: channel.channel_name().to_owned(),
            policy: channel.policy().name().to_owned(),
            ring_size,
            packets: channel.packets_per_ring(),
            spares: channel.spares_if_set(),
            at_first: channel.rings_at_first(),
            max_rings: unless_usual(channel.ring_limit(), usual.ring_limit()),
            // Rounded up: an event waits at least as long as its channel says.
            max_wait_ms: channel
                .max_wait()
                .map(|most| most.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(u32::MAX)),
            contexts: channel.contexts().map(|context| context::name(context).to_owned()).collect(),
            call_stack_depth: unless_usual(channel.callers(), usual.callers()),
            overflow: unless_usual(channel.overflow_limit(), usual.overflow_limit()),
            no_wake: channel.never_wakes(),
        }
    }
}

/// The default name of a channel in code.
fn default_name() -> String {
    Channel::default().channel_name().to_owned()
}

fn is_default_name(name: &String) -> bool {
    *name == default_name()
}

/// Limits on the memory of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum size of the rings of each process, in bytes.
    pub memory: u64,
    /// Maximum size of the rings of all processes together, in bytes; no maximum by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_cap: Option<u64>,
    /// Number of dead processes whose rings are kept.
    pub keep_dead: usize,
    /// Maximum size of the kept rings of dead processes, in bytes.
    pub keep_dead_bytes: u64,
    /// Number of different events for which each channel has counters in its rings; by default the number of events of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_events: Option<usize>,
}

impl Limits {
    /// Returns the keys of the limits that differ from those that a running recording `begun` with.
    #[doc(hidden)]
    pub fn unlike(&self, begun: &Self) -> Vec<String> {
        let table = |limits| table::write(limits).unwrap_or_default();
        differing(&table(begun), &table(self))
    }
}

/// Returns the keys whose values differ.
fn differing(open: &Table, wanted: &Table) -> Vec<String> {
    let mut all = open.clone();
    for (key, value) in wanted {
        all.insert(key.clone(), value.clone());
    }
    all.keys().filter(|key| open.get(*key) != wanted.get(*key)).cloned().collect()
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 128 << 20, memory_cap: None, keep_dead: 8, keep_dead_bytes: 1 << 30, max_events: None }
    }
}
