//! One process: its metadata, its rings one after another, its account.

use super::RecoverError;
use super::books::Ledger;
use super::journal::Journal;
use super::meter::Meter;
use super::outputs::{Outputs, StreamId};
use super::settle::Books;
use super::stream::{Decoded, Ended, Stream};
use super::summary::RecoveredProcess;
use super::survey::{Survey, file_name};
use super::taking::{Looked, TakenStream, Taking, Told};
use super::target::Target;
use crate::account::Account;
use crate::error::ReadError;
use crate::metadata::{MAX_METADATA, Metadata};
use crate::ring::{Chased, Ring, Side, StreamCounters};
use crate::source::read_bounded;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The recovery of one process.
struct Recovery<'a, 'm> {
    metadata: &'a Metadata,
    target: &'a Target,
    outputs: Outputs,
    journal: Journal,
    ledger: Ledger,
    summary: RecoveredProcess,
    meter: Meter<'m>,
    /// Whether the process runs, and writes to its rings while they are read.
    lives: bool,
    /// The time of the last packet so far.
    end: u64,
}

/// Makes a trace in `out` of what the process left in `directory`.
pub(super) fn recover(directory: &Path, out: &Path, mut meter: Meter<'_>) -> Result<RecoveredProcess, RecoverError> {
    let mut journal = Journal::default();
    let path = directory.join("metadata");
    let text = read_bounded(&path, MAX_METADATA)?;
    let metadata = Metadata::parse(&text).map_err(|error| error.in_file(&path))?;
    let outputs = Outputs::read(directory, &mut journal);
    let survey = Survey::of(directory, &metadata, &outputs, &mut journal)?;
    let target = Target::create(out)?;
    meter.expect(survey.bytes);
    let mut recovery = Recovery {
        metadata: &metadata,
        target: &target,
        outputs,
        journal,
        ledger: Ledger::new(&metadata, survey.uuid, &survey.session, survey.pid),
        summary: RecoveredProcess {
            directory: directory.to_owned(),
            output: out.to_owned(),
            pid: survey.pid,
            session: survey.session,
            rings: survey.rings.len() as u64,
            ..RecoveredProcess::default()
        },
        meter,
        lives: survey.lives,
        end: 0,
    };
    let mut known = BTreeSet::new();
    for (path, bytes) in survey.rings {
        recovery.meter.part(bytes);
        recovery.ring(&path, &mut known)?;
    }
    recovery.finish(&text)
}

