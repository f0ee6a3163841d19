//! One sink and its books.

use super::progress::Progress;
use super::{SinkId, SinkReport};
use crate::account::Account;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::{Sink, StreamInfo};
use crate::trace_info::TraceInfo;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracepoint_core::channel::{Packet, StreamId};

/// What arrived of one stream.
#[derive(Clone, Debug, Default)]
struct Arrived {
    /// Where it is kept.
    file: String,
    packets: u64,
    records: u64,
    /// Records in packets that the sink did not take.
    lost: u64,
}

pub(crate) struct Feed {
    id: SinkId,
    /// `None` after a panic: what state it is in then, nobody knows.
    sink: Option<Box<dyn Sink>>,
    name: String,
    /// The classes of the channels that the sink was told of.
    channels: BTreeSet<u32>,
    /// The classes and ids of the events that the sink was told of.
    known: BTreeSet<(u32, u16)>,
    /// How far the streams were when the sink was added.
    joined: Progress,
    streams: HashMap<StreamId, Arrived>,
    bytes: u64,
    refused: u64,
    error: Option<SinkError>,
    /// Whether nothing more can come: what was recorded and did not arrive is lost here.
    is_over: bool,
}

impl Feed {
    /// A sink that joins the streams where they are.
    pub(crate) fn new(id: SinkId, sink: Box<dyn Sink>, joined: Progress) -> Self {
        let name = sink.name();
        Self {
            id,
            sink: Some(sink),
            name,
            channels: BTreeSet::new(),
            known: BTreeSet::new(),
            joined,
            streams: HashMap::new(),
            bytes: 0,
            refused: 0,
            error: None,
            is_over: false,
        }
    }

    pub(crate) const fn id(&self) -> SinkId {
        self.id
    }

    /// Calls the sink; one that panics is not called again.
    pub(crate) fn call<R>(&mut self, act: impl FnOnce(&mut dyn Sink) -> Result<R, SinkError>) -> Result<R, SinkError> {
        let panicked = |name: &str| SinkError::new(format!("use {name}"), io::Error::other("it panicked"));
        let Some(mut sink) = self.sink.take() else { return Err(panicked(&self.name)) };
        let result = catch_unwind(AssertUnwindSafe(|| act(sink.as_mut()))).map_err(|_| panicked(&self.name))?;
        self.sink = Some(sink);
        result
    }

