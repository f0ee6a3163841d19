//! Moves packets from channels to sinks, and keeps the books of what arrived.
//!
//! The step before is the channel, which hands out whole packets and counts what it lost itself; the step after are the sinks.
//! Each sink has books of its own: one may fail while another goes on.

mod books;
pub(crate) mod feed;
mod progress;

use crate::account::Account;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::{Sink, StreamInfo};
use crate::trace_info::TraceInfo;
pub(crate) use books::account_policy;
use feed::Feed;
pub(crate) use progress::Progress;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_core::channel::{Attending, OpenChannel, Packet, Policy};
use tracepoint_core::clock;

/// What one round of [`Drain::drain`] moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Packets taken out of the rings.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// How full the fullest ring was before, in percent, or how many of the spare rings were taken since the last round.
    pub fullness: u32,
    /// Why a channel could not be supplied with another ring, if it could not: threads to come have none then.
    pub unsupplied: Option<io::ErrorKind>,
}

/// A sink of a [`Drain`], for as long as the drain has it. No two sinks of a drain have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SinkId(pub(crate) u64);

/// What one sink has taken.
#[derive(Debug)]
#[non_exhaustive]
pub struct SinkReport {
    /// Which sink of its drain it is.
    pub id: SinkId,
    /// What the sink is called.
    pub name: String,
    /// Bytes that it took.
    pub bytes: u64,
    /// Packets that it took.
    pub packets: u64,
    /// Packets that it did not take.
    pub refused: u64,
    /// The account as this sink sees it.
    pub account: Account,
    /// The first error; `None` if there was none.
    pub error: Option<SinkError>,
}

/// The pause between two accounts that sinks keep while the trace goes on.
const CHECKPOINTS: Duration = Duration::from_millis(500);

/// Channels, and the sinks that their packets go to.
pub struct Drain {
    trace: TraceInfo,
    channels: Vec<Arc<OpenChannel>>,
    /// The accounts of channels that were removed, one channel in each.
    removed: Vec<Account>,
    /// Says to channels that were added that they are drained regularly.
    attending: Vec<(u32, Attending)>,
    events: Vec<EventDescription>,
    feeds: Vec<Feed>,
    /// The number of sinks that were added so far: the next one's id.
    added: u64,
    /// Whether somebody closes packets that have been open for long: else they come when they are full.
    flushes: bool,
    /// Whether packets stay in the rings, for a consumer in another process.
    leaves: bool,
    progress: Progress,
    /// When sinks got the account last, and whether packets have moved since.
    checkpoint: Instant,
    moved: bool,
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("trace", &self.trace).field("channels", &self.channels).finish_non_exhaustive()
    }
}

impl Drain {
    /// A drain of `channels`, all of the trace `trace`, without sinks as yet.
    pub fn new(trace: TraceInfo, channels: Vec<Arc<OpenChannel>>) -> Self {
        Self {
            trace,
            channels,
            removed: Vec::new(),
            attending: Vec::new(),
            events: Vec::new(),
            feeds: Vec::new(),
            added: 0,
            flushes: false,
            leaves: false,
            progress: Progress::default(),
            checkpoint: Instant::now(),
            moved: false,
        }
    }

    /// The packets stay in the rings, for a consumer in another process ([`OutsideDrain`](crate::OutsideDrain)): the sinks get none, and the
    /// account is what the channels count. What is closed for its age, and spare rings, are looked after all the same.
    #[must_use]
    pub fn leave_packets(mut self) -> Self {
        self.leaves = true;
        self
    }

    /// Adds a sink: it is told that the trace begins, and of all events so far, and gets all packets from here on.
    ///
    /// A sink that is added when packets have been moved already joins each stream behind them: the first packet that it gets of the
    /// stream holds no record, and its `events_before` says how many records the sink has missed. They are no loss: the sink's account
    /// counts them as recorded [before](crate::account::StreamAccount::before), in a part of the trace that this sink has not.
    ///
    /// # Errors
    ///
    /// If the sink cannot begin, or not take the events; it is not added then.
    pub fn add_sink(&mut self, sink: Box<dyn Sink>) -> Result<SinkId, SinkError> {
        let id = SinkId(self.added);
        let mut feed = Feed::new(id, sink, self.progress.clone());
        let channels: Vec<_> = self.channels.iter().map(|channel| ChannelDescription::of(channel)).collect();
        feed.begin(&self.trace, &channels)?;
        feed.describe(&self.events)?;
        self.added += 1;
        self.feeds.push(feed);
        Ok(id)
    }

