//! The rings of this process.

use super::report::SinkReport;
use super::source::{DrainRound, PacketSource, TakenPacket};
use super::{Drain, deliver, finish};
use crate::account::Account;
use crate::accounting;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::metadata::MetadataText;
use crate::sink::StreamInfo;
use crate::trace_info::TraceInfo;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracepoint_reader::internal::checksum;
use tracepoint_ring::channel::{ConsumerGuard, OpenChannel, Packet, Policy, WakeWord};
use tracepoint_ring::clock;

/// The rings of channels of this process.
#[derive(Debug)]
pub struct LocalRings {
    trace: TraceInfo,
    channels: Vec<Arc<OpenChannel>>,
    /// The same channels, for the supplier.
    supplied: Arc<Mutex<Vec<Arc<OpenChannel>>>>,
    removed: Vec<RemovedChannel>,
    /// Guards that mark added channels as drained regularly.
    consumers: Vec<(u32, ConsumerGuard)>,
    /// True if old packets are closed regularly.
    flushes: bool,
    /// The age at which they are closed, and the time before which all have been.
    flush_age: Duration,
    flushed: u64,
    /// True if packets stay in the rings, for a consumer in another process.
    leaves_packets: bool,
}

/// A removed channel, which is still part of the trace.
#[derive(Debug)]
struct RemovedChannel {
    description: ChannelDescription,
    account: Account,
}

/// Creates rings on a different thread than the drain's, which may be in a sink that blocks.
#[derive(Clone, Debug)]
pub struct RingSupplier(Arc<Mutex<Vec<Arc<OpenChannel>>>>);

/// The age at which open packets are closed, unless a sink needs them earlier.
const FLUSH_AGE: Duration = Duration::from_millis(500);
/// Percentage of spare rings taken from which [`RingSupplier::supply`] is to be called again.
const BEHIND: u32 = 100;

impl RingSupplier {
    /// Creates the rings that are needed now. Returns `false` if it is to be called again at once, because threads take rings faster than they are
    /// created.
    pub fn supply(&self) -> bool {
        // The drain's next round has the same error.
        self.channels().iter().all(|channel| channel.supply_spares().is_err() || channel.spares_taken() < BEHIND)
    }

    /// Returns the word by which threads that take one of the last spare rings wake the supplier; `None` before there is a channel.
    pub fn wake_word(&self) -> Option<Arc<WakeWord>> {
        self.channels().first().map(|channel| channel.supply_wake_word())
    }

    /// Returns whether the threads of a channel never wake the supplier: see [`no_wake`](tracepoint_ring::channel::Channel::no_wake).
    pub fn is_never_woken(&self) -> bool {
        self.channels().iter().any(|channel| channel.config().never_wakes())
    }

    fn channels(&self) -> Vec<Arc<OpenChannel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how often threads have continued in another ring so far, because their own was full.
    pub fn overflowed(&self) -> u64 {
        self.channels().iter().map(|channel| channel.overflowed()).sum()
    }
}

/// Wait limit of full rings if another process takes the packets. The drain thread checks every quarter of it whether rings can be used again.
const REUSE: Duration = Duration::from_millis(40);

impl LocalRings {
    fn share_with_supplier(&self) {
        (*self.supplied.lock().unwrap_or_else(PoisonError::into_inner)).clone_from(&self.channels);
    }

    /// Registers the consumer of a channel: this drain, or that of another process.
    fn register(&self, channel: &OpenChannel) -> ConsumerGuard {
        if self.leaves_packets { channel.register_remote_consumer() } else { channel.register_consumer() }
    }

    fn empty_account(&self) -> Account {
        Account::new(self.trace.uuid, self.trace.name.clone(), self.trace.process.pid)
    }

    /// Ends the recording into a channel and hands out the packets in its rings, unless packets are left to another process. Returns `false` if the
    /// result may be incomplete.
    fn finish_channel(&self, channel: &OpenChannel, deliver: &mut dyn FnMut(&TakenPacket<'_>)) -> bool {
        let finished = if self.leaves_packets {
            channel.seal()
        } else {
            channel.finish(|packet| hand_out(channel, packet, deliver))
        };
        finished.is_ok()
    }

    /// Closes packets that were opened before `before`. `flush` does that for one channel, and returns `false` if it has left one open.
    fn close_packets_before(&mut self, before: u64, flush: fn(&OpenChannel, u64) -> bool) {
        let closing = self.channels.iter().filter(|channel| channel.config().policy() != Policy::Overwrite);
        // All channels, even after one with a packet that is being written.
        if closing.filter(|channel| !flush(channel, before)).count() == 0 {
            self.flushed = self.flushed.max(before);
        }
    }
}

impl PacketSource for LocalRings {
    /// Packets are closed after 500 ms, which is checked every 100 ms; the rest is time to take them.
    const PACKET_DELAY: Duration = Duration::from_millis(800);

    fn flushed(&self) -> Option<u64> {
        Some(self.flushed)
    }

    fn limit_flush_age(&mut self, age: Duration) {
        self.flush_age = self.flush_age.min(age);
    }

