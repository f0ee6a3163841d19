//! The configuration of a channel. `sizes` derives sizes from it, and checks the values.

mod sizes;

use crate::context::{Context, Contexts};
use crate::field::FieldDescriptor;
use std::fmt;
use std::time::Duration;

/// The size of the first rings of a channel that is [sized by need](Channel::sized_by_need), in bytes.
const FULL_SIZE: usize = 1 << 20;
/// The default limit on rings: the number of threads that can record.
const MAX_RINGS: usize = crate::thread::MAX_THREADS;

/// The default memory of the spare rings at rest.
const SPARE_BYTES: usize = 2 << 20;
/// The default number of spare rings when a channel is opened, and their maximum number at rest.
const SPARES_AT_FIRST: usize = 16;

/// The default maximum size of the overflow, and its maximum number of rings.
const OVERFLOW: usize = 32 << 20;
const OVERFLOW_RINGS: usize = 32;

/// The policy for a full ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// The newest event is lost, and counted. For traces that are drained while recording.
    Discard,
    /// The oldest packet is overwritten, and counted: a flight recorder, drained when the session stops.
    Overwrite,
    /// The event waits for the consumer, for a limited time; after that it is lost, and counted. For programs that prefer to be slow rather than
    /// lose events.
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
/// Each recording thread has a ring of `ring_size` bytes, divided into packets of `packet_size` bytes, and a small second buffer for events
/// of signal handlers that interrupt a write.
///
/// ```
/// # use tracepoint_ring as tracepoint;
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
    /// True if rings get smaller as the process has more of them.
    pub(super) by_need: bool,
    pub(super) packets: usize,
    /// Number of spare rings at rest; `None` for the default.
    spares: Option<usize>,
    /// Number of spare rings created when the channel is opened; `None` for the default.
    at_first: Option<usize>,
    pub(super) max_rings: usize,
    /// The maximum wait for a free packet, under [`Policy::Wait`].
    pub(super) max_wait: Duration,
    /// The contexts that precede the fields in each record.
    pub(super) contexts: Contexts,
    /// True if a thread wakes a sleeping consumer when the thread's ring fills up.
    pub(super) wakes: bool,
    /// Maximum size of the overflow in bytes.
    pub(super) overflow: usize,
    /// True if a thread wakes a sleeping consumer when spare rings run out.
    pub(super) wakes_for_rings: bool,
}

impl Default for Channel {
    /// Discards the newest event when full; rings are [sized by need](Self::sized_by_need).
    fn default() -> Self {
        Self::discard(FULL_SIZE).sized_by_need()
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
        // Rings of ended threads keep their history, so the number of rings determines the memory.
        config.max_rings(((128 << 20) / ring_size.max(1)).clamp(16, MAX_RINGS))
    }

    /// A channel in which an event that finds its ring of `ring_size` bytes full waits for the consumer, for up to `max_wait` (at most 10 s),
    /// and is then lost. An event of a thread without a ring waits for one, as long as the channel may have more.
    ///
    /// This is the only policy under which a site may wait. An event does not wait, and is lost immediately: if no consumer is registered; inside a
    /// probe, or in a signal handler that has interrupted an event; in a thread that blocks signals, because that cannot be distinguished from a
    /// signal handler; and after a wait that timed out, until something has been drained. Inside probes, handlers and such threads it does wait for
    /// a consumer in another process, but not for a ring. A caller that waits for such a thread (to stop a session, or to unregister a probe) waits
    /// just as long, or 50 ms if the thread waits for a ring. The account has the number and the duration of waits.
    ///
    /// ```
    /// # use tracepoint_ring as tracepoint;
    /// use std::time::Duration;
    /// use tracepoint_ring::channel::{Channel, Policy};
    ///
    /// assert_eq!(Channel::wait(1 << 20, Duration::from_millis(50)).policy(), Policy::Wait);
    /// ```
    pub fn wait(ring_size: usize, max_wait: Duration) -> Self {
        Self { max_wait, ..Self::new(Policy::Wait, ring_size) }
    }

    /// A channel that [waits](Self::wait) for [`LOSSLESS_WAIT`](Self::LOSSLESS_WAIT), with rings [sized by need](Self::sized_by_need): what
    /// `tracectl record --lossless` uses.
    ///
    /// ```
    /// use tracepoint_ring::channel::Channel;
    ///
    /// assert_eq!(Channel::lossless().max_wait(), Some(Channel::LOSSLESS_WAIT));
    /// ```
    pub fn lossless() -> Self {
        Self::wait(FULL_SIZE, Self::LOSSLESS_WAIT).sized_by_need()
    }

