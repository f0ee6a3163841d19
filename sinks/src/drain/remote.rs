//! The rings of another process, read from its ring files. Channels and events are described by the metadata that the process wrote.

mod from_metadata;

use super::attached::AttachedSink;
use super::report::SinkReport;
use super::source::{DrainRound, PacketSource, TakenPacket};
use super::{Drain, deliver, finish};
use crate::account::Account;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::StreamInfo;
use crate::trace_info::TraceInfo;
use fileguard::CheckedFd;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::ReadError;
use tracepoint_reader::internal::{self, RemoteConsumer};
use tracepoint_ring::channel::{Packet, StreamId};

/// The rings of another process.
#[derive(Debug)]
pub struct RemoteRings {
    consumer: RemoteConsumer,
    trace: TraceInfo,
    /// The time before which the process had closed all packets when the rings were last checked; `None` if it does not report that.
    flushed: Option<u64>,
}

impl PacketSource for RemoteRings {
    /// The other process closes its packets, and may be late. If it is stopped, or in the middle of an event when its packet is to be closed, it is
    /// even later.
    const PACKET_DELAY: Duration = Duration::from_secs(2);

    fn flushed(&self) -> Option<u64> {
        self.flushed
    }

    /// The other process closes its packets, at the age in its session's description.
    fn limit_flush_age(&mut self, _: Duration) {}

    fn trace(&self) -> &TraceInfo {
        &self.trace
    }

    fn channels(&self) -> Vec<ChannelDescription> {
        from_metadata::channels(&self.consumer.channels())
    }

    fn closes_old_packets(&self) -> bool {
        true
    }

    fn close_packets(&mut self) {}

    fn take(&mut self, deliver: Option<&mut dyn FnMut(&TakenPacket<'_>)>) -> DrainRound {
        let Some(deliver) = deliver else { return DrainRound::default() };
        let round = self.consumer.take(|packet| hand_out(&packet, deliver));
        DrainRound { packets: round.packets, bytes: round.bytes, ..DrainRound::default() }
    }

    fn account(&self, _: &[EventDescription]) -> Account {
        self.consumer.account()
    }
}

fn hand_out(taken: &internal::TakenPacket<'_>, deliver: &mut dyn FnMut(&TakenPacket<'_>)) {
    let id = StreamId { class: taken.class, instance: taken.instance };
    let (events_before, events_after) = (taken.events_before, taken.events_after);
    deliver(&TakenPacket {
        stream: StreamInfo { id, channel: taken.channel.to_owned() },
        packet: Packet { stream: id, bytes: taken.bytes, events_before, events_after },
        first_packet: &|| taken.first_packet(),
    });
}

/// A round consists of [`look`](Self::look), [`describe`](Self::describe) if the metadata has changed, and [`drain`](Self::drain). A ring of each
/// channel is added before the first sink.
impl Drain<RemoteRings> {
    /// Creates a drain of the rings of `consumer`, without sinks.
    ///
    /// # Errors
    ///
    /// If the metadata is not text.
    pub fn remote(consumer: RemoteConsumer) -> Result<Self, SinkError> {
        let metadata = String::from_utf8(consumer.text().to_vec()).map_err(|error| {
            SinkError::new("read the metadata of the process", io::Error::new(io::ErrorKind::InvalidData, error))
        })?;
        let trace = from_metadata::trace(consumer.metadata(), consumer.uuid());
        let events = from_metadata::events(consumer.metadata(), None);
        Ok(Self::of(RemoteRings { consumer, trace, flushed: None }, events, metadata))
    }

    /// Records that, before the next [`look`](Self::look), the process had closed all packets with a record that were opened before `time`. If the
    /// process reports that, to be called before the first sink is added.
    pub fn set_flushed(&mut self, time: u64) {
        self.source.flushed = Some(time);
    }

    /// Returns whether the ring file of this name was added.
    pub fn has_ring(&self, name: &str) -> bool {
        self.source.consumer.has(name)
    }

    /// Adds a ring file, open for reading and writing. Returns `false` if it is not a ring yet, so that the caller can retry.
    pub fn add_ring(&mut self, name: &str, path: &Path, file: CheckedFd<File>) -> bool {
        self.source.consumer.add(name, path, file)
    }

    /// Returns the number of ring files, each of which is open unless it was [closed](Self::close_files).
    pub fn files(&self) -> usize {
        self.source.consumer.files()
    }

    /// Closes the ring files, and the files of sinks that support it, until the next access to each: for a process that reads the rings of many
    /// others.
    pub fn close_files(&mut self) {
        self.source.consumer.close_files();
        self.sinks.iter_mut().for_each(AttachedSink::close_files);
    }

    /// Determines which packets are closed. Returns the fill level of the fullest ring in percent.
    pub fn look(&mut self) -> u32 {
        self.source.consumer.look()
    }

    /// Describes the new events in `metadata`. If a sink cannot take the description, this is retried before each packet, and the sink gets no
    /// packets until it succeeds.
    ///
    /// # Errors
    ///
    /// [`ReadError::Metadata`] if the text does not begin with the former text. Packets with undescribed events are lost.
    pub fn describe(&mut self, metadata: Vec<u8>) -> Result<(), ReadError> {
        let before = self.source.consumer.metadata().clone();
        let more = self.source.consumer.describe(metadata)?;
        if more.is_empty() {
            return Ok(());
        }
        let more = String::from_utf8_lossy(&more);
        let events = from_metadata::events(self.source.consumer.metadata(), Some(&before));
        self.sinks.iter_mut().for_each(|sink| sink.describe_or_defer(&events, &more));
        self.metadata.push_str(&more);
        self.events.extend(events);
        self.checkpoint();
        Ok(())
    }

    /// Moves everything that is committed, including open packets, and finishes all sinks, even if some fail. Returns their reports, and messages
    /// about defects of the rings. The process or its recording must have ended; otherwise, `runs` is true and the account is not complete.
    pub fn end(self, runs: bool) -> (Vec<SinkReport>, Vec<String>) {
        let Self { source, mut sinks, mut progress, .. } = self;
        let mut deliver = |taken: &TakenPacket<'_>| deliver(taken, &mut progress, &mut sinks);
        let end = source.consumer.end(runs, |packet| hand_out(&packet, &mut deliver));
        (finish(sinks, &progress, &end.account), end.notes)
    }
}