    fn trace(&self) -> &TraceInfo {
        &self.trace
    }

    fn channels(&self) -> Vec<ChannelDescription> {
        let open = self.channels.iter().map(|channel| ChannelDescription::of(channel));
        let mut channels: Vec<_> = open.chain(self.removed.iter().map(|removed| removed.description.clone())).collect();
        channels.sort_by_key(|channel| channel.class);
        channels
    }

    fn closes_old_packets(&self) -> bool {
        self.flushes
    }

    fn close_packets(&mut self) {
        self.close_packets_before(clock::now(), OpenChannel::flush);
    }

    fn take(&mut self, mut deliver: Option<&mut dyn FnMut(&TakenPacket<'_>)>) -> DrainRound {
        let mut drained = DrainRound::default();
        for channel in &self.channels {
            // If another process takes the packets, it watches how full the rings are.
            let fullness = if self.leaves_packets { channel.spares_taken() } else { channel.fullness() };
            drained.fullness = drained.fullness.max(fullness);
            // Before rings are created, which takes as long as a burst takes to fill one.
            if let Some(deliver) = deliver.as_deref_mut().filter(|_| !self.leaves_packets) {
                channel.drain(|packet| {
                    drained.packets += 1;
                    drained.bytes += packet.bytes.len() as u64;
                    hand_out(channel, packet, deliver);
                });
            }
            drained.unsupplied = drained.unsupplied.or(channel.maintain().err().map(|error| error.kind()));
        }
        drained
    }

    fn account(&self, events: &[EventDescription]) -> Account {
        let mut account = self.empty_account();
        for channel in &self.channels {
            accounting::add_channel(&mut account, channel, events);
        }
        for removed in self.removed.iter().map(|removed| &removed.account) {
            account.channels.extend(removed.channels.iter().cloned());
            account.notes.clamped += removed.notes.clamped;
            account.notes.altered += removed.notes.altered;
            account.notes.waited += removed.notes.waited;
            account.notes.waited_ns += removed.notes.waited_ns;
        }
        account.channels.sort_by_key(|channel| channel.id);
        account
    }
}

fn hand_out(channel: &OpenChannel, packet: Packet<'_>, deliver: &mut dyn FnMut(&TakenPacket<'_>)) {
    let stream = StreamInfo { id: packet.stream, channel: channel.name().to_owned() };
    deliver(&TakenPacket { stream, packet, first_packet: &|| channel.first_packet(packet.stream) });
}

impl Drain<LocalRings> {
    /// Creates a drain of `channels`, all of the trace `trace`, without sinks.
    pub fn new(trace: TraceInfo, channels: Vec<Arc<OpenChannel>>) -> Self {
        let (removed, consumers) = (Vec::new(), Vec::new());
        for channel in &channels {
            channel.checksum_with(checksum);
        }
        let supplied = Arc::new(Mutex::new(channels.clone()));
        let source = LocalRings {
            trace,
            channels,
            supplied,
            removed,
            consumers,
            flushes: false,
            flush_age: FLUSH_AGE,
            flushed: 0,
            leaves_packets: false,
        };
        let metadata = MetadataText::begin(&source.trace, &source.channels());
        Self::of(source, Vec::new(), metadata.as_str().to_owned())
    }

    /// Leaves the packets in the rings, for a consumer in another process ([`RemoteRings`](super::RemoteRings)). The sinks get none, and the account
    /// consists of the channels' counts. Old packets are still closed and spare rings created.
    #[must_use]
    pub fn leave_packets(mut self) -> Self {
        self.source.leaves_packets = true;
        self
    }

    /// Adds a channel of the same trace with a new stream class: describes it to the sinks and gives them its packets. If a caller retries after an
    /// error with the same channel, the channel is added once, and described once to each sink. If the channel records call stacks, `modules` lists
    /// mapped code in addition to that in the [`ProcessInfo`](crate::ProcessInfo).
    ///
    /// # Errors
    ///
    /// The error of the first sink that cannot take packets of the channel, which is then not added.
    pub fn add_channel(&mut self, channel: &Arc<OpenChannel>, modules: &[String]) -> Result<(), SinkError> {
        if self.source.channels.iter().any(|known| known.class() == channel.class()) {
            return Ok(());
        }
        let description = ChannelDescription::of(channel);
        let metadata = MetadataText::added_channel(&self.source.trace, &description, modules);
        self.sinks.iter_mut().try_for_each(|sink| sink.add_channel(&description, metadata.as_str()))?;
        self.metadata.push_str(metadata.as_str());
        self.source.trace.process.modules.extend_from_slice(modules);
        self.source.consumers.push((channel.class(), self.source.register(channel)));
        channel.checksum_with(checksum);
        self.source.channels.push(Arc::clone(channel));
        self.source.share_with_supplier();
        Ok(())
    }