    /// Tells the sink that the trace begins.
    pub(crate) fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        self.call(|sink| sink.begin(trace, channels))?;
        self.channels.extend(channels.iter().map(|channel| channel.class));
        Ok(())
    }

    /// Tells the sink of another channel, unless it knows it.
    pub(crate) fn add_channel(&mut self, trace: &TraceInfo, channel: &ChannelDescription) -> Result<(), SinkError> {
        if !self.channels.contains(&channel.class) {
            self.call(|sink| sink.add_channel(trace, channel))?;
            self.channels.insert(channel.class);
        }
        Ok(())
    }

    /// Tells the sink of those of the events that it does not know, of channels that it knows.
    pub(crate) fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        let id = |event: &EventDescription| (event.class, event.id);
        let is_new =
            |event: &&EventDescription| !self.known.contains(&id(event)) && self.channels.contains(&event.class);
        let new: Vec<_> = events.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            self.call(|sink| sink.describe(&new))?;
            self.known.extend(new.iter().map(id));
        }
        Ok(())
    }

    /// Gives the sink a packet, and before the first of a stream the empty one with which the stream begins: `first` makes it.
    pub(crate) fn take(&mut self, first: &dyn Fn() -> Vec<u8>, stream: &StreamInfo, packet: &Packet<'_>) {
        let begun = self.streams.get(&stream.id).is_some_and(|arrived| arrived.packets > 0);
        // A stream does not begin in its middle: without its first packet the reader could not tell what is missing.
        let first = if begun { Ok(()) } else { self.begin_stream(first, stream) };
        if let Err(error) = first.and_then(|()| self.give(stream, packet)) {
            self.refuse(stream, packet, error);
        }
        self.rotate_if_due();
    }

    /// Counts a packet that the sink does not get.
    pub(crate) fn refuse(&mut self, stream: &StreamInfo, packet: &Packet<'_>, error: SinkError) {
        self.streams.entry(stream.id).or_default().lost += packet.events_after - packet.events_before;
        self.refused += 1;
        self.error.get_or_insert(error);
    }

    /// Nothing more comes.
    pub(crate) fn is_over(&mut self) {
        self.is_over = true;
    }

    /// Bytes that the sink took.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Has the sink go on in another place if it is time to. Where it cannot, it goes on where it is.
    pub(crate) fn rotate_if_due(&mut self) {
        let rotate = |sink: &mut dyn Sink| if sink.rotation_is_due() { sink.rotate().map(drop) } else { Ok(()) };
        if self.sink.is_none() {
            return;
        }
        if let Err(error) = self.call(rotate) {
            self.error.get_or_insert(error);
        }
    }

    /// Tells the sink that all rings were looked at. Where it panics it gets no more packets, which is counted.
    pub(crate) fn look_ended(&mut self) {
        let _ = self.call(|sink| {
            sink.look_ended();
            Ok(())
        });
    }

    fn begin_stream(&mut self, first: &dyn Fn() -> Vec<u8>, stream: &StreamInfo) -> Result<(), SinkError> {
        let (bytes, records) = self.joined.joining_packet(stream.id).unwrap_or_else(|| (first(), 0));
        self.give_empty(stream, &bytes, records)?;
        let file = self.call(|sink| Ok(sink.file_of(stream)))?;
        self.streams.entry(stream.id).or_default().file = file;
        Ok(())
    }

    fn give_empty(&mut self, stream: &StreamInfo, bytes: &[u8], records: u64) -> Result<(), SinkError> {
        self.give(stream, &Packet { stream: stream.id, bytes, events_before: records, events_after: records })
    }

    fn give(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        self.call(|sink| sink.packet(stream, packet))?;
        let arrived = self.streams.entry(stream.id).or_default();
        arrived.packets += 1;
        arrived.records += packet.events_after - packet.events_before;
        self.bytes += packet.bytes.len() as u64;
        Ok(())
    }

    /// Whether the sink keeps the account while the trace goes on.
    pub(crate) fn wants_checkpoints(&mut self) -> bool {
        self.call(|sink| Ok(sink.wants_checkpoints())).unwrap_or(false)
    }

    /// Gives the sink the account so far.
    pub(crate) fn checkpoint(&mut self, progress: &Progress, base: Account) {
        let account = self.report(progress, base).account;
        if let Err(error) = self.call(|sink| sink.checkpoint(&account)) {
            self.error.get_or_insert(error);
        }
    }

    /// Lets the sink finish. The error of the report is the first one of all.
    pub(crate) fn finish(mut self, progress: &Progress, base: Account) -> SinkReport {
        let account = self.report(progress, base.clone()).account;
        let finished = self.call(|sink| sink.finish(&account));
        // What it lost while it finished is known now.
        let mut report = self.report(progress, base);
        report.error = self.error.or(finished.err());
        report
    }

    /// Lets the sink finish with the account of its part of the trace, which goes on without it. Each stream ends with an empty packet that
    /// has the counts up to here, as it does where the trace ends.
    pub(crate) fn detach(mut self, progress: &Progress, mut base: Account) -> SinkReport {
        progress.cut(&mut base);
        for channel in &base.channels {
            for line in &channel.streams {
                let id = StreamId { class: channel.id as u32, instance: line.instance };
                let begun = self.streams.get(&id).is_some_and(|arrived| arrived.packets > 0);
                let Some((bytes, records)) = progress.leaving_packet(id).filter(|_| begun) else { continue };
                let stream = StreamInfo { id, channel: channel.name.clone() };
                if let Err(error) = self.give_empty(&stream, &bytes, records) {
                    self.error.get_or_insert(error);
                }
            }
        }
        let mut chunk = self.joined.chunk_from_here().unwrap_or_default();
        (chunk.number, chunk.last, chunk.detached) = (chunk.number.max(1), false, true);
        base.chunk = Some(chunk);
        self.finish(progress, base)
    }

    /// What the sink lost of a stream after it had taken it. One that panics is found out by the next call.
    fn lost_since(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        let lost = self.sink.as_ref().map(|sink| catch_unwind(AssertUnwindSafe(|| sink.lost(stream))));
        lost.and_then(Result::ok).unwrap_or_default()
    }

    pub(crate) fn report(&self, progress: &Progress, base: Account) -> SinkReport {
        let mut account = base;
        // A channel that was removed before the sink was added is no part of its trace.
        if !self.channels.is_empty() {
            account.channels.retain(|channel| self.channels.contains(&(channel.id as u32)));
        }
        if account.chunk.is_none() {
            account.chunk = self.joined.chunk_from_here();
        }
        for entry in &mut account.channels {
            // What a channel has as its id has 32 bits.
            let class = entry.id as u32;
            for line in &mut entry.streams {
                let id = StreamId { class, instance: line.instance };
                line.before = self.joined.before(id);
                line.overwritten = progress.overwritten(id) - self.joined.overwritten(id);
                line.written = line.before.written;
                let Some(arrived) = self.streams.get(&id) else { continue };
                line.file.clone_from(&arrived.file);
                line.packets = arrived.packets;
                let lost = self.lost_since(id);
                let lost_later: u64 = lost.values().sum();
                line.written += arrived.records.saturating_sub(lost_later);
                line.sink =
                    if self.is_over { line.recorded.saturating_sub(line.written) } else { arrived.lost + lost_later };
                line.sink_lost = lost.into_iter().map(|(reason, events)| (reason.to_owned(), events)).collect();
            }
        }
        if let Some(sink) = &self.sink {
            // As in `lost_since`.
            let _ = catch_unwind(AssertUnwindSafe(|| sink.settle(&mut account)));
        }
        SinkReport {
            id: self.id,
            name: self.name.clone(),
            bytes: self.bytes,
            packets: self.streams.values().map(|arrived| arrived.packets).sum(),
            refused: self.refused,
            account,
            error: self.error.clone(),
        }
    }
}
