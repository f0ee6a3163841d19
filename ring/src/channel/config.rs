//! What a channel shall be.

use super::packet::HEADER_SIZE;
use crate::context::{Context, Contexts};
use crate::field::FieldDescriptor;
use std::fmt;
use std::time::Duration;

/// How long an event may wait at most.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What happens when a ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// The newest event is lost, and counted. For traces that are drained while they are recorded.
    Discard,
    /// The oldest packet is overwritten, and counted: a flight recorder. Drained when the session stops.
    Overwrite,
    /// The event waits for the drain, no longer than the channel says; then it is lost, and counted. For programs that would rather
    /// be slow than lose events.
    Wait,
}

impl Policy {
    /// The policy's name in the account: `discard`, `overwrite` or `wait`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Overwrite => "overwrite",
            Self::Wait => "wait",
        }
    }
}

/// The description of a channel: policy, sizes, spare rings.
///
/// Every thread that records has a ring of `ring_size` bytes, cut into packets of `packet_size` bytes, and a small second one
/// for events of signal handlers that interrupt it while it writes.
///
/// ```
/// use tracepoint::channel::Channel;
///
/// let flight_recorder = Channel::overwrite(4 << 20);
/// let drained = Channel::discard(1 << 20).name("net").spares(32);
/// assert_eq!(drained.max_record_size(), (1 << 20) / 8 - 96);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) ring_size: usize,
    pub(super) packets: usize,
    pub(super) spares: usize,
    /// How many of them there are when the channel opens.
    pub(super) at_first: usize,
    pub(super) max_rings: usize,
    /// How long an event waits for room, under [`Policy::Wait`].
    pub(super) max_wait: Duration,
    /// What each record says beside its event's fields.
    pub(super) contexts: Contexts,
}

impl Default for Channel {
    /// Discards the newest when full; rings of 1 MiB.
    fn default() -> Self {
        Self::discard(1 << 20)
    }
}

impl Channel {
    /// A channel that discards the newest events when a ring of `ring_size` bytes is full.
    pub fn discard(ring_size: usize) -> Self {
        Self::new(Policy::Discard, ring_size)
    }

    /// A channel that overwrites the oldest packet when a ring of `ring_size` bytes is full.
    pub fn overwrite(ring_size: usize) -> Self {
        let config = Self::new(Policy::Overwrite, ring_size);
        // Rings of ended threads keep their history, so that a bound on the number of rings is what bounds the memory.
        config.max_rings(((128 << 20) / ring_size.max(1)).clamp(16, 1024))
    }

    /// A channel in which an event that finds its ring of `ring_size` bytes full waits for the drain, for `most` (10 s at most), and is
    /// lost then.
    ///
    /// The one policy under which a site may wait. An event does not wait, and is lost at once, where nobody drains the channel; inside
    /// a probe, or in a signal handler that interrupts an event; in a thread that blocks signals, because a handler cannot be told from
    /// one; and after a wait in vain, until something has been drained. Whoever waits for a thread that is waiting (a session that is
    /// stopped, a probe's end) waits as long. How often, and for how long, events waited is in the account.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tracepoint::channel::{Channel, Policy};
    ///
    /// assert_eq!(Channel::wait(1 << 20, Duration::from_millis(50)).policy(), Policy::Wait);
    /// ```
    pub fn wait(ring_size: usize, max_wait: Duration) -> Self {
        Self { max_wait, ..Self::new(Policy::Wait, ring_size) }
    }

    fn new(policy: Policy, ring_size: usize) -> Self {
        Self {
            name: "channel0".to_owned(),
            policy,
            ring_size,
            packets: 8,
            spares: 16,
            at_first: usize::MAX,
            max_rings: 1024,
            max_wait: Duration::ZERO,
            contexts: Contexts::NONE,
        }
    }

    /// The name, the first part of its stream files' names: `channel0` unless told otherwise.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Into how many packets a ring is cut: 8 unless told otherwise, at least 2. Fewer packets allow larger records; more let
    /// the drain start earlier and the overwriting be finer.
    #[must_use]
    pub fn packets(mut self, packets: usize) -> Self {
        self.packets = packets;
        self
    }

