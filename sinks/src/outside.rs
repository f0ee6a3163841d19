//! Moves packets from the rings of another process to sinks, and keeps the books of what arrived.
//!
//! The step before is a [`Consumer`], which takes packets out of the process's ring files; the step after are the sinks, which are told
//! of channels and events in the process's own words.

mod words;

use crate::account::Account;
use crate::description::EventDescription;
use crate::drain::feed::Feed;
use crate::drain::{Drained, Progress, SinkId, SinkReport};
use crate::error::SinkError;
use crate::sink::{Sink, StreamInfo};
use crate::trace_info::TraceInfo;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use tracepoint_core::channel::{Packet, StreamId};
use tracepoint_reader::consume::{Consumer, TakenPacket};
use tracepoint_reader::{Metadata, ReadError};

/// The pause between two accounts that sinks keep while the trace goes on.
const CHECKPOINTS: Duration = Duration::from_millis(500);

/// The rings of one process, and the sinks that their packets go to.
///
/// One round is [`look`](Self::look); [`describe`](Self::describe), if the metadata is another one since; [`take`](Self::take).
pub struct OutsideDrain {
    consumer: Consumer,
    trace: TraceInfo,
    sinks: Vec<Told>,
    /// When sinks got the account last, and whether packets have moved since.
    checkpoint: Instant,
    moved: bool,
}

/// A sink, and what it could not be told yet.
struct Told {
    feed: Feed,
    untold: Vec<(Vec<EventDescription>, String)>,
}

impl fmt::Debug for OutsideDrain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideDrain").field("trace", &self.trace).finish_non_exhaustive()
    }
}

impl OutsideDrain {
    /// A drain of the rings of `consumer`, without sinks as yet.
    pub fn new(consumer: Consumer) -> Self {
        let trace = words::trace(consumer.metadata(), consumer.uuid());
        Self { consumer, trace, sinks: Vec::new(), checkpoint: Instant::now(), moved: false }
    }

    /// One more place to which the packets go.
    pub fn add_sink(&mut self, sink: Box<dyn Sink>) {
        let id = SinkId(self.sinks.len() as u64);
        self.sinks.push(Told { feed: Feed::new(id, sink, Progress::default()), untold: Vec::new() });
    }

    /// Tells the sinks that the trace begins. Called once, when a ring of each channel and all sinks were added.
    ///
    /// # Errors
    ///
    /// That of the first sink that cannot begin; the others are not asked.
    pub fn begin(&mut self) -> Result<(), SinkError> {
        let channels = words::channels(&self.consumer.channels());
        let events = words::events(self.consumer.metadata(), None);
        let text = words::text(self.consumer.text())?;
        self.sinks.iter_mut().try_for_each(|told| {
            told.feed.call(|sink| {
                sink.begin_with_text(&self.trace, &channels, text)?;
                sink.describe_with_text(&events, "")
            })
        })
    }

    /// The trace.
    pub const fn trace(&self) -> &TraceInfo {
        &self.trace
    }

    /// Whether the ring file of this name was added.
    pub fn has_ring(&self, name: &str) -> bool {
        self.consumer.has(name)
    }

    /// Adds a ring file, open for reading and writing; `false` if it can be tried again, because it is not a ring yet.
    pub fn add_ring(&mut self, name: &str, path: &Path, file: File) -> bool {
        self.consumer.add(name, path, file)
    }

    /// Looks which packets are closed: how full the fullest ring is, in percent.
    pub fn look(&mut self) -> u32 {
        self.consumer.look()
    }

