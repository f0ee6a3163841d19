//! The messages of a trace that are no packets: frames of the stream protocol.

use crate::sink::StreamInfo;
use crate::stream::session::Identity;
use crate::stream::streams::Streams;
use tracepoint_reader::net::nats::LONGEST_PIECE;
use tracepoint_reader::net::stream::{
    Announce, Close, ClosedStream, Hello, NO_BOUND, NO_SEQ, Piece, Sync, SyncEntry, ToCollector, VERSION,
};

/// The most streams in one message.
const MOST_ENTRIES: usize = 2048;

fn frame(message: &ToCollector<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    message.encode(&mut payload);
    payload
}

pub(super) fn hello(identity: &Identity, sync_interval: u32, resend_buffer: u64) -> Vec<u8> {
    let Identity { uuid, clock, host, session, process, .. } = identity;
    frame(&ToCollector::Hello(Hello {
        version: VERSION.into(),
        udp: false,
        key: *uuid,
        trace: *uuid,
        clock: *clock,
        nonce: [0; 32],
        sync_interval,
        mtu: 0,
        resend_buffer,
        host,
        session,
        process,
    }))
}

pub(super) fn metadata(from: usize, bytes: &[u8]) -> Vec<u8> {
    frame(&ToCollector::Metadata(Piece { offset: from as u64, bytes }))
}

pub(super) fn announce(identity: &Identity, number: usize, info: &StreamInfo, packet_size: usize) -> Vec<u8> {
    let Identity { host, session, process, .. } = identity;
    frame(&ToCollector::Announce(Announce {
        request: number as u32,
        class: info.id.class,
        instance: info.id.instance,
        packet_size: u32::try_from(packet_size).unwrap_or(u32::MAX),
        names: [host, session, process, &info.channel, &info.file_name()],
    }))
}

/// Promises that all that follows begins at `time` or later.
pub(super) fn sync(number: u64, time: u64, streams: &mut Streams) -> Vec<Vec<u8>> {
    let entries: Vec<_> = streams
        .promise(time)
        .map(|(number, sent)| SyncEntry {
            handle: number as u64,
            last: sent.last.map_or(NO_SEQ, |last| last.sequence),
            time: sent.promised,
        })
        .collect();
    let of = |entries: &[SyncEntry]| {
        frame(&ToCollector::Sync(Sync { number, time, offset: 0, bound: NO_BOUND, entries: entries.to_vec() }))
    };
    entries.chunks(MOST_ENTRIES).map(of).collect()
}

/// The end of all streams; the last message ends the session.
pub(super) fn close(streams: &mut Streams) -> Vec<Vec<u8>> {
    let entries: Vec<_> = (0..streams.count())
        .map(|number| {
            let sent = streams.get(number);
            let last = sent.last.map_or(NO_SEQ, |last| last.sequence);
            ClosedStream { handle: number as u64, last, packets: sent.packets, events_after: sent.events_after }
        })
        .collect();
    let parts = entries.chunks(MOST_ENTRIES).count().max(1);
    let of = |part: usize| {
        let entries = entries.chunks(MOST_ENTRIES).nth(part).unwrap_or_default().to_vec();
        frame(&ToCollector::Close(Close { whole: part + 1 == parts, entries }))
    };
    (0..parts).map(of).collect()
}

/// The account in pieces, with where each begins.
pub(super) fn account(text: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let piece = |(number, bytes): (usize, &[u8])| {
        let offset = number * LONGEST_PIECE;
        let piece = Piece { offset: offset as u64, bytes };
        (offset, frame(&ToCollector::Account(piece, text.len() as u64)))
    };
    text.chunks(LONGEST_PIECE).enumerate().map(piece).collect()
}
