//! The streams that a sender has seen, and what was promised about them.

use super::queue::QueuedPacket;
use crate::sink::StreamInfo;
use std::collections::HashMap;
use tracepoint_ring::channel::{PacketHeader, StreamId};

/// What was sent of a stream, over all connections.
#[derive(Clone, Debug)]
pub(super) struct SentStream {
    pub(super) info: StreamInfo,
    /// The header of the last packet that was sent.
    pub(super) last: Option<PacketHeader>,
    /// The number of the last packet that was sent on an earlier connection.
    pub(super) last_before: Option<u64>,
    /// Packets without repetitions, and the records of the stream up to the end of the last one.
    pub(super) packets: u64,
    pub(super) events_after: u64,
    /// No packet begins before this time.
    pub(super) promised: u64,
}

/// All streams of the trace, in the order in which they have appeared.
#[derive(Debug, Default)]
pub(super) struct Streams {
    sent: Vec<SentStream>,
    numbers: HashMap<StreamId, usize>,
    /// What was promised about streams that have not appeared yet.
    promised: u64,
}

impl Streams {
    /// The number of the stream of a packet.
    pub(super) fn number(&mut self, packet: &QueuedPacket) -> usize {
        let Self { sent, numbers, promised } = self;
        *numbers.entry(packet.stream.id).or_insert_with(|| {
            let (info, promised) = (packet.stream.clone(), *promised);
            sent.push(SentStream { info, last: None, last_before: None, packets: 0, events_after: 0, promised });
            sent.len() - 1
        })
    }

    pub(super) const fn count(&self) -> usize {
        self.sent.len()
    }

    pub(super) fn get(&mut self, number: usize) -> &mut SentStream {
        &mut self.sent[number]
    }

    /// The time that was promised last.
    pub(super) const fn promised(&self) -> u64 {
        self.promised
    }

    /// Promises that no packet begins before `time`: all streams, with their numbers.
    pub(super) fn promise(&mut self, time: u64) -> impl Iterator<Item = (usize, &SentStream)> {
        self.promised = self.promised.max(time);
        for stream in &mut self.sent {
            stream.promised = stream.promised.max(time);
        }
        self.sent.iter().enumerate()
    }
}