    /// The metadata is another one. A sink that cannot be told of the new events is told again before each packet, and gets none until
    /// then.
    ///
    /// # Errors
    ///
    /// [`ReadError::Metadata`] if it is not what it was with something behind it. What is in packets of events that are not described is
    /// lost.
    pub fn describe(&mut self, text: Vec<u8>) -> Result<(), ReadError> {
        let before: Metadata = self.consumer.metadata().clone();
        let more = self.consumer.describe(text)?;
        if more.is_empty() {
            return Ok(());
        }
        let more = String::from_utf8_lossy(&more).into_owned();
        let events = words::events(self.consumer.metadata(), Some(&before));
        for told in &mut self.sinks {
            told.untold.push((events.clone(), more.clone()));
            // The error comes again, with the first packet.
            let _ = told.tell();
        }
        self.keep_account();
        Ok(())
    }

    /// Moves the packets that [`look`](Self::look) has found to the sinks, and gives their places back to the process.
    ///
    /// Errors of sinks are kept for the report.
    pub fn take(&mut self) -> Drained {
        let Self { consumer, sinks, .. } = self;
        let round = consumer.take(|packet| sinks.iter_mut().for_each(|told| told.take(&packet)));
        for told in sinks.iter_mut() {
            told.feed.rotate_if_due();
            told.feed.look_ended();
        }
        self.moved |= round.packets > 0;
        if self.moved && self.checkpoint.elapsed() >= CHECKPOINTS {
            self.keep_account();
        }
        Drained { packets: round.packets, bytes: round.bytes, ..Drained::default() }
    }

    /// Bytes that all sinks together took.
    pub fn bytes(&self) -> u64 {
        self.sinks.iter().map(|told| told.feed.bytes()).sum()
    }

    /// How the sinks fare, with the account so far: as good as a look at running counters can be.
    pub fn report(&self) -> Vec<SinkReport> {
        let account = self.consumer.account();
        self.sinks.iter().map(|told| told.feed.report(&Progress::default(), account.clone())).collect()
    }

    /// Moves the rest, what is committed in open packets included, and lets each sink finish, whatever became of the others; and what there
    /// is to say of the rings. The process has ended, or its recording, unless it `runs`: then the account is not complete.
    pub fn end(self, runs: bool) -> (Vec<SinkReport>, Vec<String>) {
        let Self { consumer, mut sinks, .. } = self;
        let end = consumer.end(runs, |packet| sinks.iter_mut().for_each(|told| told.take(&packet)));
        let finish = |mut told: Told| {
            told.feed.is_over();
            told.feed.finish(&Progress::default(), end.account.clone())
        };
        (sinks.into_iter().map(finish).collect(), end.notes)
    }

    /// Gives the account so far to the sinks that keep it.
    fn keep_account(&mut self) {
        (self.checkpoint, self.moved) = (Instant::now(), false);
        let mut account: Option<Account> = None;
        for told in &mut self.sinks {
            if told.feed.wants_checkpoints() {
                let account = account.get_or_insert_with(|| self.consumer.account());
                told.feed.checkpoint(&Progress::default(), account.clone());
            }
        }
    }
}

impl Told {
    fn take(&mut self, packet: &TakenPacket<'_>) {
        let id = StreamId { class: packet.class, instance: packet.instance };
        let stream = StreamInfo { id, channel: packet.channel.to_owned() };
        let (events_before, events_after) = (packet.events_before, packet.events_after);
        let whole = Packet { stream: id, bytes: packet.bytes, events_before, events_after };
        match self.tell() {
            Ok(()) => self.feed.take(&|| packet.first_packet(), &stream, &whole),
            Err(error) => self.feed.refuse(&stream, &whole, error),
        }
    }

    /// Tells of the events that it could not be told of before.
    fn tell(&mut self) -> Result<(), SinkError> {
        while let Some((events, text)) = self.untold.first() {
            self.feed.call(|sink| sink.describe_with_text(events, text))?;
            self.untold.remove(0);
        }
        Ok(())
    }
}

/// The text is not what a process writes.
fn no_text(error: std::str::Utf8Error) -> SinkError {
    SinkError::new("read the metadata of the process", io::Error::new(io::ErrorKind::InvalidData, error))
}
