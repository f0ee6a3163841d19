//! Counts the outcome of each packet that the drain gave to a sender.
//!
//! For each stream, given = stored by the peer + lost + underway, in packets and in events. The peer has only the packets that it has acknowledged:
//! when nothing more of a stream arrives there, packets still underway count as lost by the network. A count that would exceed the packets underway
//! is reduced to them, so that no packet is counted twice, whatever a peer reports.

use crate::account::{Account, StreamAccount};
use crate::stream_stats::LostPackets;
use std::collections::{BTreeMap, HashMap};
use tracepoint_ring::channel::StreamId;

/// A number of packets, and of events in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) packets: u64,
    pub(super) events: u64,
}

impl Count {
    /// Returns the count of one packet.
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

    /// Returns the count of `packets` of these packets, with a proportional number of events.
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

/// Counts of one stream.
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

    /// Completes a stream at the peer, which has `stored`. All other packets that were not lost for another reason are lost by the network.
    fn complete(&mut self, stored: Count) {
        self.lost.remove(&LostPackets::Network);
        self.stored = Count::default();
        self.stored = stored.min(self.underway());
        self.lose(self.underway(), LostPackets::Network);
    }
}

/// Counts of all streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries(HashMap<StreamId, Delivery>);

impl Deliveries {
    /// Counts a packet given by the drain.
    pub(super) fn give(&mut self, stream: StreamId, events: u64) {
        self.0.entry(stream).or_default().given.add(Count::packet(events));
    }

    /// Counts packets acknowledged by the peer.
    pub(super) fn store(&mut self, stream: StreamId, count: Count) {
        if let Some(delivery) = self.0.get_mut(&stream) {
            delivery.stored.add(count.min(delivery.underway()));
        }
    }

    /// Counts lost packets. Packets that the sender created itself are ignored.
    pub(super) fn lose(&mut self, stream: StreamId, count: Count, reason: LostPackets) {
        if let Some(delivery) = self.0.get_mut(&stream) {
            delivery.lose(count, reason);
        }
    }

    /// Completes a stream. The peer has `packets` of its packets, and `events` events; `None` if the peer does not count events: then it has those
    /// that it acknowledged, and those underway if no packet is missing.
    pub(super) fn complete(&mut self, stream: StreamId, packets: u64, events: Option<u64>) {
        let Some(delivery) = self.0.get_mut(&stream) else { return };
        let (stored, underway) = (delivery.stored, delivery.underway());
        let has_all = packets.saturating_sub(stored.packets) >= underway.packets;
        let events = events.unwrap_or(stored.events + if has_all { underway.events } else { 0 });
        delivery.complete(Count { packets, events });
    }

    /// Counts everything underway as lost, when nothing more reaches the peer. Returns the number of events.
    pub(super) fn lose_underway(&mut self) -> u64 {
        let mut events = 0;
        for delivery in self.0.values_mut() {
            let underway = delivery.underway();
            events += underway.events;
            delivery.lose(underway, LostPackets::Network);
        }
        events
    }

    /// Returns the number of events that are neither stored nor lost.
    pub(super) fn underway(&self) -> u64 {
        self.0.values().map(|delivery| delivery.underway().events).sum()
    }

    /// Returns the number of events that the peer has, by stream.
    pub(super) fn stored(&self) -> impl Iterator<Item = (StreamId, u64)> {
        self.0.iter().map(|(stream, delivery)| (*stream, delivery.stored.events)).filter(|(_, events)| *events > 0)
    }

    /// Returns the number of lost events, by reason.
    pub(super) fn lost(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for (reason, count) in self.0.values().flat_map(|delivery| &delivery.lost).filter(|(_, count)| count.events > 0)
        {
            *all.entry(reason.name()).or_default() += count.events;
        }
        all
    }

    /// Moves losses from an account's written packets and events to its lost ones. The account contains the losses of `counted` already.
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
        // Later calls have no effect.
        deliveries.store(STREAM, Count::packet(3));
        deliveries.lose(STREAM, Count::packet(3), LostPackets::Late);
        assert_eq!((deliveries.lose_underway(), events(&deliveries)), (0, (12, 18, 0)));
    }

    #[test]
    fn the_sums_of_the_peer_decide_what_it_has() {
        // Packets arrived without acknowledgement; or the peer has lost packets that it had acknowledged.
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
