//! Recovers one process: its metadata, its rings one after another, its account.

use super::RecoverError;
use super::acknowledged::AcknowledgedEvents;
use super::lost_ring::LostRing;
use super::meter::Meter;
use super::outputs::Outputs;
use super::packets::{Progress, RingPart, StreamTaker};
use super::process_source::{ProcessSource, RingPlace};
use super::removed::RemovedChunks;
use super::stream_file::StreamFile;
use super::summary::RecoveredProcess;
use super::survey::{Survey, file_name};
use super::target::Target;
use crate::account::{Account, Chunk};
use crate::error::ReadError;
use crate::metadata::Metadata;
use crate::record::sizes::RecordSizes;
use crate::ring::{EventCounters, Ring, Side, StreamCounters, StreamSnapshot};
use crate::take::{AccountBuilder, Journal, Position, RingEnd, StreamEnd, Walker};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use tracepoint_ring::channel::StreamKey;

/// The loss reason of records that left their ring and are in no output.
const SINK: &str = "sink";

/// The recovery of one process.
struct Recovery<'a, 'm> {
    metadata: &'a Metadata,
    target: &'a Target,
    /// The removed chunks of its output.
    removed: Option<RemovedChunks>,
    outputs: Outputs,
    acknowledged: AcknowledgedEvents,
    journal: Journal,
    account: AccountBuilder,
    walker: Walker,
    summary: RecoveredProcess,
    meter: Meter<'m>,
    /// True if the process is running and writes to its rings while they are read.
    is_running: bool,
    /// The end of the latest packet so far.
    end: u64,
    /// Earlier events are left out.
    since: u64,
}

/// Writes a trace to `out` from the remains of the process, or from its current state, without the events before `since`.
pub(super) fn recover(
    source: ProcessSource<'_>,
    out: &Path,
    since: u64,
    mut meter: Meter<'_>,
) -> Result<RecoveredProcess, RecoverError> {
    let mut journal = Journal::default();
    let text = source.metadata()?;
    let metadata = Metadata::parse(&text).map_err(|error| error.in_file(&source.path().join("metadata")))?;
    if let Some(reason) = metadata.damage() {
        journal.wrong(format!("{}: {reason}", source.path().join("metadata").display()));
    }
    let outputs = Outputs::read(source, &mut journal);
    let acknowledged = AcknowledgedEvents::read(source, &mut journal);
    let survey = Survey::of(source, &metadata, &outputs, &mut journal)?;
    let target = Target::create(out)?;
    meter.expect(survey.bytes);
    let mut recovery = Recovery {
        metadata: &metadata,
        target: &target,
        removed: outputs.removed_chunks(),
        outputs,
        acknowledged,
        journal,
        walker: Walker::new(RecordSizes::of(&metadata)),
        account: AccountBuilder::new(&metadata, survey.uuid, &survey.session, survey.pid),
        summary: RecoveredProcess {
            directory: source.path().to_owned(),
            output: out.to_owned(),
            pid: survey.pid,
            session: survey.session,
            rings: survey.rings.len() as u64,
            ..RecoveredProcess::default()
        },
        meter,
        is_running: survey.is_running,
        end: 0,
        since,
    };
    let mut known = HashSet::new();
    for (place, bytes) in survey.rings {
        recovery.meter.part(bytes);
        recovery.ring(&place, &mut known)?;
    }
    for ((class, instance), file) in recovery.outputs.streams(&metadata, survey.uuid) {
        if !known.contains(&(class, instance)) {
            recovery.lost_ring(LostRing { stream: StreamKey { uuid: survey.uuid, class, instance }, file })?;
        }
    }
    recovery.finish(&text)
}

