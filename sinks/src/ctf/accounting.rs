//! Accounting of each stream's written packets, and the accounts of chunks derived from it.

use crate::account::{Account, Chunk, PriorCounts, StreamAccount};
use crate::accounting::{channel_entry, event_entry};
use crate::description::{ChannelDescription, EventDescription};
use crate::trace_info::TraceInfo;
use std::collections::BTreeMap;
use tracepoint_ring::channel::{Packet, PacketHeader, StreamId};

/// A stream: its counters up to the last packet written.
#[derive(Debug, Default)]
struct Line {
    file: String,
    now: PriorCounts,
    /// The counters at the beginning of the chunk.
    before: PriorCounts,
}

impl Line {
    /// Creates the entry of a stream that begins, for this sink, with this packet without records. Earlier records are not part of the output.
    fn joined(first: &Packet<'_>) -> Self {
        let mut before = PriorCounts::default();
        (before.recorded, before.written) = (first.events_before, first.events_before);
        before.discarded = discarded(first);
        Self { file: String::new(), now: before, before }
    }

    /// Returns its entry in the account of the chunk.
    fn account(&self, instance: u64) -> StreamAccount {
        let mut line = StreamAccount::default();
        line.instance = instance;
        line.file.clone_from(&self.file);
        line.recorded = self.now.recorded;
        line.packets = self.now.packets;
        line.written = self.now.written;
        // Records before the last packet that are in no packet of the file did not arrive, or could not be written.
        line.sink = self.now.recorded - self.now.written;
        line.discarded = self.now.discarded;
        line.before = self.before;
        line
    }
}

/// Returns the number of events lost before the ring, from a packet's header.
fn discarded(packet: &Packet<'_>) -> u64 {
    PacketHeader::parse(packet.bytes).discarded
}

/// The content of the current chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Content {
    pub(super) packets: u64,
    pub(super) events: u64,
    pub(super) bytes: u64,
}

/// The accounting of a trace that may be cut into chunks.
#[derive(Debug, Default)]
pub(super) struct ChunkAccounting {
    /// The account of the trace, without streams.
    trace: Option<Account>,
    lines: BTreeMap<(u32, u64), Line>,
    content: Content,
    /// Events recorded before the sink was added.
    missed: u64,
}

impl ChunkAccounting {
    /// Starts with the channels of the trace.
    pub(super) fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) {
        self.trace = Some(Account::new(trace.uuid, trace.name.clone(), trace.process.pid));
        for channel in channels {
            self.add_channel(channel);
        }
    }

    pub(super) fn add_channel(&mut self, channel: &ChannelDescription) {
        self.trace.iter_mut().for_each(|account| account.channels.push(channel_entry(channel)));
    }

    /// Adds events.
    pub(super) fn describe(&mut self, events: &[EventDescription]) {
        for event in events {
            let channels = self.trace.iter_mut().flat_map(|account| &mut account.channels);
            for channel in channels.filter(|channel| channel.id == u64::from(event.class)) {
                channel.events.push(event_entry(event.id.into(), &event.name));
            }
        }
    }

    /// Counts a packet that was written.
    pub(super) fn add(&mut self, id: StreamId, file: &str, packet: &Packet<'_>) {
        let line = self.lines.entry((id.class, id.instance)).or_insert_with(|| {
            self.missed += packet.events_before;
            Line::joined(packet)
        });
        if line.file.is_empty() {
            file.clone_into(&mut line.file);
        }
        let events = packet.events_after - packet.events_before;
        line.now.recorded = packet.events_after;
        line.now.packets += 1;
        line.now.written += events;
        line.now.discarded = discarded(packet);
        self.content.packets += 1;
        self.content.events += events;
        self.content.bytes += packet.bytes.len() as u64;
    }

    /// Returns the content of the current chunk.
    pub(super) const fn content(&self) -> Content {
        self.content
    }

    /// Returns the account of the current chunk, if another chunk follows.
    pub(super) fn account(&self, mut chunk: Chunk) -> Account {
        chunk.removed.events += self.missed;
        let mut account = self.trace.clone().unwrap_or_else(|| Account::new([0; 16], "", 0));
        for channel in &mut account.channels {
            let lines = self.lines.iter().filter(|((class, _), _)| u64::from(*class) == channel.id);
            channel.streams = lines.map(|((_, instance), line)| line.account(*instance)).collect();
        }
        account.complete = true;
        account.chunk = Some(chunk);
        account
    }

    /// Begins another chunk.
    pub(super) fn next_chunk(&mut self) {
        self.content = Content::default();
        for line in self.lines.values_mut() {
            line.before = line.now;
            line.file.clear();
        }
    }

    /// Adds the files of streams to the account of the whole trace and, if the trace is in chunks, the counters at the beginning of the current one.
    pub(super) fn adjust(&self, account: &mut Account, chunk: Option<Chunk>) {
        for channel in &mut account.channels {
            let class = channel.id;
            for stream in &mut channel.streams {
                let line = u32::try_from(class).ok().and_then(|class| self.lines.get(&(class, stream.instance)));
                let Some(line) = line else { continue };
                stream.before = line.before;
                stream.file.clone_from(&line.file);
            }
        }
        if let Some(mut chunk) = chunk {
            chunk.removed.events += self.missed;
            if let Some(part) = &account.chunk {
                (chunk.last, chunk.detached) = (part.last, part.detached);
            }
            account.chunk = Some(chunk);
        }
    }
}
