//! The streams that a sender has seen, and the promises about them.

use super::queue::QueuedPacket;
use crate::sink::StreamInfo;
use std::collections::HashMap;
use tracepoint_ring::channel::{PacketHeader, StreamId};

/// State of a stream over all connections.
#[derive(Clone, Debug)]
pub(super) struct SentStream {
    pub(super) info: StreamInfo,
    /// The header of the last packet sent.
    pub(super) last: Option<PacketHeader>,
    /// The number of the last packet sent on an earlier connection.
    pub(super) last_before: Option<u64>,
    /// Number of packets without repetitions, and of records in the stream up to the end of the last one.
    pub(super) packets: u64,
    pub(super) events_after: u64,
    /// No later packet begins before this time.
    pub(super) promised: u64,
}

/// All streams of the trace, in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Streams {
    sent: Vec<SentStream>,
    numbers: HashMap<StreamId, usize>,
    /// The promised time for streams that have not appeared yet.
    promised: u64,
}

impl Streams {
    /// Returns the number of a packet's stream.
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

    /// Returns the last promised time.
    pub(super) const fn promised(&self) -> u64 {
        self.promised
    }

    /// Promises that no later packet begins before `time`. Returns all streams with their numbers.
    pub(super) fn promise(&mut self, time: u64) -> impl Iterator<Item = (usize, &SentStream)> {
        self.promised = self.promised.max(time);
        for stream in &mut self.sent {
            stream.promised = stream.promised.max(time);
        }
        self.sent.iter().enumerate()
    }
}
