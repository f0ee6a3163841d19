//! Moves packets from rings to sinks, and accounts for those that arrived.
//!
//! The producer is a source of packets: the channels of this process, the ring files of another one, or the buffers of the kernel. It hands out
//! complete packets, and counts the events that were lost before they were in a packet. The consumers are the sinks, each with its own accounting:
//! one may fail while another works.

mod attached;
#[cfg(feature = "control")]
mod kernel;
mod local;
mod progress;
#[cfg(feature = "control")]
mod remote;
mod report;
mod source;

use crate::account::Account;
use crate::description::{EventDescription, TraceStart};
use crate::error::SinkError;
use crate::sink::Sink;
use crate::trace_info::TraceInfo;
use attached::AttachedSink;
#[cfg(feature = "control")]
pub use kernel::{KernelCounts, KernelRings};
pub use local::{LocalRings, RingSupplier};
use progress::Progress;
#[cfg(feature = "control")]
pub use remote::RemoteRings;
pub use report::{SinkId, SinkReport};
pub use source::DrainRound;
use source::{PacketSource, TakenPacket};
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval of account checkpoints.
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(500);

/// The rings of one trace, and the sinks that receive their packets.
///
/// Sinks can be added and removed at any time. Errors of sinks are kept for their reports.
pub struct Drain<S = LocalRings> {
    source: S,
    /// All events described so far, and the trace's metadata including them.
    events: Vec<EventDescription>,
    metadata: String,
    sinks: Vec<AttachedSink>,
    /// The number of sinks added so far: the id of the next one.
    added: u64,
    progress: Progress,
    /// The time of the last checkpoint, and whether packets have moved since.
    checkpoint: Instant,
    has_moved: bool,
}

impl<S: PacketSource> fmt::Debug for Drain<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("trace", self.trace()).finish_non_exhaustive()
    }
}

impl<S: PacketSource> Drain<S> {
    fn of(source: S, events: Vec<EventDescription>, metadata: String) -> Self {
        Self {
            source,
            events,
            metadata,
            sinks: Vec::new(),
            added: 0,
            progress: Progress::default(),
            checkpoint: Instant::now(),
            has_moved: false,
        }
    }

    /// Returns the trace.
    pub fn trace(&self) -> &TraceInfo {
        self.source.trace()
    }

    /// Adds a sink: begins the trace for it, describes all events so far, and gives it all packets from now on.
    ///
    /// If packets were moved before, the sink joins each stream after them. The first packet that it gets of such a stream is empty, and its
    /// `events_before` is the number of records that the sink has missed. They are not lost: the sink's account counts them as recorded
    /// [before](crate::account::StreamAccount::before), in a [chunk](crate::account::Account::chunk) that the sink does not have.
    ///
    /// # Errors
    ///
    /// If the sink cannot begin, or not take the events. It is not added then.
    pub fn add_sink(&mut self, sink: Box<dyn Sink>) -> Result<SinkId, SinkError> {
        let id = SinkId(self.added);
        let mut sink = AttachedSink::new(id, sink, self.progress.clone());
        if let Some(age) = sink.flush_age() {
            self.source.limit_flush_age(age);
        }
        let channels = self.source.channels();
        let (trace, metadata, packet_delay) = (self.source.trace(), &self.metadata, S::PACKET_DELAY);
        sink.call(|sink| sink.begin(&TraceStart { trace, channels: &channels, metadata, packet_delay }))?;
        if !self.events.is_empty() {
            sink.describe(&self.events, "")?;
        }
        sink.join(&channels);
        self.added += 1;
        self.sinks.push(sink);
        Ok(id)
    }

    /// Removes a sink: it gets the packets now in the rings, except those of flight recorders, and finishes with the account of its part of the
    /// trace. The other sinks are not affected. Returns `None` if the drain does not have this sink.
    pub fn remove_sink(&mut self, id: SinkId) -> Option<SinkReport> {
        let index = self.sinks.iter().position(|sink| sink.id() == id)?;
        self.source.close_packets();
        self.drain();
        let sink = self.sinks.remove(index);
        Some(sink.detach(&self.progress, self.source.account(&self.events)))
    }

    /// Runs one round: moves all closed packets to the sinks, unless one of them is full, and supplies this process's channels with spare rings.
    pub fn drain(&mut self) -> DrainRound {
        let Self { source, sinks, progress, .. } = self;
        let is_full = sinks.iter_mut().any(AttachedSink::is_full);
        // Read before the packets are taken.
        let flushed = source.flushed();
        let mut deliver = |taken: &TakenPacket<'_>| deliver(taken, progress, sinks);
        let drained = source.take(if is_full { None } else { Some(&mut deliver) });
        for sink in sinks {
            sink.rotate_if_due();
            if source.closes_old_packets() && !is_full {
                sink.round_ended(flushed);
            }
        }
        self.has_moved |= drained.packets > 0;
        if self.has_moved && self.checkpoint.elapsed() >= CHECKPOINT_INTERVAL {
            self.checkpoint();
        }
        drained
    }

    /// Rotates all sinks that support it: each closes its current chunk, with all events recorded so far except those of flight recorders, and begins
    /// the next one. Returns the paths of the closed chunks.
    ///
    /// # Errors
    ///
    /// The error of the first sink that failed. It continues in its current chunk, and the others are rotated nevertheless.
    pub fn rotate(&mut self) -> Result<Vec<PathBuf>, SinkError> {
        self.source.close_packets();
        self.drain();
        let (mut closed, mut failed) = (Vec::new(), None);
        for sink in &mut self.sinks {
            match sink.rotate() {
                Ok(chunk) => closed.extend(chunk),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        failed.map_or(Ok(closed), Err)
    }

    /// Returns whether any of the sinks can be rotated.
    pub fn can_rotate(&mut self) -> bool {
        self.sinks.iter_mut().any(AttachedSink::can_rotate)
    }

    /// Returns the number of bytes that all sinks together took.
    pub fn bytes(&self) -> u64 {
        self.sinks.iter().map(AttachedSink::bytes).sum()
    }

    /// Returns the reports of the sinks, with the account so far. Counters are read during recording.
    pub fn report(&mut self) -> Vec<SinkReport> {
        let account = self.source.account(&self.events);
        self.sinks.iter_mut().map(|sink| sink.report(&self.progress, account.clone())).collect()
    }

    /// Gives the current account to the sinks that want checkpoints.
    fn checkpoint(&mut self) {
        (self.checkpoint, self.has_moved) = (Instant::now(), false);
        let mut account: Option<Account> = None;
        for sink in &mut self.sinks {
            if sink.wants_checkpoints() {
                let account = account.get_or_insert_with(|| self.source.account(&self.events));
                sink.checkpoint(&self.progress, account.clone());
            }
        }
    }
}

fn deliver(taken: &TakenPacket<'_>, progress: &mut Progress, sinks: &mut [AttachedSink]) {
    progress.pass(&taken.packet);
    for sink in sinks {
        sink.take(taken);
    }
}

fn finish(sinks: Vec<AttachedSink>, progress: &Progress, account: &Account) -> Vec<SinkReport> {
    sinks.into_iter().map(|sink| sink.finish(progress, account.clone())).collect()
}