    /// The maximum wait of an event in a [lossless](Self::lossless) channel: longer than disks usually stall.
    pub const LOSSLESS_WAIT: Duration = Duration::from_secs(1);

    fn new(policy: Policy, ring_size: usize) -> Self {
        Self {
            name: "channel0".to_owned(),
            policy,
            ring_size,
            by_need: false,
            packets: 8,
            spares: None,
            at_first: None,
            max_rings: MAX_RINGS,
            max_wait: Duration::ZERO,
            contexts: Contexts::NONE,
            wakes: policy != Policy::Overwrite,
            overflow: if policy == Policy::Discard {
                ring_size.saturating_mul(OVERFLOW_RINGS).min(OVERFLOW)
            } else {
                0
            },
            wakes_for_rings: true,
        }
    }

    /// Sets the name, which is the first part of the names of its stream files: `channel0` by default.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the number of packets of a ring: 8 by default, at least 2. Fewer packets allow larger records. With more packets, the consumer starts
    /// earlier, and less data is overwritten at a time.
    #[must_use]
    pub fn packets(mut self, packets: usize) -> Self {
        self.packets = packets;
        self
    }

    /// Replaces the size of the rings by one that depends on the memory that the rings of the process have taken: 1 MiB for the first rings, then in
    /// steps down to 64 KiB, so that a thousand threads fit into the memory that the rings' [source](super::MemorySource) allows. Unless the policy
    /// is [`Policy::Overwrite`], or the limit on rings is low, a thread starts in a small ring of 16 KiB. It continues in one of the larger rings
    /// when it has filled half of the small one, or has a record that does not fit into its packets of 1 KiB. Records that do not fit into the
    /// packets of the smallest of the larger rings (16 KiB) are lost there, counted as `too_large`. Without this call, the size passed to
    /// [`discard`](Self::discard), [`overwrite`](Self::overwrite) or [`wait`](Self::wait) applies.
    #[must_use]
    pub fn sized_by_need(mut self) -> Self {
        (self.ring_size, self.by_need, self.max_rings) = (FULL_SIZE, true, MAX_RINGS);
        self
    }

    /// Returns whether the rings are [sized by need](Self::sized_by_need).
    pub const fn is_sized_by_need(&self) -> bool {
        self.by_need
    }

    /// Sets the number of rings that are kept ready for new threads while none start: by default as many as fit into 2 MiB, from 2 to 16. When
    /// threads start, the consumer creates more rings, for the threads that it has seen and for as many again; the memory of rings that stay unused
    /// for some seconds is freed. A thread that finds no ring loses its events until there is one, counted as `no_ring`.
    #[must_use]
    pub fn spares(mut self, spares: usize) -> Self {
        self.spares = Some(spares);
        self
    }

    /// Sets the number of spare rings created when the channel is opened, for the threads that a program starts next: at least one. The default is
    /// the number of [`spares`](Self::spares) if that was set, otherwise 16. Of the rings in excess of the spares, opening creates as many as there
    /// is memory for. The consumer creates the missing ones, two at each [`maintain`](super::OpenChannel::maintain); opening does not check that
    /// there is memory for them. For a program that is already running, the number of its threads is enough.
    #[must_use]
    pub fn at_first(mut self, rings: usize) -> Self {
        self.at_first = Some(rings);
        self
    }

    /// Sets the maximum number of rings. The default is 8192; under overwrite with rings of a given size, where the rings of ended threads keep their
    /// history, it is as many as fit in 128 MiB, but at least 16. For a channel that is [sized by need](Self::sized_by_need), it is also the maximum
    /// number of small rings, which are counted separately: a thread that continues in a large ring leaves its small one to the next thread. A ring
    /// takes `ring_size` bytes, 16 KiB for nested events, and 128 bytes for each event of the channel.
    #[must_use]
    pub fn max_rings(mut self, max_rings: usize) -> Self {
        self.max_rings = max_rings;
        self
    }