    /// How many rings are kept ready for threads to come: 16 unless told otherwise. More threads than this that record their
    /// first event between two rounds of the drain lose events, counted as `no_ring`. A session's drain comes round every 5 to 200 ms,
    /// the less often the less happens.
    #[must_use]
    pub fn spares(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// How many of the spare rings are made when the channel is opened: all of them, unless told otherwise, and one at least. Whoever drains
    /// it makes the others, two at each [`maintain`](super::OpenChannel::maintain), so that there is room for them when it opens is not
    /// known. For a program that runs: as many as it has threads, and its events are on the sooner.
    #[must_use]
    pub fn at_first(mut self, rings: usize) -> Self {
        self.at_first = rings;
        self
    }

    /// How many rings there are at most: 1024 unless told otherwise; under overwrite, whose rings of ended threads keep their
    /// history, as many as 128 MiB hold, but at least 16. A ring takes `ring_size` bytes, 16 KiB for nested events and 128 bytes for
    /// each event of the channel.
    #[must_use]
    pub fn max_rings(mut self, max_rings: usize) -> Self {
        self.max_rings = max_rings;
        self
    }

    /// Each record says this, too, before its event's fields; none unless asked for. Costs the bytes of each, and takes the channel's
    /// events off the short way: `docs/costs.md` has figures.
    ///
    /// ```
    /// use tracepoint::channel::Channel;
    /// use tracepoint::context::Context;
    ///
    /// let by_task = Channel::overwrite(1 << 20).context(Context::ThreadName).context(Context::User);
    /// ```
    #[must_use]
    pub fn context(mut self, context: Context) -> Self {
        self.contexts = self.contexts.with(context);
        self
    }

    /// How many callers a [call stack](Context::CallStack) has at most: 16 unless told otherwise, from 1 to 64.
    #[must_use]
    pub fn call_stack_depth(mut self, callers: usize) -> Self {
        self.contexts = self.contexts.with_depth(callers);
        self
    }

    /// The fields that the contexts are, in the order of the record.
    pub fn context_fields(&self) -> Vec<FieldDescriptor> {
        self.contexts.fields()
    }

    /// The size of a ring in bytes.
    pub const fn ring_size(&self) -> usize {
        self.ring_size
    }

    /// Into how many [packets](Self::packets) a ring is cut.
    pub const fn packets_per_ring(&self) -> usize {
        self.packets
    }

    /// How many [spare](Self::spares) rings are kept ready.
    pub const fn spare_rings(&self) -> usize {
        self.spares
    }

    /// How many spare rings are made when the channel is opened; `None`: all of them. See [`at_first`](Self::at_first).
    pub fn rings_at_first(&self) -> Option<usize> {
        (self.at_first != usize::MAX).then_some(self.at_first)
    }

    /// How many rings there are at most. See [`max_rings`](Self::max_rings).
    pub const fn ring_limit(&self) -> usize {
        self.max_rings
    }

    /// The [contexts](Self::context), in the order of the record.
    pub fn contexts(&self) -> impl Iterator<Item = Context> + use<'_> {
        Context::ALL.iter().copied().filter(|context| self.contexts.contains(*context))
    }

    /// How many callers a call stack has at most. See [`call_stack_depth`](Self::call_stack_depth).
    pub const fn callers(&self) -> usize {
        self.contexts.depth()
    }

    /// How long an event waits for room; `None` unless the policy is [`Policy::Wait`].
    pub fn max_wait(&self) -> Option<Duration> {
        (self.policy == Policy::Wait).then_some(self.max_wait)
    }

    /// What it is [called](Self::name).
    pub fn channel_name(&self) -> &str {
        &self.name
    }

    /// What happens when a ring is full.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// The size of a packet in bytes.
    pub fn packet_size(&self) -> usize {
        // Multiples of eight keep the counters in the headers aligned.
        self.ring_size / self.packets.max(1) / 8 * 8
    }

    /// The largest record that fits, in bytes, its 8-byte header word and contexts included: a packet without its header. What is larger is
    /// lost and counted as `too_large`.
    pub fn max_record_size(&self) -> usize {
        self.packet_size().saturating_sub(HEADER_SIZE)
    }

    /// Checks sizes and names, as [`OpenChannel::open`](super::OpenChannel::open) does.
    ///
    /// # Errors
    ///
    /// What will not do, and what would.
    pub fn check(&self) -> Result<(), ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if self.name.is_empty() || self.name.len() > 64 || self.name.starts_with('.') || !self.name.chars().all(plain) {
            return Err(ConfigError(format!(
                "`{}` is no channel name: use 1 to 64 letters, digits, `_`, `-` or `.`, not starting with `.`",
                self.name
            )));
        }
        if self.packets < 2 {
            return Err(ConfigError(format!("a ring needs at least 2 packets, not {}", self.packets)));
        }
        if self.packet_size() < 512 || self.packet_size() > 1 << 30 {
            return Err(ConfigError(format!(
                "a ring of {} bytes in {} packets has packets of {} bytes; they need 512 bytes to 1 GiB",
                self.ring_size,
                self.packets,
                self.packet_size()
            )));
        }
        if self.max_wait > LONGEST_WAIT {
            return Err(ConfigError(format!(
                "events cannot wait for {:?}: {LONGEST_WAIT:?} is the most, since all that waits for the thread waits as long",
                self.max_wait
            )));
        }
        if self.max_rings == 0 {
            return Err(ConfigError("a channel needs at least one ring".to_owned()));
        }
        Ok(())
    }
}

/// A channel that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(super) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
