//! The published messages of a trace as in `docs/nats.md`, with their subjects and ids.

use super::{LONGEST_PIECE, Token, TraceSubject, message_id};
use crate::stream::{
    Announce, Close, ClosedStream, Hello, NO_BOUND, Piece, ROUTE_OFFSET, Route, Sync, SyncEntry, ToCollector, VERSION,
    WIRE_HEAD, wire_head,
};

/// Maximum number of streams in one message.
const MAX_ENTRIES: usize = 2048;

/// A message to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Publish {
    /// The subject it is published under.
    pub subject: String,
    /// Its id: the broker stores each id once.
    pub id: String,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// A published trace; the publisher is its sender, or a collector that received it from the sender.
#[derive(Clone, Debug)]
pub struct Publication {
    subject: TraceSubject,
    uuid: [u8; 16],
    hello: Vec<u8>,
}

fn frame(message: &ToCollector<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    message.encode(&mut payload);
    payload
}

impl Publication {
    /// The publication of the trace that begins with this message. Everything about its connection is left out.
    pub fn new(hello: &Hello<'_>) -> Self {
        let uuid = hello.trace;
        let hello = Hello { version: VERSION.into(), udp: false, key: uuid, nonce: [0; 32], mtu: 0, ..hello.clone() };
        Self {
            subject: TraceSubject::new(hello.host, hello.session, hello.process, uuid),
            uuid,
            hello: frame(&ToCollector::Hello(hello)),
        }
    }

    fn message(&self, token: &Token, id: &str, payload: Vec<u8>) -> Publish {
        Publish { subject: self.subject.subject(token), id: message_id(self.uuid, id), payload }
    }

    /// The beginning of the trace.
    pub fn hello(&self) -> Publish {
        self.message(&Token::Hello, "hello", self.hello.clone())
    }

    /// A piece of the metadata, of at most [`LONGEST_PIECE`] bytes.
    pub fn metadata(&self, piece: Piece<'_>) -> Publish {
        let id = format!("metadata.{}.{}", piece.offset, piece.offset + piece.bytes.len() as u64);
        self.message(&Token::Control, &id, frame(&ToCollector::Metadata(piece)))
    }

    /// Announces a stream; its packets refer to it by number.
    pub fn announce(&self, announce: Announce<'_>) -> Publish {
        let id = format!("announce.{}.{}", announce.class, announce.instance);
        self.message(&Token::Control, &id, frame(&ToCollector::Announce(announce)))
    }

    /// A packet of the stream with this class, instance and name.
    pub fn packet(&self, (class, instance): (u32, u64), name: &str, route: Route, packet: &[u8]) -> Publish {
        // Every packet has a header.
        let head = wire_head(packet, route).unwrap_or([0; WIRE_HEAD]);
        let payload = [&head[..], packet.get(ROUTE_OFFSET..).unwrap_or_default()].concat();
        let id = format!("{class}.{instance}.{}", route.seq);
        self.message(&Token::Stream(name.to_owned()), &id, payload)
    }

    /// The synchronisation point with this number: every packet after those of the entries begins at their times or later.
    pub fn sync(&self, number: u64, time: u64, entries: &[SyncEntry]) -> Vec<Publish> {
        let of = |(part, entries): (usize, &[SyncEntry])| {
            let sync = Sync { number, time, offset: 0, bound: NO_BOUND, entries: entries.to_vec() };
            self.message(&Token::Sync, &format!("sync.{number}.{part}"), frame(&ToCollector::Sync(sync)))
        };
        entries.chunks(MAX_ENTRIES).enumerate().map(of).collect()
    }

    /// The end of all streams.
    pub fn close(&self, entries: &[ClosedStream]) -> Vec<Publish> {
        let parts = entries.chunks(MAX_ENTRIES).count().max(1);
        let of = |part: usize| {
            let entries = entries.chunks(MAX_ENTRIES).nth(part).unwrap_or_default().to_vec();
            let close = Close { whole: part + 1 == parts, entries };
            self.message(&Token::Control, &format!("close.{part}"), frame(&ToCollector::Close(close)))
        };
        (0..parts).map(of).collect()
    }

    /// The account, which ends the trace.
    pub fn account(&self, text: &[u8]) -> Vec<Publish> {
        let piece = |(number, bytes): (usize, &[u8])| {
            let offset = number * LONGEST_PIECE;
            let piece = Piece { offset: offset as u64, bytes };
            let payload = frame(&ToCollector::Account(piece, text.len() as u64));
            self.message(&Token::Control, &format!("account.{offset}"), payload)
        };
        text.chunks(LONGEST_PIECE).enumerate().map(piece).collect()
    }
}
