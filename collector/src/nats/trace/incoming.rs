//! Passes the broker's messages to the hub.

use super::{AckPoint, End, PendingMessage, TICK, Trace};
use crate::memory::MemoryShare;
use crate::nats::context::CollectorContext;
use crate::stream_control::StreamControl;
use async_nats::jetstream;
use std::rc::Rc;
use std::time::Instant;
use tokio::time::timeout;
use tracepoint_wire::nats::{Message, Token, TraceSubject, with_handle};
use tracepoint_wire::stream::{
    AnnounceReply, Close, ClosedStream, FRAME_HEADER, FrameHeader, Sync, SyncEntry, ToCollector, ToSender,
};

impl Trace {
    /// Handles a message. Renews the lease while it waits for memory.
    pub(super) async fn message(&mut self, message: jetstream::Message) -> Option<End> {
        let Ok((sequence, pending)) = message.info().map(|info| (info.stream_sequence, info.pending)) else {
            return None;
        };
        (self.heard, self.pending) = (Instant::now(), pending);
        if sequence <= self.received {
            return None;
        }
        let (message, acker) = message.split();
        let size = u32::try_from(message.payload.len()).unwrap_or(u32::MAX);
        let what = if size > self.of.shared.largest {
            self.of
                .say(format!("a message of `{}` has {size} bytes, more than half of the memory (--memory)", self.name));
            self.damaged()
        } else {
            let shared = Rc::clone(&self.of.shared);
            let mut memory = std::pin::pin!(shared.memory(self.session, size));
            let memory = loop {
                match timeout(TICK, &mut memory).await {
                    Ok(memory) => break memory,
                    Err(_) => {
                        if let Some(end) = self.tick().await {
                            return Some(end);
                        }
                    }
                }
            };
            match TraceSubject::parse(&message.subject).map(|(_, token)| token) {
                Some(Token::Hello) => AckPoint::Nothing,
                Some(token) => match Message::decode(&token, &message.payload) {
                    Ok(Message::Packet(route, wire)) => self.packet(route.handle, route.seq, wire, memory),
                    Ok(Message::Frames(frames)) => {
                        drop(memory);
                        let mut what = AckPoint::Nothing;
                        for frame in frames {
                            if matches!(frame, ToCollector::Close(_) | ToCollector::Account(..)) {
                                what = AckPoint::End;
                            }
                            self.frame(frame).await;
                        }
                        what
                    }
                    _ => self.damaged(),
                },
                None => self.damaged(),
            }
        };
        self.received = sequence;
        self.waiting.push_back(PendingMessage { sequence, what, acker });
        None
    }

    fn damaged(&self) -> AckPoint {
        self.of.shared.hub.borrow_mut().counts.damaged += 1;
        AckPoint::Nothing
    }

    fn packet(&mut self, number: u64, seq: u64, wire: &[u8], memory: Option<MemoryShare>) -> AckPoint {
        let Some(handle) = self.handles.get(&number).copied() else {
            self.misses_stream = true;
            return self.damaged();
        };
        let hub = &mut self.of.shared.hub.borrow_mut();
        // Stored packets arrive again after a collector was killed, or if they were published twice.
        if !hub.wants(handle, seq) {
            return AckPoint::Packet { handle, seq };
        }
        if hub.wire_packet(self.session, with_handle(wire, handle), memory, Instant::now()) {
            AckPoint::Packet { handle, seq }
        } else {
            AckPoint::Nothing
        }
    }

    /// Passes a message to the hub, with the hub's handles. An invalid message is ignored.
    pub(super) async fn frame(&mut self, frame: ToCollector<'_>) {
        let frame = match frame {
            ToCollector::Announce(announce) => {
                let number = u64::from(announce.request);
                if let Ok(Some(announced)) = feed(&self.of, &mut self.control, ToCollector::Announce(announce)).await {
                    self.handles.insert(number, announced.handle);
                }
                return;
            }
            ToCollector::Sync(sync) => {
                let entries = sync
                    .entries
                    .iter()
                    .filter_map(|entry| Some(SyncEntry { handle: *self.handles.get(&entry.handle)?, ..*entry }));
                let entries = entries.collect();
                ToCollector::Sync(Sync { entries, ..sync })
            }
            ToCollector::Close(close) => {
                let entries = close
                    .entries
                    .iter()
                    .filter_map(|entry| Some(ClosedStream { handle: *self.handles.get(&entry.handle)?, ..*entry }));
                let entries = entries.collect();
                self.is_closed = true;
                self.misses_stream |= close.entries.iter().any(|entry| !self.handles.contains_key(&entry.handle));
                ToCollector::Close(Close { entries, ..close })
            }
            ToCollector::Account(piece, whole) => {
                self.account.add(&piece, whole);
                return;
            }
            frame @ ToCollector::Metadata(_) => frame,
            _ => {
                self.damaged();
                return;
            }
        };
        if feed(&self.of, &mut self.control, frame).await.is_err() {
            self.damaged();
        }
    }
}

/// Passes a message to the hub. Returns the handle if the message announces a stream.
pub(super) async fn feed(
    of: &CollectorContext,
    control: &mut StreamControl,
    message: ToCollector<'_>,
) -> Result<Option<AnnounceReply>, String> {
    let memory = match &message {
        ToCollector::Metadata(piece) => match control.session() {
            Some(session) => of.shared.memory(session, piece.bytes.len() as u32).await,
            None => None,
        },
        _ => None,
    };
    let random = crate::shared::random().map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    let hub = &mut of.shared.hub.borrow_mut();
    control.message(hub, message, memory, random, Instant::now(), &mut out).map_err(|(_, why)| why)?;
    let header = FrameHeader::decode(&out).and_then(Result::ok);
    let said = header.and_then(|header| ToSender::decode(header.kind, &out[FRAME_HEADER..]).ok());
    Ok(match said {
        Some(ToSender::Announced(announced)) => Some(announced),
        _ => None,
    })
}
