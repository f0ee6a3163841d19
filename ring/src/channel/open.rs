//! An open channel: from an event to this thread's ring.

use super::account::{ChannelAccount, EventAccount, EventCounters, Loss, StreamAccount};
use super::attachment::Attachment;
use super::buffer::Buffer;
use super::config::{Channel, ConfigError};
use super::header::{Layout, Mapped, Owner};
use super::memory::{MemorySource, RingRequest};
use super::packet::Stream;
use super::pool::Pool;
use super::ring::Ring;
use super::wait_policy::ConsumerPresence;
use crate::clock;
use crate::context::{ContextValues, with_callers};
use crate::field::{Both, Fields};
use crate::fork::{self, ForkHooks};
use crate::rcu_pointer::RcuPointer;
use crate::thread::{self, ExitHook, ThreadSlot};
use crate::update::{self, UpdateGuard};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The id of an event in a channel. Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub(super) u16);

impl EventId {
    /// The id as it stands in a record's header word.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Whether an event is for a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterOutcome {
    /// It is.
    Accepted,
    /// Its filter refused it.
    Refused,
    /// By a brake.
    Suppressed,
    /// The filter panicked, or a field expression.
    Panicked,
}

/// The channel has given all its event ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEvents {
    limit: usize,
}

impl fmt::Display for TooManyEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the channel was opened for {} events, and all are given", self.limit)
    }
}

impl std::error::Error for TooManyEvents {}

/// A channel that records.
pub struct OpenChannel {
    /// Its own in the process, or that of the channel that it was opened beside, and never given again: from 1 on.
    number: u64,
    pub(super) config: Channel,
    pub(super) uuid: [u8; 16],
    pub(super) class: u32,
    /// While the channel is open, the process keeps its clock.
    clock: clock::ClockHold,
    pub(super) start: u64,
    /// The process that records.
    process: u32,
    max_events: usize,
    events: AtomicU32,
    pub(super) attachment: Attachment,
    pub(super) pool: Pool,
    /// All rings, in the order of their making. A ring lives as long as the channel.
    pub(super) rings: Mutex<Vec<Arc<Ring>>>,
    pub(super) source: Box<dyn MemorySource>,
    /// How many spare rings the last `maintain` could not make.
    pub(super) unsupplied: AtomicUsize,
    /// Whether the pool had all its rings once, or could not have them.
    pub(super) was_filled: AtomicBool,
    /// Who drains.
    pub(super) consumers: Arc<ConsumerPresence>,
    /// Held while packets are handed out.
    pub(super) draining: Mutex<()>,
    /// How many subscriptions record here. Changed under the update lock.
    subscriptions: AtomicU32,
    /// Nobody may subscribe any more. Changed under the update lock.
    finished: AtomicBool,
    /// The counters of threads without a ring, and the losses on their stream.
    ringless: ManuallyDrop<Mapped>,
    /// What a forked child counts: nothing else of the channel is there.
    forked: Box<[EventCounters]>,
}

impl fmt::Debug for OpenChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenChannel").field("config", &self.config).field("class", &self.class).finish_non_exhaustive()
    }
}

/// The channels that are open, for threads that end and for fork.
static OPEN: RcuPointer<Vec<Arc<OpenChannel>>> = RcuPointer::null();

/// The instance number of the stream of events that had no ring: beyond those of rings. Not the largest of 64 bits, which
/// babeltrace2 takes for "none".
pub(super) const RINGLESS_INSTANCE: u64 = u32::MAX as u64;

/// How many channels may be open at once: each has a table of all threads, and is asked by every thread that ends.
const MAX_OPEN: usize = 32;

/// The largest number of events that 16-bit ids can tell apart.
const MAX_EVENTS: usize = 1 << 16;

// -- control plane ------------------------------------------------------------------------------------------------------

impl OpenChannel {
    /// Opens a channel: stream class `class` of the trace `uuid`, for at most `max_events` events (65,536 at most).
    /// The spare rings are made now, or [the first of them](Channel::at_first), from memory that `source` gives.
    ///
    /// # Errors
    ///
    /// If the sizes or the name will not do, if there is no memory for the spare rings, or if 32 channels are open already. One that is
    /// [closed](Self::close) makes room at once.
    pub fn open(
        config: Channel,
        uuid: [u8; 16],
        class: u32,
        max_events: usize,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<Self>, ConfigError> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Self::open_as(NUMBER.fetch_add(1, Ordering::Relaxed), config, uuid, class, max_events, source)
    }