    /// Removes a sink: it gets what is in the rings now, except of flight recorders, and finishes with the account of its part of the
    /// trace. The other sinks go on. `None` if the drain has no such sink.
    pub fn remove_sink(&mut self, id: SinkId) -> Option<SinkReport> {
        let index = self.feeds.iter().position(|feed| feed.id() == id)?;
        self.close_packets(Duration::ZERO);
        self.drain();
        let feed = self.feeds.remove(index);
        Some(feed.detach(&self.progress, self.base_account(false)))
    }

    /// Adds a channel of the same trace, whose stream class is another than that of all channels before: the sinks are told of it, and get
    /// its packets. One that is there already is not added again.
    ///
    /// # Errors
    ///
    /// That of the first sink that cannot take it; the channel is not added then.
    pub fn add_channel(&mut self, channel: &Arc<OpenChannel>) -> Result<(), SinkError> {
        let description = ChannelDescription::of(channel);
        self.feeds.iter_mut().try_for_each(|feed| feed.add_channel(&self.trace, &description))?;
        if !self.channels.iter().any(|known| known.class() == channel.class()) {
            self.attending.push((channel.class(), channel.attend()));
            self.channels.push(Arc::clone(channel));
        }
        Ok(())
    }

    /// Removes a channel, whose subscriptions have ended: the sinks get what is in its rings, those of a flight recorder included, and its
    /// account stays. `None` if the drain has no such channel.
    pub fn remove_channel(&mut self, class: u32) -> Option<Arc<OpenChannel>> {
        let index = self.channels.iter().position(|channel| channel.class() == class)?;
        let channel = self.channels.remove(index);
        self.attending.retain(|(attended, _)| *attended != class);
        let mut drained = Drained::default();
        let take = |packet: Packet<'_>| deliver(&channel, &mut self.progress, &mut self.feeds, &mut drained, &packet);
        let complete = if self.leaves { channel.seal() } else { channel.finish(take) }.is_ok();
        let mut account = self.empty_account(complete);
        books::add_channel(&mut account, &channel, &self.events);
        self.removed.push(account);
        self.moved |= drained.packets > 0;
        Some(channel)
    }

    /// The shortest time for which an event of these channels waits for the drain; `None` if none of them waits.
    pub fn patience(&self) -> Option<Duration> {
        self.channels.iter().filter_map(|channel| channel.config().patience()).min()
    }

    /// Says to the channels that they are drained regularly from here on, until the answer is dropped.
    pub fn attend(&self) -> Vec<Attending> {
        self.channels.iter().map(|channel| channel.attend()).collect()
    }

    /// Closes packets that have been open for `age`, whatever their threads do, so that the next round finds them. Those of flight
    /// recorders stay open: nobody takes them before the end. Sinks are told that looks have [ended](crate::Sink::look_ended) from here on:
    /// whoever does this once does it every 100 ms, with an age of 500 ms or less.
    pub fn flush(&mut self, age: Duration) {
        self.flushes = true;
        self.close_packets(age);
    }

    fn close_packets(&self, age: Duration) {
        let before = clock::now().saturating_sub(age.as_nanos() as u64);
        for channel in self.channels.iter().filter(|channel| channel.config().policy() != Policy::Overwrite) {
            channel.flush(before);
        }
    }

