//! An open channel: opening and closing. `events` handles its events and their account.

mod events;

use super::account::EventCounters;
use super::config::{Channel, ConfigError};
use super::consumer_presence::ConsumerPresence;
use super::header::{Layout, Owner, RingMapping};
use super::memory::{MemorySource, RingRequest};
use super::overflow::Overflow;
use super::packet_header::StreamKey;
use super::ring::Ring;
use super::ring_table::RingTable;
use super::supply::{Spares, Supply};
use super::wake_word::WakeWord;
use crate::clock;
use crate::fork::{self, ForkHooks};
use crate::rcu_pointer::RcuPointer;
use crate::thread::{self, ExitHook, ThreadSlot};
use crate::update;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use events::{EventId, FilterOutcome, TooManyEvents};

/// An open channel.
pub struct OpenChannel {
    /// From 1 on, unique in the process, except that channels opened beside each other share one.
    pub(super) number: u64,
    pub(super) config: Channel,
    pub(super) uuid: [u8; 16],
    pub(super) class: u32,
    /// Prevents the process from changing its clock while the channel is open.
    clock: clock::ClockHold,
    pub(super) start: u64,
    /// The id of the process that opened the channel.
    pub(super) process: u32,
    max_events: usize,
    events: AtomicU32,
    pub(super) ring_table: RingTable,
    /// The spare rings of the channel's size, and the small ones in which threads start. Without small rings, the latter have no capacity.
    pub(super) large_rings: Spares,
    pub(super) small_rings: Spares,
    /// Number of threads that have moved from a small ring to a large one. Relaxed: it is read for an estimate.
    pub(super) grown: AtomicUsize,
    /// All rings, in the order of creation. A ring lives as long as the channel.
    pub(super) rings: Mutex<Vec<Arc<Ring>>>,
    pub(super) source: Box<dyn MemorySource>,
    pub(super) supply: Supply,
    /// The registered consumers.
    pub(super) consumers: Arc<ConsumerPresence>,
    /// The consumer's sleep word.
    pub(super) wake_word: Arc<WakeWord>,
    /// The sleep word of the thread of this process that supplies rings.
    pub(super) supply_wake_word: Arc<WakeWord>,
    pub(super) overflow: Overflow,
    /// Held while a consumer closes open packets.
    pub(super) closing: Mutex<()>,
    /// Held while packets are taken.
    pub(super) taking: Mutex<()>,
    /// Computes the checksums of packets that leave their rings.
    pub(super) checksum: OnceLock<fn(&[u8]) -> u32>,
    /// The number of subscriptions that record here. Changed under the update lock.
    subscriptions: AtomicU32,
    /// Set once new subscriptions are refused. Changed under the update lock.
    finished: AtomicBool,
    /// The counters of threads without a ring, and the losses of their stream.
    pub(super) ringless: ManuallyDrop<RingMapping>,
    /// The counters of a forked child, which has nothing else of the channel.
    pub(super) forked: Box<[EventCounters]>,
}

impl fmt::Debug for OpenChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenChannel").field("config", &self.config).field("class", &self.class).finish_non_exhaustive()
    }
}

/// The open channels, for the exit hook of threads and the hooks of fork.
static OPEN: RcuPointer<Vec<Arc<OpenChannel>>> = RcuPointer::null();

/// The instance number of the stream of events without a ring: larger than those of rings, but not the largest 64-bit number, which
/// babeltrace2 takes for "none".
pub const RINGLESS_INSTANCE: u64 = u32::MAX as u64;

/// Maximum number of open channels in a process: each has a table of all threads, and each thread that ends visits all channels.
pub const MAX_OPEN: usize = 32;

/// The number of 16-bit event ids.
pub const MAX_EVENTS: usize = 1 << 16;

fn no_room() -> ConfigError {
    ConfigError(format!("{MAX_OPEN} channels are open in this process, which is the limit: close one first"))
}