    /// Opens another channel of the same trace: stream class `class`, for as many events. A thread that is [kept](Self::restrict_this_thread) for
    /// one of them is kept for both.
    ///
    /// # Errors
    ///
    /// As [`OpenChannel::open`].
    pub fn open_beside(
        &self,
        config: Channel,
        class: u32,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<Self>, ConfigError> {
        Self::open_as(self.number, config, self.uuid, class, self.max_events, source)
    }

    fn open_as(
        number: u64,
        config: Channel,
        uuid: [u8; 16],
        class: u32,
        max_events: usize,
        source: Box<dyn MemorySource>,
    ) -> Result<Arc<Self>, ConfigError> {
        config.check()?;
        let max_events = max_events.clamp(1, MAX_EVENTS);
        let no_memory =
            |layout: Layout, error| ConfigError(format!("no memory for a ring of {} bytes: {error}", layout.size));
        let in_use = clock::ClockHold::begin();
        let start = clock::now();
        let layout = Layout::of_ringless(max_events);
        let request = RingRequest::new(&config.name, class, None, layout.size);
        let owner = Owner { uuid, class, policy: config.policy, instance: RINGLESS_INSTANCE, start };
        let ringless = source
            .ring_memory(request)
            .and_then(|memory| Mapped::new(memory, layout, owner))
            .map_err(|error| no_memory(layout, error))?;
        let attachment = Attachment::new().ok_or_else(|| no_memory(layout, std::io::ErrorKind::OutOfMemory.into()))?;
        let channel = Arc::new(Self {
            number,
            attachment,
            pool: Pool::new(config.spares.clamp(1, config.max_rings)),
            uuid,
            class,
            clock: in_use,
            start,
            process: std::process::id(),
            max_events,
            events: AtomicU32::new(0),
            rings: Mutex::default(),
            source,
            unsupplied: AtomicUsize::new(0),
            was_filled: AtomicBool::new(false),
            consumers: Arc::default(),
            draining: Mutex::default(),
            subscriptions: AtomicU32::new(0),
            finished: AtomicBool::new(false),
            ringless: ManuallyDrop::new(ringless),
            forked: (0..max_events).map(|_| EventCounters::default()).collect(),
            config,
        });
        channel.supply_at_first().map_err(|error| no_memory(Layout::of_ring(&channel.config, max_events), error))?;
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
        Err(ConfigError(format!("{MAX_OPEN} channels are open in this process, which is the most: close one first")))
    }

    /// Takes the channel out of the list of open ones. Its subscriptions have ended.
    pub fn close(&self) {
        Self::publish(|open| {
            open.retain(|other| !std::ptr::eq(Arc::as_ptr(other), self));
            true
        });
        self.clock.end();
    }

    /// Whether this is the process that opened it.
    pub fn is_attached(&self) -> bool {
        self.attachment.is_attached()
    }

    /// In a forked child: takes the parent's channels out of the list of open ones.
    pub fn forget_parents() {
        Self::publish(|open| {
            open.retain(|channel| channel.is_attached());
            true
        });
    }

    /// Changes the list of open channels. `false` if `change` says that it has changed nothing.
    fn publish(change: impl FnOnce(&mut Vec<Arc<Self>>) -> bool) -> bool {
        let locked = update::lock();
        fork::register(&FORK_HOOKS);
        thread::set_exit_hook(&EXIT_HOOK);
        // SAFETY: the update lock is held; the list is replaced under it only.
        let mut open = unsafe { OPEN.read() }.cloned().unwrap_or_default();
        if !change(&mut open) {
            return false;
        }
        let old = OPEN.replace((!open.is_empty()).then(|| Box::new(open)));
        drop(locked);
        update::retire(old.map(|old| Box::new(old) as update::Garbage).into_iter().collect());
        true
    }

    /// From here on, until it ends, the calling thread's events go into this channel, those that were [opened beside](Self::open_beside) it,
    /// and no other: others neither record nor count them. For threads that tell one recording what it has missed. Probes and aggregates
    /// see the events as ever.
    ///
    /// `false`, and nothing has changed, inside a probe, and where the thread cannot be served ([`crate::unserved_events`]).
    pub fn restrict_this_thread(&self) -> bool {
        thread::restrict_current_to(self.number)
    }

    /// The description that the channel was opened with.
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

    /// When the channel was opened, in ns (see [`crate::clock`]).
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// An id for one more event.
    ///
    /// # Errors
    ///
    /// If all ids are given. Ids are never used again.
    pub fn add_event(&self) -> Result<EventId, TooManyEvents> {
        let full = TooManyEvents { limit: self.max_events };
        self.events
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| ((n as usize) < self.max_events).then_some(n + 1))
            .map(|n| EventId(n as u16))
            .map_err(|_| full)
    }

