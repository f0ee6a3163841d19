//! What outlasts a connection: the packets that are not acknowledged, by stream, and the counters of the session.

use crate::stream::alignment::Alignment;
use crate::stream::queue::{Queue, QueuedPacket};
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

/// A packet that was sent at least once.
#[derive(Debug)]
pub(in crate::stream) struct SentPacket {
    /// The number of the packet that was sent before it.
    pub(in crate::stream) prev_seq: u64,
    pub(in crate::stream) packet: QueuedPacket,
}

impl SentPacket {
    pub(super) const fn seq(&self) -> u64 {
        self.packet.header.sequence
    }
}

/// The session, over all its connections.
#[derive(Debug)]
pub(in crate::stream) struct Kept {
    /// Identifies the session.
    pub(super) key: [u8; 16],
    /// The numbers of the last synchronisation point and of the last clock probe.
    pub(super) sync: u64,
    pub(super) probe: u64,
    pub(super) alignment: Alignment,
    /// What a broker has stored.
    #[cfg(feature = "nats")]
    pub(in crate::stream) published: crate::stream::nats::Published,
    streams: BTreeMap<usize, VecDeque<Arc<SentPacket>>>,
    bytes: u64,
}

impl Kept {
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub(in crate::stream) fn new() -> io::Result<Self> {
        let key = random()?;
        Ok(Self {
            key,
            sync: 0,
            probe: 0,
            alignment: Alignment::default(),
            #[cfg(feature = "nats")]
            published: crate::stream::nats::Published::default(),
            streams: BTreeMap::new(),
            bytes: 0,
        })
    }

    /// Bytes of packets that are not acknowledged.
    pub(in crate::stream) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(in crate::stream) fn add(&mut self, stream: usize, packet: Arc<SentPacket>) {
        self.bytes += packet.packet.bytes.len() as u64;
        self.streams.entry(stream).or_default().push_back(packet);
    }

    pub(in crate::stream) fn get(&self, stream: usize, seq: u64) -> Option<Arc<SentPacket>> {
        let packets = self.streams.get(&stream)?;
        let index = packets.binary_search_by_key(&seq, |packet| packet.seq()).ok()?;
        packets.get(index).cloned()
    }

    /// The numbers of the packets of a stream that are kept, within these.
    pub(in crate::stream) fn within(&self, stream: usize, first: u64, last: u64) -> Vec<u64> {
        let packets = self.streams.get(&stream).into_iter().flatten();
        packets.map(|packet| packet.seq()).filter(|seq| (first..=last).contains(seq)).collect()
    }

    /// Everything of a stream below `next` is stored: what the collector has given up was removed.
    pub(in crate::stream) fn acknowledge(&mut self, stream: usize, next: u64, queue: &Queue) {
        let Some(packets) = self.streams.get_mut(&stream) else { return };
        while packets.front().is_some_and(|packet| packet.seq() < next) {
            let Some(packet) = packets.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(packet.packet.bytes.len() as u64);
            queue.acknowledged(&packet.packet);
        }
    }

    /// Nothing is sent any more: what is kept is lost.
    #[cfg(feature = "nats")]
    pub(in crate::stream) fn lose_all(&mut self, queue: &Queue) {
        self.bytes = 0;
        for packet in std::mem::take(&mut self.streams).into_values().flatten() {
            queue.lost(&packet.packet, crate::stream::stats::LostPackets::Network);
        }
    }

    /// The collector has given up these packets of a stream; their events.
    pub(super) fn remove(&mut self, stream: usize, first: u64, last: u64, queue: &Queue) -> u64 {
        let Some(packets) = self.streams.get_mut(&stream) else { return 0 };
        let mut events = 0;
        packets.retain(|packet| {
            let is_kept = !(first..=last).contains(&packet.seq());
            if !is_kept {
                events += packet.packet.events();
                self.bytes = self.bytes.saturating_sub(packet.packet.bytes.len() as u64);
                queue.finished(&packet.packet);
            }
            is_kept
        });
        events
    }
}

/// Random bytes that cannot be guessed.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