    /// Adds a context, which precedes the fields in each record; none by default. Each costs its bytes, and any context moves the channel's
    /// events from the fast path to the full path. `docs/costs.md` has figures.
    ///
    /// ```
    /// # use tracepoint_ring as tracepoint;
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

    /// Sets the maximum size of the overflow in bytes. The default under [`Policy::Discard`] is the size of 32 rings, but at most 32 MiB, and 0 under
    /// the other policies. A thread whose ring is full continues in a spare ring, while the full ones wait for the sinks, up to this size for the
    /// whole channel; beyond it events are lost as `ring_full`. The memory is allocated when needed, within the limits of the rings'
    /// [source](super::MemorySource), and freed when it has been unused for some seconds. Each ring is a stream of its own. Under [`Policy::Wait`] an
    /// event waits first.
    #[must_use]
    pub fn overflow(mut self, bytes: usize) -> Self {
        self.overflow = bytes;
        self
    }

    /// Maximum size of the [overflow](Self::overflow) in bytes.
    pub const fn overflow_limit(&self) -> usize {
        self.overflow
    }

    /// Disables the wake-up of the consumer by events. By default, a thread that closes a packet while half of its ring waits to be drained wakes a
    /// sleeping consumer with a system call (`futex`); so does a thread that takes one of the last spare rings at its first event. It is the only
    /// system call that an event makes, at most one per packet. Without it, a burst after a quiet time loses the events that do not fit into the
    /// ring, and threads without a ring lose their events, until the consumer's next round, at most 200 ms later.
    #[must_use]
    pub fn no_wake(mut self) -> Self {
        (self.wakes, self.wakes_for_rings) = (false, false);
        self
    }

    /// Sets the maximum number of callers in a [call stack](Context::CallStack): 16 by default, from 1 to 64.
    #[must_use]
    pub fn call_stack_depth(mut self, callers: usize) -> Self {
        self.contexts = self.contexts.with_depth(callers);
        self
    }

    /// The fields of the contexts, in the order of the record.
    pub fn context_fields(&self) -> Vec<FieldDescriptor> {
        self.contexts.fields()
    }

    /// The size of a ring in bytes.
    pub const fn ring_size(&self) -> usize {
        self.ring_size
    }

    /// The number of [packets](Self::packets) of a ring.
    pub const fn packets_per_ring(&self) -> usize {
        self.packets
    }

    /// The number of [spare](Self::spares) rings kept ready.
    pub fn spare_rings(&self) -> usize {
        self.spares.unwrap_or((SPARE_BYTES / self.ring_size.max(1)).clamp(2, SPARES_AT_FIRST))
    }

    /// The number of [spare](Self::spares) rings, if it was set.
    pub const fn spares_if_set(&self) -> Option<usize> {
        self.spares
    }

    /// The number of spare rings created when the channel is opened, if it was set. See [`at_first`](Self::at_first).
    pub const fn rings_at_first(&self) -> Option<usize> {
        self.at_first
    }

    /// The maximum number of rings. See [`max_rings`](Self::max_rings).
    pub const fn ring_limit(&self) -> usize {
        self.max_rings
    }

    /// The [contexts](Self::context), in the order of the record.
    pub fn contexts(&self) -> impl Iterator<Item = Context> + use<'_> {
        Context::ALL.iter().copied().filter(|context| self.contexts.contains(*context))
    }

    /// The maximum number of callers in a call stack. See [`call_stack_depth`](Self::call_stack_depth).
    pub const fn callers(&self) -> usize {
        self.contexts.depth()
    }

    /// Returns whether events never wake a sleeping consumer: see [`no_wake`](Self::no_wake).
    pub const fn never_wakes(&self) -> bool {
        !self.wakes_for_rings
    }

    /// Returns whether events wake a sleeping consumer: see [`no_wake`](Self::no_wake). Never under [`Policy::Overwrite`].
    pub const fn wakes_consumer(&self) -> bool {
        self.wakes
    }

    /// The maximum wait for a free packet; `None` unless the policy is [`Policy::Wait`].
    pub fn max_wait(&self) -> Option<Duration> {
        (self.policy == Policy::Wait).then_some(self.max_wait)
    }

    /// The [name](Self::name) of the channel.
    pub fn channel_name(&self) -> &str {
        &self.name
    }

    /// The policy for a full ring.
    pub const fn policy(&self) -> Policy {
        self.policy
    }
}

/// A channel cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(super) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
