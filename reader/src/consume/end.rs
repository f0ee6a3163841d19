//! The end: the rest of the packets, and the account.

use super::{Consumer, TakenPacket, Taker};
use crate::account::{Account, StreamAccount};
use crate::error::ReadError;
use crate::metadata::EnvValue;
use crate::recover::{Books, Decoded, Journal, Ledger};
use crate::ring::{Side, StreamCounters, end_at};
use std::collections::BTreeMap;

/// How a recording ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct End {
    /// What was counted. Of streams, what was recorded and discarded: what became of their packets is the taker's to say.
    pub account: Account,
    /// What there is to say: what could not be read, or contradicts the rest.
    pub notes: Vec<String>,
}

impl Consumer {
    /// Takes the rest, what is committed in open packets included, and hands out the last packet of every stream that was used, an empty
    /// one with the final counts. The process has ended, or its recording: unless `runs`, where this is what it has committed by now, and
    /// the account is not complete.
    pub fn end(mut self, runs: bool, mut take: impl FnMut(TakenPacket<'_>)) -> End {
        if runs {
            self.journal.wrong("the process is running: this is what it had committed when it was looked at");
        }
        let mut ledger = self.ledger();
        let mut end = 0;
        let mut rings = std::mem::take(&mut self.rings);
        // Threads without a ring lose events for as long as anything happens.
        rings.sort_by_key(|taker| taker.consumer.ring().is_orphans());
        for taker in &mut rings {
            if let Err(reason) = ledger.introduce(taker.consumer.ring()) {
                self.journal.wrong(format!("{}: {reason}; not used", taker.consumer.ring().path().display()));
                continue;
            }
            if let Err(error) = self.end_of(taker, runs, &mut ledger, &mut end, &mut take) {
                self.journal.wrong(format!("{error}; the rest of it is left out"));
            }
        }
        let complete = self.journal.is_complete();
        End { account: ledger.close(complete), notes: self.journal.into_notes() }
    }

    /// What was counted so far, as good as a look at running counters can be.
    pub fn account(&self) -> Account {
        let mut ledger = self.ledger();
        let mut journal = Journal::default();
        for ring in self.rings.iter().filter(|taker| taker.is_readable).map(|taker| taker.consumer.ring()) {
            let Ok(counted) = ring.account() else { continue };
            if ledger.introduce(ring).is_err() {
                continue;
            }
            ledger.events(ring, &Books::running(counted), &mut journal);
            for side in Side::ALL {
                let Ok(counters) = ring.counters(side) else { continue };
                if counters.records > 0 || counters.discarded > 0 {
                    ledger.stream(ring, line(ring.instance(side), counters.records, counters.discarded), &counters);
                }
            }
        }
        let mut account = ledger.close(false);
        // What is not written yet is not lost.
        account.channels.iter_mut().flat_map(|channel| &mut channel.streams).for_each(|stream| stream.sink = 0);
        account
    }

    fn ledger(&self) -> Ledger {
        let pid = match self.metadata.env_value("vpid") {
            Some(EnvValue::Integer(pid)) => u32::try_from(*pid).unwrap_or(0),
            _ => 0,
        };
        let session = match self.metadata.env_value("trace_name") {
            Some(EnvValue::String(name)) => name.as_str(),
            _ => "",
        };
        Ledger::new(&self.metadata, self.uuid, session, pid)
    }

    fn end_of(
        &mut self,
        taker: &mut Taker,
        runs: bool,
        ledger: &mut Ledger,
        end: &mut u64,
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) -> Result<(), ReadError> {
        let ring = taker.consumer.ring();
        let counted = ring.account()?;
        let counters = [ring.counters(Side::Main)?, ring.counters(Side::Nested)?];
        if taker.is_readable {
            taker.waiting = taker.consumer.waiting()?;
        }
        let Self { metadata, walk, journal, buffer, .. } = self;
        taker.take(metadata, walk, journal, buffer, take);
        let mut committed = [0; 2];
        for (index, side) in Side::ALL.into_iter().enumerate() {
            committed[index] = self.open_packet(taker, (index, side), &counters[index], take)?;
        }
        let mut decoded: BTreeMap<u64, Decoded> = BTreeMap::new();
        for (id, found) in taker.positions.iter().flat_map(|position| &position.decoded) {
            let sum = decoded.entry(*id).or_default();
            sum.count += found.count;
            sum.last = sum.last.max(found.last);
        }
        let ring = taker.consumer.ring();
        let mut books = Books::settle(counted, &decoded, committed[0].saturating_add(committed[1]));
        if runs {
            books = books.without_killed();
        }
        for flaw in &books.flaws {
            self.journal.wrong(format!("{}: {flaw}", ring.path().display()));
        }
        ledger.events(ring, &books, &mut self.journal);
        let mut discarded = [0, 1].map(|index| counters[index].discarded.max(taker.positions[index].discarded));
        // A loss that was counted by its reason, and not yet on its stream, and what was killed.
        discarded[0] += books.lost.saturating_sub(discarded[0].saturating_add(discarded[1]));
        let latest = taker.positions.iter().map(|position| position.end).fold(*end, u64::max);
        for (index, side) in Side::ALL.into_iter().enumerate() {
            if committed[index] == 0 && discarded[index] == 0 {
                continue;
            }
            let position = &taker.positions[index];
            let time = if ring.is_orphans() { latest } else { position.end };
            let sequence = position.sequence.max(counters[index].closed).saturating_add(1);
            let (records, lost) = (committed[index], discarded[index]);
            let bytes = taker.consumer.last_packet(side, time, sequence, records, lost);
            take(taker.packet(side, &bytes, records, records));
            ledger.stream(ring, line(ring.instance(side), records, lost), &counters[index]);
        }
        *end = latest;
        Ok(())
    }

    /// Takes what is committed in the open packet: how many records were committed in the stream.
    fn open_packet(
        &mut self,
        taker: &mut Taker,
        (index, side): (usize, Side),
        counters: &StreamCounters,
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) -> Result<u64, ReadError> {
        let so_far = taker.positions[index].records;
        // One that runs may have closed it meanwhile.
        if taker.positions[index].sequence > counters.closed {
            return Ok(so_far);
        }
        let Some((mut head, mut bytes)) = taker.consumer.open_packet(side, counters)? else {
            return Ok(counters.records.max(so_far));
        };
        let class = taker.consumer.ring().class();
        let path = taker.consumer.ring().path().display().to_string();
        let fits = self.walk.packet(&self.metadata, class, &bytes, head.begin).and_then(|walked| {
            head.end = walked.last;
            head.discarded = head.discarded.max(taker.positions[index].discarded);
            let mut next = taker.positions[index].clone();
            let passed = next.pass(counters.closed + 1, &head, &walked)?;
            if walked.records > 0 {
                taker.positions[index] = next;
            }
            Ok(passed)
        });
        match fits {
            Ok((before, after)) if after > before => {
                self.walk.settle(&mut taker.positions[index]);
                end_at(&mut bytes, head.end);
                take(taker.packet(side, &bytes, before, after));
                Ok(after)
            }
            Ok((_, after)) => Ok(after.max(so_far)),
            Err(reason) => {
                self.journal.wrong(format!("{path}: {reason}"));
                Ok(counters.records.max(so_far))
            }
        }
    }
}

fn line(instance: u64, recorded: u64, discarded: u64) -> StreamAccount {
    StreamAccount { instance, recorded, discarded, ..StreamAccount::default() }
}