    /// Tells the sinks of events. Called before the events are switched on.
    ///
    /// # Errors
    ///
    /// That of the first sink that cannot take them; the others are not asked. Whoever tries it again uses the same ids: no sink is told
    /// twice of an event.
    pub fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        self.feeds.iter_mut().try_for_each(|feed| feed.describe(events))?;
        let is_new = |event: &&EventDescription| {
            !self.events.iter().any(|known| (known.class, known.id) == (event.class, event.id))
        };
        let new: Vec<_> = events.iter().filter(is_new).cloned().collect();
        self.events.extend(new);
        self.checkpoint();
        Ok(())
    }

    /// One round: keeps the channels supplied with spare rings, and moves all closed packets to the sinks.
    ///
    /// Errors of sinks are kept for the report.
    pub fn drain(&mut self) -> Drained {
        let mut drained = Drained::default();
        for channel in &self.channels {
            // How full the rings are is the consumer's to look at.
            let fullness = if self.leaves { channel.spares_taken() } else { channel.fullness() };
            drained.fullness = drained.fullness.max(fullness);
            drained.unsupplied = drained.unsupplied.or(channel.maintain().err().map(|error| error.kind()));
            if self.leaves {
                continue;
            }
            channel.drain(|packet| deliver(channel, &mut self.progress, &mut self.feeds, &mut drained, &packet));
        }
        for feed in &mut self.feeds {
            feed.rotate_if_due();
            if self.flushes {
                feed.look_ended();
            }
        }
        self.moved |= drained.packets > 0;
        if self.moved && self.checkpoint.elapsed() >= CHECKPOINTS {
            self.checkpoint();
        }
        drained
    }

    /// Has all sinks that can close what they have as a trace by itself, with all events that were recorded until now, but those of
    /// flight recorders, and go on in the next: where the closed ones are.
    ///
    /// # Errors
    ///
    /// That of the first sink that could not; it goes on where it is, and the others are asked all the same.
    pub fn rotate(&mut self) -> Result<Vec<PathBuf>, SinkError> {
        self.close_packets(Duration::ZERO);
        self.drain();
        let (mut closed, mut failed) = (Vec::new(), None);
        for feed in &mut self.feeds {
            match feed.call(|sink| sink.rotate()) {
                Ok(chunk) => closed.extend(chunk),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(closed), Err)
    }

    /// Whether one of the sinks can go on in another place.
    pub fn can_rotate(&mut self) -> bool {
        self.feeds.iter_mut().any(|feed| feed.call(|sink| Ok(sink.can_rotate())).unwrap_or(false))
    }

    /// Moves everything that the channels still hold, unless packets are left to another process, and lets each sink finish,
    /// whatever became of the others.
    ///
    /// The subscriptions of the channels have ended; where that is not so, or cannot be known, the account says that it is not complete.
    pub fn finish(mut self) -> Vec<SinkReport> {
        self.attending.clear();
        let mut drained = Drained::default();
        let mut complete = true;
        for channel in &self.channels {
            let take =
                |packet: Packet<'_>| deliver(channel, &mut self.progress, &mut self.feeds, &mut drained, &packet);
            complete &= if self.leaves { channel.seal() } else { channel.finish(take) }.is_ok();
        }
        let base = self.base_account(complete);
        self.feeds.into_iter().map(|feed| feed.finish(&self.progress, base.clone())).collect()
    }

    /// How the sinks fare, with the account so far: as good as a look at running counters can be.
    pub fn report(&self) -> Vec<SinkReport> {
        let base = self.base_account(false);
        self.feeds.iter().map(|feed| feed.report(&self.progress, base.clone())).collect()
    }

    /// Gives the account so far to the sinks that keep it.
    fn checkpoint(&mut self) {
        (self.checkpoint, self.moved) = (Instant::now(), false);
        if !self.feeds.iter_mut().any(Feed::wants_checkpoints) {
            return;
        }
        let base = self.base_account(false);
        for feed in self.feeds.iter_mut().filter_map(|feed| feed.wants_checkpoints().then_some(feed)) {
            feed.checkpoint(&self.progress, base.clone());
        }
    }

    /// The account without what differs from sink to sink.
    fn base_account(&self, complete: bool) -> Account {
        let mut account = self.empty_account(complete && self.removed.iter().all(|removed| removed.complete));
        for channel in &self.channels {
            books::add_channel(&mut account, channel, &self.events);
        }
        for removed in &self.removed {
            account.channels.extend(removed.channels.iter().cloned());
            account.notes.clamped += removed.notes.clamped;
            account.notes.altered += removed.notes.altered;
            account.notes.waited += removed.notes.waited;
            account.notes.waited_ns += removed.notes.waited_ns;
        }
        account.channels.sort_by_key(|channel| channel.id);
        account
    }

    fn empty_account(&self, complete: bool) -> Account {
        let mut account = Account::new(self.trace.uuid, self.trace.name.clone(), self.trace.process.pid);
        account.complete = complete;
        account
    }
}

fn deliver(
    channel: &OpenChannel,
    progress: &mut Progress,
    feeds: &mut [Feed],
    drained: &mut Drained,
    packet: &Packet<'_>,
) {
    drained.packets += 1;
    drained.bytes += packet.bytes.len() as u64;
    progress.pass(packet);
    let stream = StreamInfo { id: packet.stream, channel: channel.name().to_owned() };
    for feed in feeds {
        feed.take(&|| channel.first_packet(packet.stream), &stream, packet);
    }
}