impl<'a> Recovery<'a, '_> {
    /// Takes one ring. What is wrong with it leaves the others as they are.
    fn ring(&mut self, path: &Path, known: &mut BTreeSet<(u32, u64)>) -> Result<(), RecoverError> {
        let ring = match Ring::open(path) {
            Ok(Some(ring)) => ring,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.journal.wrong(format!("{error}; not used"));
                return Ok(());
            }
        };
        let usable = self.ledger.introduce(&ring).and_then(|()| {
            let fresh = Side::ALL.into_iter().all(|side| known.insert((ring.class(), ring.instance(side))));
            if fresh { Ok(()) } else { Err("another ring has the same streams".to_owned()) }
        });
        if let Err(reason) = usable {
            self.journal.wrong(format!("{}: {reason}; not used", path.display()));
            return Ok(());
        }
        match self.contents(&ring) {
            Err(RecoverError::Read(error)) => {
                self.journal.wrong(format!("{error}; the rest of it is left out"));
                Ok(())
            }
            other => other,
        }
    }

    fn contents(&mut self, ring: &Ring) -> Result<(), RecoverError> {
        let counted = ring.account()?;
        let (main, nested) = (self.look(ring, Side::Main)?, self.look(ring, Side::Nested)?);
        let main = self.take(ring, Side::Main, main)?;
        let nested = self.take(ring, Side::Nested, nested)?;
        let now = Side::ALL.map(|side| ring.counters(side).unwrap_or_default());
        let still = [main.counters, nested.counters] == now && ring.account()? == counted;
        let path = ring.path().display();
        if !still {
            self.journal.wrong(format!("{path}: it was written to while it was read"));
        }
        let mut decoded: BTreeMap<u64, Decoded> = main.stream.decoded.clone();
        for (id, found) in &nested.stream.decoded {
            let sum = decoded.entry(*id).or_default();
            sum.count += found.count;
            sum.last = sum.last.max(found.last);
        }
        let books = Books::settle(counted, &decoded, main.committed.saturating_add(nested.committed));
        for flaw in &books.flaws {
            self.journal.wrong(format!("{path}: {flaw}"));
        }
        // A loss that was counted by its reason, and not yet on its stream, and what was killed.
        let discarded = main.discarded().saturating_add(nested.discarded());
        let more = books.lost.saturating_sub(discarded);
        if discarded > books.lost {
            let count = discarded - books.lost;
            self.journal.wrong(format!("{path}: its streams count {count} more losses than its events"));
        }
        self.ledger.events(ring, &books, &mut self.journal);
        self.summary.uncounted = self.summary.uncounted.saturating_add(books.uncounted);
        self.close(ring, main, more)?;
        self.close(ring, nested, 0)
    }

    /// The counters of one stream, and its packets; none if the counters make no sense, which is no reason to do without the other stream.
    fn look<'r>(&mut self, ring: &'r Ring, side: Side) -> Result<Looked<'r>, RecoverError> {
        match self.look_closely(ring, side) {
            Err(RecoverError::Read(error @ ReadError::Ring { .. })) => {
                self.journal.wrong(format!("{error}; this stream of it is left out"));
                Ok(Looked { counters: StreamCounters::default(), places: Box::new(std::iter::empty()) })
            }
            looked => looked,
        }
    }

    /// Of a process that runs all packets at once, else one after another.
    fn look_closely<'r>(&self, ring: &'r Ring, side: Side) -> Result<Looked<'r>, RecoverError> {
        if self.lives && ring.can_be_chased(side) {
            let Chased { counters, places, .. } = ring.chase(side)?;
            return Ok(Looked { counters, places: Box::new(places.into_iter().map(Ok)) });
        }
        let counters = ring.counters(side)?;
        Ok(Looked { counters, places: Box::new(ring.places(side, &counters)) })
    }

    /// Takes all packets of one stream.
    fn take(&mut self, ring: &Ring, side: Side, looked: Looked<'_>) -> Result<TakenStream<'a>, RecoverError> {
        let id = StreamId { uuid: ring.uuid(), class: ring.class(), instance: ring.instance(side) };
        let name = file_name(ring, side);
        let kept = self.outputs.stream(self.metadata, id, &name, &mut self.journal);
        let stream = Stream::new(self.metadata, self.target, id, name, ring.opened());
        let told = Told { journal: &mut self.journal, meter: &mut self.meter, summary: &mut self.summary };
        Taking::new(told, stream, ring, looked).run(self.metadata, kept)
    }

    /// Ends a stream, `more` losses included.
    fn close(&mut self, ring: &Ring, taken: TakenStream<'_>, more: u64) -> Result<(), RecoverError> {
        let discarded = taken.discarded().saturating_add(more);
        let TakenStream { stream, counters, committed } = taken;
        // Threads without a ring lose events for as long as anything happens.
        let time = if ring.is_orphans() { self.end } else { 0 };
        self.end = self.end.max(stream.end);
        let ended = Ended { records: committed, closed: counters.closed, discarded, time };
        if let Some(account) = stream.finish(ended)? {
            self.summary.streams += 1;
            self.summary.records += account.written;
            self.ledger.stream(ring, account, &counters);
        }
        Ok(())
    }

    /// Writes metadata and account.
    fn finish(mut self, metadata: &[u8]) -> Result<RecoveredProcess, RecoverError> {
        let complete = self.journal.is_complete();
        let account = self.ledger.close(complete);
        self.target.describe(metadata)?;
        self.target.finish(&account)?;
        self.meter.end();
        self.summary.complete = complete;
        self.summary.lost = losses(&account);
        self.summary.notes = self.journal.into_notes();
        Ok(self.summary)
    }
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
            add("sink", stream.sink);
        }
    }
    losses
}
