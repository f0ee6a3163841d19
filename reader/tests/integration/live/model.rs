//! A correct relay: packets are delivered some time after they end, and beacons announce how far idle streams are complete.

use super::relay::{Random, attached, bytes_of, opening, stream};
use crate::hand::{PREAMBLE, Packet, stream as stream_block};
use std::collections::VecDeque;
use tracepoint_wire::live::{
    Index, IndexStatus, MetadataBytes, MetadataStatus, NEW_METADATA, NEW_STREAM, NewStreamsStatus, PacketBytes,
    PacketStatus, Request, SessionDetached, Streams,
};

const METADATA: u64 = 100;

/// A packet, and its delivery time.
struct Due {
    at: u64,
    begin: u64,
    end: u64,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct ModelStream {
    /// The time of its announcement.
    appears: u64,
    is_announced: bool,
    waiting: VecDeque<Due>,
    /// The bytes delivered so far.
    file: Vec<u8>,
    has_hung_up: bool,
}

/// A session whose time advances with each request.
pub(super) struct Model {
    random: Random,
    now: u64,
    streams: Vec<ModelStream>,
    metadata: VecDeque<(u64, Vec<u8>)>,
    /// The times of all events, sorted.
    pub(super) times: Vec<u64>,
}

impl Model {
    /// Streams with random packets. The event class of each was added to the metadata just before its first packet.
    pub(super) fn new(random: Random) -> Self {
        let mut model = Self { now: 0, streams: Vec::new(), metadata: VecDeque::new(), times: Vec::new(), random };
        let mut classes = vec![(0, format!("{PREAMBLE}{}", stream_block(0)))];
        for number in 0..2 + model.random.below(5) {
            let appears = if number == 0 { 0 } else { model.random.below(4000) };
            let mut stream = ModelStream { appears, ..ModelStream::default() };
            let (mut time, mut before, mut delivered) = (appears + 500, 0, 0);
            let event = format!(
                "event {{ name = \"p:e{number}\"; id = {number}; stream_id = 0; fields := struct {{ u8 _x; }}; }};\n"
            );
            classes.push((appears + 400, format!("/* CTF 1.8 */\n{event}")));
            for packet in 0..model.random.below(8) {
                let mut records = Vec::new();
                for _ in 0..=model.random.below(20) {
                    time += model.random.below(100);
                    records.push(time);
                }
                model.times.extend(&records);
                let bytes: Vec<_> = records.iter().map(|time| (number as u16, *time, &[1_u8][..])).collect();
                let built = Packet { instance: number, number: packet, before, padding: 8, ..Packet::of(&bytes) };
                delivered = (time + model.random.below(800)).max(delivered);
                before += records.len() as u64;
                stream.waiting.push_back(Due {
                    at: delivered,
                    begin: built.begin,
                    end: built.end,
                    bytes: built.bytes(),
                });
                time += model.random.below(2000);
            }
            model.streams.push(stream);
        }
        classes.sort_by_key(|(at, _)| *at);
        model.metadata = classes.into_iter().map(|(at, text)| (at, text.into_bytes())).collect();
        model.times.sort_unstable();
        model
    }

    pub(super) fn answer(&mut self, request: Request) -> Vec<u8> {
        self.now += self.random.below(60);
        if let Some(reply) = opening(request) {
            return reply;
        }
        bytes_of(|out| match request {
            Request::Attach { .. } => {
                let mut streams = vec![stream(METADATA, true)];
                streams.extend(self.announce());
                out.extend(attached(streams));
            }
            Request::NewStreams { .. } => {
                let streams: Vec<_> = self.announce().collect();
                let is_over = self.streams.iter().all(|stream| stream.has_hung_up);
                let status = match (is_over, streams.is_empty()) {
                    (true, _) => NewStreamsStatus::Hup,
                    (false, true) => NewStreamsStatus::Nothing,
                    (false, false) => NewStreamsStatus::Ok,
                };
                Streams { status, streams }.encode(out);
            }
            Request::Metadata { stream } => {
                assert_eq!(stream, METADATA);
                let now = self.now;
                match self.metadata.take_if(|(at, _)| *at <= now) {
                    Some((_, bytes)) => MetadataBytes { status: MetadataStatus::Ok, bytes: &bytes }.encode(out),
                    None => MetadataBytes::only(MetadataStatus::Nothing).encode(out),
                }
            }
            Request::NextIndex { stream } => self.index(stream as usize).encode(out),
            Request::Packet { stream, offset, length } => {
                let file = &self.streams[stream as usize].file[offset as usize..];
                let length = self.random.below(u64::from(length)) as usize + 1;
                let bytes = &file[..length.min(file.len())];
                PacketBytes { status: PacketStatus::Ok, flags: 0, bytes }.encode(out);
            }
            _ => SessionDetached(true).encode(out),
        })
    }

    fn announce(&mut self) -> impl Iterator<Item = tracepoint_wire::live::StreamRecord> {
        let now = self.now;
        let new =
            self.streams.iter_mut().enumerate().filter(move |(_, model)| !model.is_announced && model.appears <= now);
        new.map(|(id, model)| {
            model.is_announced = true;
            stream(id as u64, false)
        })
    }

    fn index(&mut self, id: usize) -> Index {
        let mut flags = 0;
        if self.metadata.front().is_some_and(|(at, _)| *at <= self.now) {
            flags |= NEW_METADATA;
        }
        if self.streams.iter().any(|stream| !stream.is_announced && stream.appears <= self.now) {
            flags |= NEW_STREAM;
        }
        // A stream that is yet to be announced holds back the beacons of all: it may have older events.
        let unannounced = self.streams.iter().filter(|stream| !stream.is_announced).map(|stream| stream.appears).min();
        let now = self.now;
        let stream = &mut self.streams[id];
        assert!(stream.is_announced && !stream.has_hung_up, "stream {id} is not asked before or after its life");
        if let Some(Due { begin, end, bytes, .. }) = stream.waiting.take_if(|due| due.at <= now) {
            let (offset, packet_bits) = (stream.file.len() as u64, bytes.len() as u64 * 8);
            stream.file.extend(bytes);
            let content_bits = packet_bits - 64;
            return Index {
                offset,
                packet_bits,
                content_bits,
                begin,
                end,
                discarded: 0,
                stream_class: 0,
                status: IndexStatus::Ok,
                flags,
            };
        }
        match stream.waiting.front() {
            None if self.random.below(3) == 0 => {
                stream.has_hung_up = true;
                Index::only(IndexStatus::Hup)
            }
            _ if self.random.below(4) == 0 => Index { flags, ..Index::only(IndexStatus::Retry) },
            next => {
                let known = next.map_or(now, |due| due.begin.min(now)).min(unannounced.unwrap_or(now));
                Index { flags, ..Index::inactive(known, 0) }
            }
        }
    }
}

trait TakeIf<T> {
    fn take_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T>;
}

impl<T> TakeIf<T> for VecDeque<T> {
    fn take_if(&mut self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        if self.front().is_some_and(wanted) { self.pop_front() } else { None }
    }
}
