//! What became of the packets that a sender was given.
//!
//! For each stream, given = stored by the peer + lost + underway, in packets and in events. The peer has what it has acknowledged, and nothing else:
//! when nothing more comes of it, what is still underway is lost by the network. A count that would exceed what is underway is cut to it, so
//! that nothing is counted twice, whatever a peer says.

use crate::account::{Account, StreamAccount};
use crate::stream_stats::LostPackets;
use std::collections::{BTreeMap, HashMap};
use tracepoint_ring::channel::StreamId;

/// Packets, and the events in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) packets: u64,
    pub(super) events: u64,
}

impl Count {
    /// One packet.
    pub(super) const fn packet(events: u64) -> Self {
        Self { packets: 1, events }
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.events += other.events;
    }

    const fn min(self, other: Self) -> Self {
        Self {
            packets: if self.packets < other.packets { self.packets } else { other.packets },
            events: if self.events < other.events { self.events } else { other.events },
        }
    }

    /// As many of these packets, with an equal share of the events.
    pub(super) const fn share(self, packets: u64) -> Self {
        if packets >= self.packets {
            return self;
        }
        let events = (self.events as u128 * packets as u128).div_ceil(self.packets as u128);
        Self { packets, events: events as u64 }
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self { packets: self.packets.saturating_sub(other.packets), events: self.events.saturating_sub(other.events) }
    }
}

/// One stream.
#[derive(Clone, Debug, Default)]
struct Delivery {
    given: Count,
    stored: Count,
    lost: BTreeMap<LostPackets, Count>,
}

impl Delivery {
    fn all_lost(&self) -> Count {
        self.lost.values().fold(Count::default(), |mut sum, lost| {
            sum.add(*lost);
            sum
        })
    }

    fn underway(&self) -> Count {
        self.given.without(self.stored).without(self.all_lost())
    }

    fn lose(&mut self, count: Count, reason: LostPackets) {
        let count = count.min(self.underway());
        if count != Count::default() {
            self.lost.entry(reason).or_default().add(count);
        }
    }

    /// Nothing more of it comes to the peer, which has `stored`; the rest that was not lost for another reason is lost by the network.
    fn complete(&mut self, stored: Count) {
        self.lost.remove(&LostPackets::Network);
        self.stored = Count::default();
        self.stored = stored.min(self.underway());
        self.lose(self.underway(), LostPackets::Network);
    }
}

/// All streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries(HashMap<StreamId, Delivery>);

impl Deliveries {
    /// The drain has given a packet.
    pub(super) fn give(&mut self, stream: StreamId, events: u64) {
        self.0.entry(stream).or_default().given.add(Count::packet(events));
    }

    /// The peer has acknowledged packets.
    pub(super) fn store(&mut self, stream: StreamId, count: Count) {
        if let Some(delivery) = self.0.get_mut(&stream) {
            delivery.stored.add(count.min(delivery.underway()));
        }
    }

    /// Packets are lost. Those of the sender itself, which the drain has not given, are not counted.
    pub(super) fn lose(&mut self, stream: StreamId, count: Count, reason: LostPackets) {
        if let Some(delivery) = self.0.get_mut(&stream) {
            delivery.lose(count, reason);
        }
    }

    /// A stream is complete at the peer, which has so many packets of it, and so many events: `None` if it does not count them. Then it has those that it
    /// has acknowledged, and those underway if none of these is missing.
    pub(super) fn complete(&mut self, stream: StreamId, packets: u64, events: Option<u64>) {
        let Some(delivery) = self.0.get_mut(&stream) else { return };
        let (stored, underway) = (delivery.stored, delivery.underway());
        let has_all = packets.saturating_sub(stored.packets) >= underway.packets;
        let events = events.unwrap_or(stored.events + if has_all { underway.events } else { 0 });
        delivery.complete(Count { packets, events });
    }

    /// Nothing more comes of the peer: what is underway is lost. The events.
    pub(super) fn lose_underway(&mut self) -> u64 {
        let mut events = 0;
        for delivery in self.0.values_mut() {
            let underway = delivery.underway();
            events += underway.events;
            delivery.lose(underway, LostPackets::Network);
        }
        events
    }

    /// Events that are neither stored nor lost.
    pub(super) fn underway(&self) -> u64 {
        self.0.values().map(|delivery| delivery.underway().events).sum()
    }

    /// Events of each stream that the peer has.
    pub(super) fn stored(&self) -> impl Iterator<Item = (StreamId, u64)> {
        self.0.iter().map(|(stream, delivery)| (*stream, delivery.stored.events)).filter(|(_, events)| *events > 0)
    }

    /// Events that were lost, by reason.
    pub(super) fn lost(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for (reason, count) in self.0.values().flat_map(|delivery| &delivery.lost).filter(|(_, count)| count.events > 0)
        {
            *all.entry(reason.name()).or_default() += count.events;
        }
        all
    }