    /// Whether subscribing has ended.
    pub fn is_finished(&self, _: &UpdateGuard<'_>) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    /// One subscription more. The update lock is held, and the channel is not finished.
    pub fn subscribed(&self, _: &UpdateGuard<'_>) {
        self.subscriptions.fetch_add(1, Ordering::Relaxed);
    }

    /// One subscription less. The update lock is held.
    pub fn unsubscribed(&self, _: &UpdateGuard<'_>) {
        self.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Refuses subscriptions from here on. `false`, with nothing changed, while there is one.
    pub(super) fn end_subscriptions(&self) -> bool {
        let _locked = update::lock();
        let has_ended = self.subscriptions.load(Ordering::Relaxed) == 0;
        if has_ended {
            self.finished.store(true, Ordering::Relaxed);
        }
        has_ended
    }

    /// Whether the channel has given this id.
    pub fn has_event(&self, id: EventId) -> bool {
        u32::from(id.0) < self.events.load(Ordering::Relaxed)
    }

    /// What the headers of this channel's rings say.
    pub(super) const fn owner(&self, instance: u64) -> Owner {
        Owner { uuid: self.uuid, class: self.class, policy: self.config.policy, instance, start: self.start }
    }

    pub(super) fn stream(&self, instance: u64) -> Stream {
        Stream { uuid: self.uuid, class: self.class, instance }
    }

    pub(super) const fn max_events(&self) -> usize {
        self.max_events
    }

    pub(super) fn ringless_discarded(&self) -> u64 {
        self.ringless.header().main_counters.discarded.get()
    }

    /// Whether nothing was lost of what threads without a ring counted.
    pub(super) fn ringless_is_whole(&self) -> bool {
        self.ringless.is_whole()
    }

    /// What was fired, recorded and lost so far. In a forked child, what was lost there.
    pub fn account(&self) -> ChannelAccount {
        let given = self.events.load(Ordering::Relaxed) as usize;
        let sum = |rows: &[&[EventCounters]]| {
            let event = |id: usize| {
                let mut sum = EventAccount::default();
                for row in rows {
                    sum.add(&row[id]);
                }
                sum
            };
            (0..given).map(event).collect::<Vec<_>>()
        };
        if !self.attachment.is_attached() {
            let events = sum(&[&self.forked]);
            let discarded = events.iter().map(EventAccount::total_lost).sum();
            let streams = vec![StreamAccount { instance: RINGLESS_INSTANCE, discarded, ..StreamAccount::default() }];
            return ChannelAccount { events, streams };
        }
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let rows: Vec<_> = rings.iter().map(|ring| ring.account()).chain([self.ringless.account()]).collect();
        let ringless = StreamAccount {
            instance: RINGLESS_INSTANCE,
            discarded: self.ringless_discarded(),
            ..StreamAccount::default()
        };
        let streams =
            rings.iter().flat_map(|ring| ring.buffers()).filter(|b| b.is_used()).map(Buffer::account).chain([ringless]);
        ChannelAccount { events: sum(&rows), streams: streams.collect() }
    }
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        if self.attachment.is_attached() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.ringless) };
        } else {
            // The memory is the parent's, and at its addresses here may be something else by now.
            std::mem::forget(std::mem::take(&mut *self.rings.lock().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

// -- data plane ---------------------------------------------------------------------------------------------------------

impl OpenChannel {
    #[inline(always)]
    fn ring(&self, slot: &'static ThreadSlot) -> Option<&Ring> {
        let ring = self.attachment.ring(slot).load(Ordering::Relaxed);
        if ring.is_null() {
            return self.take_ring(slot);
        }
        // SAFETY: pointers in the table are rings of this channel, which live as long as it does. Relaxed: the pointer was
        // stored by this very thread.
        Some(unsafe { &*ring })
    }

    #[cold]
    #[inline(never)]
    fn take_ring(&self, slot: &'static ThreadSlot) -> Option<&Ring> {
        if !self.attachment.is_attached() || !slot.is_recorded_by(self.number) {
            return None;
        }
        let taken = self.pool.take()?;
        // SAFETY: pointers in the pool are rings of this channel.
        let ring = unsafe { &*taken };
        ring.own(slot.tid());
        let place = self.attachment.ring(slot);
        match place.compare_exchange(null_mut(), taken.cast_mut(), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(ring),
            Err(by_handler) => {
                // A signal handler took a ring for this thread meanwhile: that is the one to use.
                ring.end();
                // SAFETY: as above.
                Some(unsafe { &*by_handler })
            }
        }
    }

    /// An event of the calling thread: counts that it fired, asks whether it is wanted, and records it, or counts why not.
    #[inline(always)]
    pub fn serve<V: Fields>(
        &self,
        slot: &'static ThreadSlot,
        id: EventId,
        time: u64,
        values: &V,
        judge: impl FnOnce() -> FilterOutcome,
    ) {
        let Some(ring) = self.ring(slot) else {
            // Before anything is judged: a brake would count it.
            if slot.is_recorded_by(self.number) {
                self.count_ringless(id, judge());
            }
            return;
        };
        let event = ring.event(id.0);
        event.fired.increment();
        match judge() {
            FilterOutcome::Accepted => ring.record(event, id.0, time, values),
            FilterOutcome::Refused => event.filtered.increment(),
            FilterOutcome::Suppressed => event.suppressed.increment(),
            FilterOutcome::Panicked => ring.lost(id.0, Loss::Panicked),
        }
    }

    /// Whether each record begins with contexts.
    pub fn has_contexts(&self) -> bool {
        !self.config.contexts.is_empty()
    }

    /// The same as `serve`, with the verdict known, for an event whose record begins with the channel's contexts.
    pub fn serve_with_contexts<V: Fields>(
        &self,
        slot: &'static ThreadSlot,
        id: EventId,
        time: u64,
        values: &V,
        verdict: FilterOutcome,
    ) {
        if verdict != FilterOutcome::Accepted {
            return self.serve(slot, id, time, &(), || verdict);
        }
        with_callers(self.config.contexts, |callers| {
            let contexts = ContextValues::now(self.config.contexts, self.process, slot, callers);
            self.serve(slot, id, time, &Both(contexts, *values), || verdict);
        });
    }

    /// An event whose fields could not be evaluated.
    pub fn panicked(&self, slot: &'static ThreadSlot, id: EventId) {
        self.serve(slot, id, 0, &(), || FilterOutcome::Panicked);
    }

    /// An event of a thread that has no ring.
    #[cold]
    #[inline(never)]
    fn count_ringless(&self, id: EventId, verdict: FilterOutcome) {
        let attached = self.attachment.is_attached();
        let row = if attached { self.ringless.account() } else { &*self.forked };
        let event = &row[id.0 as usize];
        event.fired.add_shared(1);
        let reason = match verdict {
            FilterOutcome::Refused => return event.filtered.add_shared(1),
            FilterOutcome::Suppressed => return event.suppressed.add_shared(1),
            FilterOutcome::Panicked => Loss::Panicked,
            FilterOutcome::Accepted if attached => Loss::NoRing,
            FilterOutcome::Accepted => Loss::NotAttached,
        };
        event.lost(reason).add_shared(1);
        if attached {
            self.ringless.header().main_counters.discarded.add_shared(1);
        }
    }

    fn thread_exits(&self, slot: &'static ThreadSlot) {
        let ring = self.attachment.ring(slot).swap(null_mut(), Ordering::Relaxed);
        // SAFETY: pointers in the table are rings of this channel, or null.
        if let Some(ring) = unsafe { ring.as_ref() } {
            ring.end();
        }
    }
}

/// Gives the rings of a thread that ends back to their channels. Called inside a section of `slot`.
static EXIT_HOOK: ExitHook = thread_exits;

fn thread_exits(slot: &'static ThreadSlot) {
    // SAFETY: inside a section, and done with the list before it ends.
    for channel in unsafe { OPEN.read() }.into_iter().flatten() {
        channel.thread_exits(slot);
    }
}

/// In the child after fork, while the update lock is held: the rings are the parent's.
static FORK_HOOKS: ForkHooks = ForkHooks { before: || (), in_parent: || (), in_child: detach_all_after_fork };

fn detach_all_after_fork() {
    // SAFETY: the update lock is held (its fork hooks run around these), and no other thread exists.
    for channel in unsafe { OPEN.read() }.into_iter().flatten() {
        channel.attachment.detach();
    }
}