impl OpenChannel {
    /// Opens a channel: stream class `class` of the trace `uuid`, for up to `max_events` events (at most 65,536). Creates the spare rings, or
    /// [the first of them](Channel::at_first), in memory that `source` allocates.
    ///
    /// # Errors
    ///
    /// If the sizes or the name are invalid, there is no memory for the spare rings, or 32 channels are open;
    /// [closing](Self::close) one makes room immediately.
    pub fn open(
        config: Channel,
        uuid: [u8; 16],
        class: u32,
        max_events: usize,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<Self>, ConfigError> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let consumers = source.wake_memory().and_then(WakeWord::shared).unwrap_or_default();
        let wake_words = [Arc::new(consumers), Arc::default()];
        Self::open_as((number, wake_words), config, uuid, class, max_events, source)
    }

    /// Opens another channel of the same trace: stream class `class`, for the same number of events. A thread that is
    /// [restricted](Self::restrict_this_thread) to one of them is restricted to both, and both wake the same consumer.
    ///
    /// # Errors
    ///
    /// The same as for [`OpenChannel::open`].
    pub fn open_beside(
        &self,
        config: Channel,
        class: u32,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<Self>, ConfigError> {
        Self::open_as(
            (self.number, [self.wake_word(), self.supply_wake_word()]),
            config,
            self.uuid,
            class,
            self.max_events,
            source,
        )
    }

    fn open_as(
        (number, [wake_word, supply_wake_word]): (u64, [Arc<WakeWord>; 2]),
        config: Channel,
        uuid: [u8; 16],
        class: u32,
        max_events: usize,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<Self>, ConfigError> {
        config.check()?;
        // Check before any memory is allocated; others may open channels meanwhile.
        if Self::room() == 0 {
            return Err(no_room());
        }
        let max_events = max_events.clamp(1, MAX_EVENTS);
        let no_memory =
            |layout: Layout, error| ConfigError(format!("no memory for a ring of {} bytes: {error}", layout.size));
        let in_use = clock::ClockHold::begin();
        let start = clock::now();
        let layout = Layout::of_ringless(max_events);
        let request = RingRequest::new(&config.name, class, None, layout.size);
        let stream = StreamKey { uuid, class, instance: RINGLESS_INSTANCE };
        let owner = Owner { stream, policy: config.policy, start };
        let ringless = source
            .ring_memory(request)
            .and_then(|memory| RingMapping::new(memory, layout, owner))
            .map_err(|error| no_memory(layout, error))?;
        let ring_table = RingTable::new().ok_or_else(|| no_memory(layout, std::io::ErrorKind::OutOfMemory.into()))?;
        let channel = Arc::new(Self {
            number,
            ring_table,
            large_rings: Spares::new(Self::pool_size(&config)),
            small_rings: Spares::new(if config.small_packets().is_some() { Self::pool_size(&config) } else { 0 }),
            grown: AtomicUsize::new(0),
            uuid,
            class,
            clock: in_use,
            start,
            process: std::process::id(),
            max_events,
            events: AtomicU32::new(0),
            rings: Mutex::default(),
            source,
            supply: Supply::new(config.spare_rings().clamp(1, config.max_rings)),
            consumers: Arc::default(),
            wake_word,
            supply_wake_word,
            overflow: Overflow::default(),
            closing: Mutex::default(),
            taking: Mutex::default(),
            checksum: OnceLock::new(),
            subscriptions: AtomicU32::new(0),
            finished: AtomicBool::new(false),
            ringless: ManuallyDrop::new(ringless),
            forked: (0..max_events).map(|_| EventCounters::default()).collect(),
            config,
        });
        let layout = Layout::of_ring(&channel.config, channel.config.ring_size, max_events);
        channel.supply_at_first().map_err(|error| no_memory(layout, error))?;
        let has_room = Self::publish(|open| {
            let has_room = open.len() < MAX_OPEN;
            if has_room {
                open.push(Arc::clone(&channel));
            }
            has_room
        });
        if has_room {
            return Ok(channel);
        }
        Err(no_room())
    }

    /// Number of further channels that can be opened in this process.
    pub fn room() -> usize {
        let mut room = 0;
        Self::publish(|open| {
            room = MAX_OPEN.saturating_sub(open.len());
            false
        });
        room
    }

    /// Removes the channel from the list of open ones. Its subscriptions must have ended.
    pub fn close(&self) {
        Self::publish(|open| {
            open.retain(|other| !std::ptr::eq(Arc::as_ptr(other), self));
            true
        });
        self.clock.end();
    }

    /// Returns whether this is the process that opened the channel.
    pub fn is_attached(&self) -> bool {
        self.ring_table.is_attached()
    }

    /// In a forked child: removes the parent's channels from the list of open ones.
    pub fn forget_parents() {
        Self::publish(|open| {
            open.retain(|channel| channel.is_attached());
            true
        });
    }

    /// Changes the list of open channels. Returns `false` if `change` returns that it has changed nothing.
    fn publish(change: impl FnOnce(&mut Vec<Arc<Self>>) -> bool) -> bool {
        let locked = update::lock();
        fork::register(&FORK_HOOKS);
        thread::set_exit_hook(&EXIT_HOOK);
        // SAFETY: the update lock is held, and the list is replaced under it only.
        let mut open = unsafe { OPEN.read() }.cloned().unwrap_or_default();
        if !change(&mut open) {
            return false;
        }
        let old = OPEN.replace((!open.is_empty()).then(|| Box::new(open)));
        drop(locked);
        update::retire(old.map(|old| Box::new(old) as update::Garbage).into_iter().collect());
        true
    }

    /// Restricts the calling thread's events, until it ends, to this channel and the channels [opened beside](Self::open_beside) it: other
    /// channels neither record nor count them. For threads that replay state into one recording. Probes and aggregates still see the events.
    ///
    /// Returns `false`, with nothing changed, inside a probe, and if the thread has no slot ([`crate::thread::unserved_events`]).
    pub fn restrict_this_thread(&self) -> bool {
        thread::restrict_current_to(self.number)
    }

    /// The configuration with which the channel was opened.
    pub const fn config(&self) -> &Channel {
        &self.config
    }

    /// The channel's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The id of the channel's stream class in the trace.
    pub const fn class(&self) -> u32 {
        self.class
    }

    /// The time at which the channel was opened, in ns (see [`crate::clock`]).
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The contents of the header of this channel's ring with this instance.
    pub(super) const fn owner(&self, instance: u64) -> Owner {
        Owner { stream: self.stream(instance), policy: self.config.policy, start: self.start }
    }

    /// The stream of this channel with this instance.
    pub(super) const fn stream(&self, instance: u64) -> StreamKey {
        StreamKey { uuid: self.uuid, class: self.class, instance }
    }

    pub(super) const fn max_events(&self) -> usize {
        self.max_events
    }

    pub(super) fn ringless_discarded(&self) -> u64 {
        self.ringless.header().main_counters.discarded.get()
    }

    /// Number of waits for a ring that were in vain, and their total time in ns.
    fn ringless_waits(&self) -> [u64; 2] {
        let counters = &self.ringless.header().main_counters;
        [counters.waited.get(), counters.waited_ns.get()]
    }

    /// Returns whether all memory of the counters of threads without a ring is still intact.
    pub(super) fn ringless_is_whole(&self) -> bool {
        self.ringless.is_whole()
    }
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        if self.ring_table.is_attached() {
            // SAFETY: dropped only here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.ringless) };
        } else {
            // The memory belongs to the parent; its addresses may be used for something else here.
            std::mem::forget(std::mem::take(&mut *self.rings.lock().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

/// Gives the rings of an ending thread back to their channels. Called inside a section of `slot`.
static EXIT_HOOK: ExitHook = thread_exits;

fn thread_exits(slot: &'static ThreadSlot) {
    // SAFETY: the caller is inside a section for longer than this uses the list.
    for channel in unsafe { OPEN.read() }.into_iter().flatten() {
        channel.thread_exits(slot);
    }
}

/// Run in the child after fork, while the update lock is held: the rings belong to the parent.
static FORK_HOOKS: ForkHooks = ForkHooks { before: || (), in_parent: || (), in_child: detach_all_after_fork };

fn detach_all_after_fork() {
    // SAFETY: the update lock is held, because its fork hooks run around these.
    for channel in unsafe { OPEN.read() }.into_iter().flatten() {
        channel.ring_table.detach();
    }
}
