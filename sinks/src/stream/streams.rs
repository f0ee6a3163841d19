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
    /// No packet begins before this time.
    pub(super) promised: u64,
}

/// All streams of the trace, in the order in which they have appeared.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: Vec<SentStream>,
    numbers: HashMap<StreamId, usize>,
    /// What was promised about streams that have not appeared yet.
    promised: u64,
}

impl Streams {
    /// The number of the stream of a packet.
    pub(super) fn number(&mut self, packet: &QueuedPacket) -> usize {
        let Self { streams, numbers, promised } = self;
        *numbers.entry(packet.stream.id).or_insert_with(|| {
            streams.push(SentStream { info: packet.stream.clone(), last: None, promised: *promised });
            streams.len() - 1
        })
    }

    pub(super) fn get(&mut self, number: usize) -> &mut SentStream {
        &mut self.streams[number]
    }

    /// The time that was promised last.
    pub(super) const fn promised(&self) -> u64 {
        self.promised
    }

    /// Promises that no packet begins before `time`: all streams, with their numbers.
    pub(super) fn promise(&mut self, time: u64) -> impl Iterator<Item = (usize, &SentStream)> {
        self.promised = self.promised.max(time);
        for stream in &mut self.streams {
            stream.promised = stream.promised.max(time);
        }
        self.streams.iter().enumerate()
    }
}
