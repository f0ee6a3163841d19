//! One sink and its books.

use super::SinkReport;
use super::books::Positions;
use crate::account::Account;
use crate::description::EventDescription;
use crate::error::SinkError;
use crate::sink::{Sink, StreamInfo};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tracepoint::channel::{OpenChannel, Packet, StreamId};

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

pub(super) struct Feed {
    /// `None` after a panic: what state it is in then, nobody knows.
    sink: Option<Box<dyn Sink>>,
    name: String,
    /// The classes and ids of the events that the sink was told of.
    known: BTreeSet<(u32, u16)>,
    streams: HashMap<StreamId, Arrived>,
    bytes: u64,
    refused: u64,
    error: Option<SinkError>,
}

impl Feed {
    pub(super) fn new(sink: Box<dyn Sink>) -> Self {
        let name = sink.name();
        Self {
            sink: Some(sink),
            name,
            known: BTreeSet::new(),
            streams: HashMap::new(),
            bytes: 0,
            refused: 0,
            error: None,
        }
    }

    /// Calls the sink; one that panics is not called again.
    pub(super) fn call<R>(&mut self, act: impl FnOnce(&mut dyn Sink) -> Result<R, SinkError>) -> Result<R, SinkError> {
        let panicked = |name: &str| SinkError::new(format!("use {name}"), io::Error::other("it panicked"));
        let Some(mut sink) = self.sink.take() else { return Err(panicked(&self.name)) };
        let result = catch_unwind(AssertUnwindSafe(|| act(sink.as_mut()))).map_err(|_| panicked(&self.name))?;
        self.sink = Some(sink);
        result
    }

    /// Tells the sink of those of the events that it does not know.
    pub(super) fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        let id = |event: &EventDescription| (event.class, event.id);
        let new: Vec<_> = events.iter().filter(|event| !self.known.contains(&id(event))).cloned().collect();
        if !new.is_empty() {
            self.call(|sink| sink.describe(&new))?;
            self.known.extend(new.iter().map(id));
        }
        Ok(())
    }

    /// Gives the sink a packet, and before the first of a stream the empty one with which the stream begins.
    pub(super) fn take(&mut self, channel: &OpenChannel, stream: &StreamInfo, packet: &Packet<'_>) {
        let begun = self.streams.get(&stream.id).is_some_and(|arrived| arrived.packets > 0);
        // A stream does not begin in its middle: without its first packet the reader could not tell what is missing.
        let first = if begun { Ok(()) } else { self.begin_stream(channel, stream) };
        if let Err(error) = first.and_then(|()| self.give(stream, packet)) {
            self.streams.entry(stream.id).or_default().lost += packet.events_after - packet.events_before;
            self.refused += 1;
            self.error.get_or_insert(error);
        }
        self.rotate_if_due();
    }

    /// Has the sink go on in another place if it is time to. Where it cannot, it goes on where it is.
    pub(super) fn rotate_if_due(&mut self) {
        let rotate = |sink: &mut dyn Sink| if sink.rotation_is_due() { sink.rotate().map(drop) } else { Ok(()) };
        if self.sink.is_none() {
            return;
        }
        if let Err(error) = self.call(rotate) {
            self.error.get_or_insert(error);
        }
    }

    fn begin_stream(&mut self, channel: &OpenChannel, stream: &StreamInfo) -> Result<(), SinkError> {
        let bytes = channel.first_packet(stream.id);
        self.give(stream, &Packet { stream: stream.id, bytes: &bytes, events_before: 0, events_after: 0 })?;
        let file = self.call(|sink| Ok(sink.file_of(stream)))?;
        self.streams.entry(stream.id).or_default().file = file;
        Ok(())
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
    pub(super) fn wants_checkpoints(&mut self) -> bool {
        self.call(|sink| Ok(sink.wants_checkpoints())).unwrap_or(false)
    }

    /// Gives the sink the account so far.
    pub(super) fn checkpoint(&mut self, channels: &[Arc<OpenChannel>], positions: &Positions, base: Account) {
        let account = self.report(channels, positions, base).account;
        if let Err(error) = self.call(|sink| sink.checkpoint(&account)) {
            self.error.get_or_insert(error);
        }
    }

    /// Lets the sink finish. The error of the report is the first one of all.
    pub(super) fn finish(mut self, channels: &[Arc<OpenChannel>], positions: &Positions, base: Account) -> SinkReport {
        let account = self.report(channels, positions, base.clone()).account;
        let finished = self.call(|sink| sink.finish(&account));
        // What it lost while it finished is known now.
        let mut report = self.report(channels, positions, base);
        report.error = self.error.or(finished.err());
        report
    }

    /// What the sink lost of a stream after it had taken it. One that panics is found out by the next call.
    fn lost_since(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        let lost = self.sink.as_ref().map(|sink| catch_unwind(AssertUnwindSafe(|| sink.lost(stream))));
        lost.and_then(Result::ok).unwrap_or_default()
    }

    pub(super) fn report(&self, channels: &[Arc<OpenChannel>], positions: &Positions, base: Account) -> SinkReport {
        let mut account = base;
        for (entry, channel) in account.channels.iter_mut().zip(channels) {
            for line in &mut entry.streams {
                let id = StreamId { class: channel.class(), instance: line.instance };
                line.overwritten = positions.overwritten(id);
                let Some(arrived) = self.streams.get(&id) else { continue };
                line.file.clone_from(&arrived.file);
                line.packets = arrived.packets;
                let lost = self.lost_since(id);
                let lost_later: u64 = lost.values().sum();
                line.written = arrived.records.saturating_sub(lost_later);
                line.sink = arrived.lost + lost_later;
                line.sink_lost = lost.into_iter().map(|(reason, events)| (reason.to_owned(), events)).collect();
            }
        }
        if let Some(sink) = &self.sink {
            // As in `lost_since`.
            let _ = catch_unwind(AssertUnwindSafe(|| sink.settle(&mut account)));
        }
        SinkReport {
            name: self.name.clone(),
            bytes: self.bytes,
            packets: self.streams.values().map(|arrived| arrived.packets).sum(),
            refused: self.refused,
            account,
            error: self.error.clone(),
        }
    }
}