    /// Removes a channel whose subscriptions have ended: the sinks get the packets in its rings, including those of a flight recorder, and its
    /// account is kept. Returns `None` if the drain has no channel of this stream class.
    pub fn remove_channel(&mut self, class: u32) -> Option<Arc<OpenChannel>> {
        let Self { source, events, sinks, progress, .. } = self;
        let index = source.channels.iter().position(|channel| channel.class() == class)?;
        let channel = source.channels.remove(index);
        source.share_with_supplier();
        source.consumers.retain(|(registered, _)| *registered != class);
        let mut account = source.empty_account();
        account.complete = source.finish_channel(&channel, &mut |taken| deliver(taken, progress, sinks));
        accounting::add_channel(&mut account, &channel, events);
        source.removed.push(RemovedChannel { description: ChannelDescription::of(&channel), account });
        self.has_moved = true;
        Some(channel)
    }

    /// Returns the minimum time that an event of these channels waits for this drain, or a full ring for its reuse; `None` if neither waits.
    pub fn wait_limit(&self) -> Option<Duration> {
        let mut channels = self.source.channels.iter();
        if self.source.leaves_packets {
            let is_waiting = channels.any(|channel| channel.overflow_waits());
            return is_waiting.then_some(REUSE);
        }
        channels.filter_map(|channel| channel.config().max_wait()).min()
    }

    /// Returns the word on which the thread that drains these channels sleeps. If packets are left to another process, that thread supplies rings.
    pub fn wake_word(&self) -> Arc<WakeWord> {
        let leaves_packets = self.source.leaves_packets;
        let word = |channel: &Arc<OpenChannel>| {
            if leaves_packets { channel.supply_wake_word() } else { channel.wake_word() }
        };
        self.source.channels.first().map(word).unwrap_or_default()
    }

    /// Returns whether packets are left to another process, so that no sink of this one blocks the drain.
    pub const fn leaves_all_packets(&self) -> bool {
        self.source.leaves_packets
    }

    /// Returns a supplier, which creates the rings that threads need between two rounds and while this drain is in a sink.
    pub fn supplier(&self) -> RingSupplier {
        RingSupplier(Arc::clone(&self.source.supplied))
    }

    /// Returns the fill level of the fullest ring in percent; 0 if packets are left to another process.
    pub fn fullness(&self) -> u32 {
        let channels = self.source.channels.iter().filter(|_| !self.source.leaves_packets);
        channels.map(|channel| channel.fullness()).max().unwrap_or(0)
    }

    /// Marks the channels as drained regularly, by this process or the one to which packets are left, until the result is dropped.
    pub fn register_consumers(&self) -> Vec<ConsumerGuard> {
        self.source.channels.iter().map(|channel| self.source.register(channel)).collect()
    }

    /// Returns the age at which packets are to be closed by [`flush`](Self::flush): 500 ms, or less if a sink needs events earlier.
    pub fn flush_age(&self) -> Duration {
        self.source.flush_age
    }

    /// Lowers that age.
    pub fn limit_flush_age(&mut self, age: Duration) {
        self.source.limit_flush_age(age);
    }

    /// Returns the time before which all packets with a record have been closed.
    pub fn flushed(&self) -> u64 {
        self.source.flushed
    }

    /// Closes packets that have been open for `age`, whatever their threads do, so that the next round finds them. Packets of flight recorders stay
    /// open until the end, and packets in rings that are half full until those are drained. After the first call, sinks rely on a call every 100 ms,
    /// with an age of at most 500 ms.
    pub fn flush(&mut self, age: Duration) {
        self.source.flushes = true;
        let before = clock::now().saturating_sub(age.as_nanos() as u64);
        self.source.close_packets_before(before, OpenChannel::flush_drained);
    }

    /// Closes all open packets that have a record, except those of flight recorders, and moves them to the sinks.
    pub fn flush_all(&mut self) {
        self.source.close_packets();
        self.drain();
    }

    /// Describes events to the sinks. To be called before the events are enabled.
    ///
    /// # Errors
    ///
    /// The error of the first sink that cannot take them; later sinks are not called. A caller that retries uses the same ids: no event is described
    /// twice to a sink.
    pub fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        let is_new = |event: &&EventDescription| {
            !self.events.iter().any(|known| (known.class, known.id) == (event.class, event.id))
        };
        let new: Vec<_> = events.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            let metadata = MetadataText::events(&new);
            self.sinks.iter_mut().try_for_each(|sink| sink.describe(&new, metadata.as_str()))?;
            self.metadata.push_str(metadata.as_str());
            self.events.extend(new);
        }
        self.checkpoint();
        Ok(())
    }

    /// Moves everything that the channels hold, unless packets are left to another process, and finishes all sinks, even if some fail.
    ///
    /// The subscriptions of the channels must have ended. Otherwise, or if that is unknown, the account is not complete.
    pub fn finish(self) -> Vec<SinkReport> {
        let Self { mut source, events, mut sinks, mut progress, .. } = self;
        source.consumers.clear();
        let mut complete = source.removed.iter().all(|removed| removed.account.complete);
        for channel in &source.channels {
            complete &= source.finish_channel(channel, &mut |taken| deliver(taken, &mut progress, &mut sinks));
        }
        let mut account = source.account(&events);
        account.complete = complete;
        finish(sinks, &progress, &account)
    }
}
