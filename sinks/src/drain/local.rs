//! The rings of this process.

use super::report::SinkReport;
use super::source::{Drained, PacketSource, TakenPacket};
use super::{Drain, deliver, finish};
use crate::account::Account;
use crate::accounting;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::metadata::MetadataText;
use crate::sink::StreamInfo;
use crate::trace_info::TraceInfo;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_core::channel::{ConsumerGuard, OpenChannel, Packet, Policy};
use tracepoint_core::clock;

/// The rings of channels of this process.
#[derive(Debug)]
pub struct LocalRings {
    trace: TraceInfo,
    channels: Vec<Arc<OpenChannel>>,
    /// Whether old packets are closed regularly.
    flushes: bool,
    /// Whether packets stay in the rings, for a consumer in another process.
    leaves_packets: bool,
}

impl LocalRings {
    fn close_packets_older_than(&self, age: Duration) {
        let before = clock::now().saturating_sub(age.as_nanos() as u64);
        for channel in self.channels.iter().filter(|channel| channel.config().policy() != Policy::Overwrite) {
            channel.flush(before);
        }
    }
}

impl PacketSource for LocalRings {
    /// Packets are closed after 500 ms, which is looked at every 100 ms; the rest is time to take them.
    const PACKET_DELAY: Duration = Duration::from_millis(800);

    fn trace(&self) -> &TraceInfo {
        &self.trace
    }

    fn channels(&self) -> Vec<ChannelDescription> {
        self.channels.iter().map(|channel| ChannelDescription::of(channel)).collect()
    }

    fn closes_old_packets(&self) -> bool {
        self.flushes
    }

    fn close_packets(&mut self) {
        self.close_packets_older_than(Duration::ZERO);
    }

    fn take(&mut self, deliver: &mut dyn FnMut(&TakenPacket<'_>)) -> Drained {
        let mut drained = Drained::default();
        for channel in &self.channels {
            // If another process takes the packets, it watches how full the rings are.
            let fullness = if self.leaves_packets { channel.spares_taken() } else { channel.fullness() };
            drained.fullness = drained.fullness.max(fullness);
            drained.unsupplied = drained.unsupplied.or(channel.maintain().err().map(|error| error.kind()));
            if !self.leaves_packets {
                channel.drain(|packet| {
                    drained.packets += 1;
                    drained.bytes += packet.bytes.len() as u64;
                    hand_out(channel, packet, deliver);
                });
            }
        }
        drained
    }

    fn account(&self, events: &[EventDescription]) -> Account {
        let mut account = Account::new(self.trace.uuid, self.trace.name.clone(), self.trace.process.pid);
        for channel in &self.channels {
            accounting::add_channel(&mut account, channel, events);
        }
        account
    }
}

fn hand_out(channel: &OpenChannel, packet: Packet<'_>, deliver: &mut dyn FnMut(&TakenPacket<'_>)) {
    let stream = StreamInfo { id: packet.stream, channel: channel.name().to_owned() };
    deliver(&TakenPacket { stream, packet, first_packet: &|| channel.first_packet(packet.stream) });
}

impl Drain<LocalRings> {
    /// A drain of `channels`, all of the trace `trace`, without sinks as yet.
    pub fn new(trace: TraceInfo, channels: Vec<Arc<OpenChannel>>) -> Self {
        let source = LocalRings { trace, channels, flushes: false, leaves_packets: false };
        let metadata = MetadataText::begin(&source.trace, &source.channels());
        Self::of(source, Vec::new(), metadata.as_str().to_owned())
    }

    /// Leaves the packets in the rings, for a consumer in another process ([`RemoteRings`](super::RemoteRings)). The sinks get none, and
    /// the account is what the channels count. Old packets are closed and spare rings are made all the same.
    #[must_use]
    pub fn leave_packets(mut self) -> Self {
        self.source.leaves_packets = true;
        self
    }

    /// The shortest time for which an event of these channels waits for the drain; `None` if events do not wait.
    pub fn wait_limit(&self) -> Option<Duration> {
        self.source.channels.iter().filter_map(|channel| channel.config().max_wait()).min()
    }

    /// Tells the channels that they are drained regularly, until the answer is dropped.
    pub fn attend(&self) -> Vec<ConsumerGuard> {
        self.source.channels.iter().map(|channel| channel.register_consumer()).collect()
    }

    /// Closes packets that have been open for `age`, whatever their threads do, so that the next round finds them. Those of flight
    /// recorders stay open until the end. Once this was called, sinks rely on it that it is called every 100 ms, with an age of at most
    /// 500 ms.
    pub fn flush(&mut self, age: Duration) {
        self.source.flushes = true;
        self.source.close_packets_older_than(age);
    }

    /// Describes events to the sinks. Called before the events are switched on.
    ///
    /// # Errors
    ///
    /// That of the first sink that cannot take them; those behind it are not asked. A caller that tries again uses the same ids: no event
    /// is described twice to a sink.
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

    /// Moves all that the channels hold, unless packets are left to another process, and lets each sink finish, whatever became of the
    /// others.
    ///
    /// The subscriptions of the channels have ended. If they have not, or if that cannot be known, the account is not complete.
    pub fn finish(self) -> Vec<SinkReport> {
        let Self { source, events, mut sinks, mut progress, .. } = self;
        let mut complete = true;
        for channel in &source.channels {
            let finished = if source.leaves_packets {
                channel.seal()
            } else {
                let mut deliver = |taken: &TakenPacket<'_>| deliver(taken, &mut progress, &mut sinks);
                channel.finish(|packet| hand_out(channel, packet, &mut deliver))
            };
            complete &= finished.is_ok();
        }
        let mut account = source.account(&events);
        account.complete = complete;
        finish(sinks, &progress, &account)
    }
}