impl<'a> Recovery<'a, '_> {
    /// Recovers one ring. A fault in it does not affect the others.
    fn ring(&mut self, place: &RingPlace, known: &mut HashSet<(u32, u64)>) -> Result<(), RecoverError> {
        let ring = match place.open() {
            Ok(Some(ring)) => ring,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.journal.wrong(format!("{error}; not used"));
                return Ok(());
            }
        };
        let usable = self.account.introduce(&ring).map_err(|error| error.to_string()).and_then(|()| {
            let fresh = Side::ALL.into_iter().all(|side| !known.contains(&(ring.class(), ring.instance(side))));
            if fresh { Ok(()) } else { Err("another ring has the same streams".to_owned()) }
        });
        if let Err(reason) = usable {
            self.journal.wrong(format!("{}: {reason}; not used", place.path().display()));
            return Ok(());
        }
        match self.contents(&ring, known) {
            Err(RecoverError::Read(error)) => {
                self.journal.wrong(format!("{error}; the rest of it is left out"));
                Ok(())
            }
            other => other,
        }
    }

    fn contents(&mut self, ring: &Ring, known: &mut HashSet<(u32, u64)>) -> Result<(), RecoverError> {
        let before = ring.account()?;
        let (main, nested) = (self.look(ring, Side::Main)?, self.look(ring, Side::Nested)?);
        known.extend(Side::ALL.map(|side| (ring.class(), ring.instance(side))));
        let (main_file, main) = self.take(ring, Side::Main, main)?;
        let (nested_file, nested) = self.take(ring, Side::Nested, nested)?;
        let after = ring.account()?;
        let runs = self.is_running;
        let now = Side::ALL.map(|side| ring.counters(side).unwrap_or_default());
        if !runs && ([main.counters, nested.counters] != now || after != before) {
            self.journal.wrong(format!("{}: it was written to while it was read", ring.path().display()));
        }
        let counted = if runs { EventCounters::around(before, &after, &ring.account()?) } else { before };
        let end = RingEnd::new(ring, counted, [main, nested], runs, (&mut self.account, &mut self.journal));
        self.summary.uncounted = self.summary.uncounted.saturating_add(end.uncounted);
        for (file, stream) in [main_file, nested_file].into_iter().zip(&end.streams) {
            // Threads without a ring lose events until the very end.
            let earliest = if ring.is_ringless() { self.end } else { 0 };
            self.end = self.end.max(stream.position.end);
            if let Some(last) = stream.last_packet(ring, earliest) {
                let account = file.finish(&last, stream.account(ring))?;
                self.summary.streams += 1;
                self.summary.records += account.written - account.before.written;
                self.account.stream(ring.class(), account, &stream.counters);
            }
        }
        Ok(())
    }

    /// Recovers a stream that has no usable ring.
    fn lost_ring(&mut self, stream: LostRing) -> Result<(), RecoverError> {
        let Some(kept) = self.outputs.stream(self.metadata, stream.stream, &stream.file, &mut self.journal) else {
            return Ok(());
        };
        let mut progress = Progress {
            journal: &mut self.journal,
            meter: &mut self.meter,
            summary: &mut self.summary,
            since: self.since,
        };
        let (walker, account) = (&mut self.walker, &mut self.account);
        if let Some(counts) = stream.recover(self.metadata, self.target, kept, walker, account, &mut progress)? {
            self.summary.streams += 1;
            self.summary.records += counts.written - counts.before.written;
        }
        Ok(())
    }

    /// The counters and sub-buffers of one stream; none if the counters are out of range, which leaves the other stream usable.
    fn look<'r>(&mut self, ring: &'r Ring, side: Side) -> Result<RingPart<'r>, RecoverError> {
        match self.look_closely(ring, side) {
            Err(RecoverError::Read(error @ ReadError::Ring { .. })) => {
                self.journal.wrong(format!("{error}; this stream of it is left out"));
                let (counters, sub_buffers) = (StreamCounters::default(), Box::new(std::iter::empty()));
                Ok(RingPart { counters, runs: self.is_running, sub_buffers })
            }
            looked => looked,
        }
    }

    /// If the process is running, copies all packets at once; otherwise they are read one after another.
    fn look_closely<'r>(&self, ring: &'r Ring, side: Side) -> Result<RingPart<'r>, RecoverError> {
        if self.is_running && ring.fits_in_memory(side) {
            let StreamSnapshot { counters, sub_buffers, .. } = ring.snapshot(side)?;
            return Ok(RingPart { counters, runs: true, sub_buffers: Box::new(sub_buffers.into_iter().map(Ok)) });
        }
        let counters = ring.counters(side)?;
        let sub_buffers = ring.sub_buffers(side, &counters);
        let sub_buffers = if self.is_running { sub_buffers.until_open_packet() } else { sub_buffers };
        Ok(RingPart { counters, runs: self.is_running, sub_buffers: Box::new(sub_buffers) })
    }

    /// Takes all packets of one stream.
    fn take(
        &mut self,
        ring: &Ring,
        side: Side,
        in_ring: RingPart<'_>,
    ) -> Result<(StreamFile<'a>, StreamEnd), RecoverError> {
        let name = file_name(ring, side);
        let stream = ring.stream(side);
        let kept = self.outputs.stream(self.metadata, stream, &name, &mut self.journal);
        // The chunks of the output with the stream, or else of any output.
        let removed = kept.as_ref().map_or(self.removed.as_ref(), |kept| kept.removed.as_ref());
        let removed = removed.and_then(|removed| removed.of_stream(stream));
        let taker = StreamTaker {
            metadata: self.metadata,
            walker: &mut self.walker,
            file: StreamFile::new(self.target, name, ring.empty_packet(side, ring.opened()), removed),
            position: Position::new(ring.opened()),
            progress: Progress {
                journal: &mut self.journal,
                meter: &mut self.meter,
                summary: &mut self.summary,
                since: self.since,
            },
            ring,
            in_ring,
            open: None,
        };
        taker.run(side, kept)
    }

    /// Writes metadata and account.
    fn finish(mut self, metadata: &[u8]) -> Result<RecoveredProcess, RecoverError> {
        let intact = self.journal.is_complete();
        let (complete, snapshot) = (intact && !self.is_running, intact && self.is_running);
        let mut account = self.account.close(complete);
        account.snapshot = snapshot;
        account.chunk = self.removed.as_ref().map(|removed| last_chunk(&account, removed));
        self.summary.removed = account.chunk.as_ref().map_or(0, |chunk| chunk.removed.events);
        self.target.describe(metadata)?;
        self.target.finish(&account)?;
        self.meter.end();
        (self.summary.complete, self.summary.snapshot) = (complete, snapshot);
        self.summary.lost = losses(&account);
        if self.outputs.is_empty() {
            self.summary.acknowledged = self.acknowledged.of_missing(&account);
        }
        let missing = self.summary.lost.get(SINK).copied().unwrap_or(0);
        self.summary.missing = missing.saturating_sub(self.summary.acknowledged);
        self.summary.peers = self.acknowledged.peers;
        self.summary.notes = self.journal.into_notes();
        Ok(self.summary)
    }
}

/// The account entry for the recovered part of a trace in chunks.
fn last_chunk(account: &Account, removed: &RemovedChunks) -> Chunk {
    let mut chunk = Chunk::default();
    (chunk.number, chunk.last, chunk.removed.chunks) = (removed.count.saturating_add(1), true, removed.count);
    for before in account.channels.iter().flat_map(|channel| &channel.streams).map(|stream| stream.before) {
        chunk.removed.packets = chunk.removed.packets.saturating_add(before.packets);
        chunk.removed.events = chunk.removed.events.saturating_add(before.written);
    }
    chunk
}

/// All losses of an account, by reason.
fn losses(account: &Account) -> BTreeMap<String, u64> {
    let mut losses: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |reason: &str, count: u64| {
        if count > 0 {
            let sum = losses.entry(reason.to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    };
    for channel in &account.channels {
        for (reason, count) in channel.events.iter().flat_map(|event| &event.lost) {
            add(reason, *count);
        }
        for stream in &channel.streams {
            add("overwritten", stream.overwritten);
            add(SINK, stream.sink);
        }
    }
    losses
}
