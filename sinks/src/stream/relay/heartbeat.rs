//! The stream without events, by which LTTng viewers find new streams.

use crate::sink::StreamInfo;
use crate::stream::queue::QueuedPacket;
use crate::stream::streams::Streams;
use tracepoint_reader::internal::sealed;
use tracepoint_ring::channel::{PacketHeader, StreamId, StreamKey};

/// Its instance in its stream class, and its channel name.
const INSTANCE: u64 = u32::MAX as u64 - 1;
const CHANNEL: &str = "heartbeat";

/// The heartbeat of a session.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    /// Identifies its stream; `None` before its first packet.
    key: Option<StreamKey>,
    /// The number of its next packet, and the end of the previous one.
    next: u64,
    end: u64,
    /// Set if streams were added since its last packet.
    is_due: bool,
}

impl Heartbeat {
    /// Records that a stream was added to the session.
    pub(super) fn added(&mut self, stream: &StreamInfo) {
        self.is_due |= stream.id.instance != INSTANCE;
    }

    /// Returns its first packet, to be sent before `first`, the session's first packet; `None` if it has begun.
    pub(super) fn begin(&mut self, first: &PacketHeader, streams: &Streams) -> Option<QueuedPacket> {
        if self.key.is_some() {
            return None;
        }
        self.key = Some(StreamKey { instance: INSTANCE, ..first.stream });
        self.packet(first.begin.max(streams.promised()))
    }

    /// Returns whether streams were added since the last packet.
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns the packet to send before a synchronisation point; `None` if no streams were added.
    pub(super) fn before_sync(&mut self, streams: &Streams) -> Option<QueuedPacket> {
        // At the last promised time: new streams may begin there.
        if std::mem::take(&mut self.is_due) { self.packet(streams.promised()) } else { None }
    }

    fn packet(&mut self, time: u64) -> Option<QueuedPacket> {
        let key = self.key?;
        self.end = self.end.max(time);
        let header = PacketHeader { sequence: self.next, ..PacketHeader::empty(key, self.end) };
        self.next += 1;
        let id = StreamId { class: key.class, instance: INSTANCE };
        let stream = StreamInfo { id, channel: CHANNEL.to_owned() };
        let bytes = sealed(header.bytes()).to_vec();
        Some(QueuedPacket { stream, header, bytes, events_before: 0, events_after: 0, queued: 0 })
    }
}