    /// Takes what was lost from the packets and events that an account counts as written. It has the losses of `counted` already.
    pub(super) fn add_lost(&self, account: &mut Account, counted: &Self) {
        for channel in &mut account.channels {
            for stream in &mut channel.streams {
                let id = StreamId { class: channel.id as u32, instance: stream.instance };
                let Some(delivery) = self.0.get(&id) else { continue };
                for (reason, lost) in &delivery.lost {
                    let before = counted.0.get(&id).and_then(|delivery| delivery.lost.get(reason)).copied();
                    move_lost(stream, *reason, lost.without(before.unwrap_or_default()));
                }
            }
        }
    }
}

fn move_lost(stream: &mut StreamAccount, reason: LostPackets, lost: Count) {
    stream.packets = stream.packets.saturating_sub(lost.packets);
    stream.sink_packets += lost.packets;
    if lost.events > 0 {
        stream.written = stream.written.saturating_sub(lost.events);
        stream.sink += lost.events;
        *stream.sink_lost.entry(reason.name().to_owned()).or_default() += lost.events;
    }
    if stream.packets <= stream.before.packets {
        stream.file.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: StreamId = StreamId { class: 0, instance: 1 };

    /// Ten packets of three events.
    fn given() -> Deliveries {
        let mut deliveries = Deliveries::default();
        (0..10).for_each(|_| deliveries.give(STREAM, 3));
        deliveries
    }

    fn events(deliveries: &Deliveries) -> (u64, u64, u64) {
        let stored = deliveries.stored().map(|(_, events)| events).sum();
        (stored, deliveries.lost().values().sum(), deliveries.underway())
    }

    #[test]
    fn what_is_not_acknowledged_is_lost_at_the_end() {
        let mut deliveries = given();
        deliveries.store(STREAM, Count { packets: 4, events: 12 });
        deliveries.lose(STREAM, Count::packet(3), LostPackets::Bandwidth);
        assert_eq!(events(&deliveries), (12, 3, 15));
        assert_eq!((deliveries.lose_underway(), events(&deliveries)), (15, (12, 18, 0)));
        // What comes after that changes nothing.
        deliveries.store(STREAM, Count::packet(3));
        deliveries.lose(STREAM, Count::packet(3), LostPackets::Late);
        assert_eq!((deliveries.lose_underway(), events(&deliveries)), (0, (12, 18, 0)));
    }

    #[test]
    fn the_sums_of_the_peer_decide_what_it_has() {
        // Packets came, and their acknowledgements did not; or it has lost what it had acknowledged.
        for (acknowledged, packets, count) in [(0, 8, Some(24)), (9, 2, Some(6)), (0, 0, Some(0)), (3, 99, Some(999))] {
            let mut deliveries = given();
            deliveries.store(STREAM, Count { packets: acknowledged, events: 3 * acknowledged });
            deliveries.lose(STREAM, Count::packet(3), LostPackets::Bandwidth);
            deliveries.complete(STREAM, packets, count);
            let stored = count.unwrap_or_default().min(27);
            assert_eq!(events(&deliveries), (stored, 30 - stored, 0));
        }
    }

    #[test]
    fn a_peer_that_does_not_count_events_has_what_it_acknowledged() {
        for (packets, stored) in [(10, 30), (9, 15), (5, 15)] {
            let mut deliveries = given();
            deliveries.store(STREAM, Count { packets: 5, events: 15 });
            deliveries.complete(STREAM, packets, None);
            assert_eq!(events(&deliveries), (stored, 30 - stored, 0));
        }
    }

    #[test]
    fn an_account_gets_each_loss_once() {
        let mut deliveries = given();
        let mut account = Account::new([0; 16], "", 0);
        let (mut channel, mut stream) = (crate::account::ChannelAccount::default(), StreamAccount::default());
        (stream.instance, stream.recorded, stream.packets, stream.written) = (1, 30, 10, 30);
        "c_1".clone_into(&mut stream.file);
        channel.streams.push(stream);
        account.channels.push(channel);
        deliveries.lose(STREAM, Count::packet(3), LostPackets::Bandwidth);
        deliveries.add_lost(&mut account, &Deliveries::default());
        let counted = deliveries.clone();
        deliveries.complete(STREAM, 4, Some(11));
        deliveries.add_lost(&mut account, &counted);
        let stream = &account.channels[0].streams[0];
        assert_eq!((stream.packets, stream.written, stream.sink, stream.sink_packets), (4, 11, 19, 6));
        assert_eq!((stream.sink_lost["bandwidth"], stream.sink_lost["network"]), (3, 16));
        deliveries.lose_underway();
        deliveries.add_lost(&mut account, &deliveries.clone());
        assert_eq!(account.channels[0].streams[0].file, "c_1");
    }
}
