//! The end of a recording: the remaining packets, and the account.

use super::{RemoteConsumer, RingTaker, TakenPacket};
use crate::account::Account;
use crate::checksum::{seal, sealed};
use crate::error::ReadError;
use crate::metadata::EnvValue;
use crate::ring::{Side, StreamCounters};
use crate::take::{AccountBuilder, Journal, RingAccounting, RingEnd, StreamEnd};

/// The result of a recording's end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct End {
    /// The account. Its streams have the counts of recorded and discarded events; the caller knows which packets reached a sink.
    pub account: Account,
    /// Parts that could not be read, and contradictions.
    pub notes: Vec<String>,
}

impl RemoteConsumer {
    /// Takes the rest, including committed records of open packets, and passes on the last packet of every stream in use: an empty
    /// packet with the final counts. The process or its recording has ended; if the process `runs`, this is the state committed so far,
    /// and the account is not complete.
    pub fn end(mut self, runs: bool, mut take: impl FnMut(TakenPacket<'_>)) -> End {
        if runs {
            self.journal.wrong("the process is running: this is what it had committed when it was looked at");
        }
        let mut account = self.account_builder();
        let mut end = 0;
        let mut rings = std::mem::take(&mut self.rings);
        // Threads without a ring can lose events until the very end, so their account comes last.
        rings.sort_by_key(|taker| taker.ring().is_ringless());
        for taker in &mut rings {
            if let Err(reason) = account.introduce(taker.ring()) {
                self.journal.wrong(format!("{}: {reason}; not used", taker.ring().path().display()));
                continue;
            }
            if let Err(error) = self.end_of(taker, runs, &mut account, &mut end, &mut take) {
                self.journal.wrong(format!("{error}; the rest of it is left out"));
            }
        }
        self.count_rings(&rings);
        let complete = self.journal.is_complete();
        End { account: account.close(complete), notes: self.journal.into_notes() }
    }

    /// Compares the rings of each channel with the number that the process has made: a file that was truncated before it was looked at
    /// is indistinguishable from one that is being made.
    fn count_rings(&mut self, rings: &[RingTaker]) {
        for ringless in rings.iter().map(RingTaker::ring).filter(|ring| ring.is_ringless()) {
            let of_class = rings.iter().map(RingTaker::ring).filter(|ring| ring.class() == ringless.class());
            let found = of_class.count() as u64 - 1;
            let made = ringless.rings_made().unwrap_or(0);
            if made > found {
                self.journal.wrong(format!(
                    "{}: the process has made {made} rings of this channel, and {found} could be read; what the others held is missing",
                    ringless.path().display()
                ));
            }
        }
    }

    /// The account so far. The counters change while they are read, so they match only approximately.
    pub fn account(&self) -> Account {
        let mut builder = self.account_builder();
        let mut journal = Journal::default();
        for ring in self.rings.iter().filter(|taker| taker.is_readable).map(RingTaker::ring) {
            let Ok(counted) = ring.account() else { continue };
            if builder.introduce(ring).is_err() {
                continue;
            }
            builder.events(ring.class(), ring.path(), &RingAccounting::running(counted), &mut journal);
            for side in Side::ALL {
                let Ok(counters) = ring.counters(side) else { continue };
                if counters.records > 0 || counters.discarded > 0 {
                    let (recorded, discarded) = (counters.records, counters.discarded);
                    builder.stream(ring.class(), ring.stream_account(side, recorded, discarded), &counters);
                }
            }
        }
        let mut account = builder.close(false);
        // Records that are not written yet do not count as lost.
        account.channels.iter_mut().flat_map(|channel| &mut channel.streams).for_each(|stream| stream.sink = 0);
        account
    }

    fn account_builder(&self) -> AccountBuilder {
        let pid = match self.metadata.env_value("vpid") {
            Some(EnvValue::Integer(pid)) => u32::try_from(*pid).unwrap_or(0),
            _ => 0,
        };
        let session = match self.metadata.env_value("trace_name") {
            Some(EnvValue::String(name)) => name.as_str(),
            _ => "",
        };
        AccountBuilder::new(&self.metadata, self.uuid, session, pid)
    }

    fn end_of(
        &mut self,
        taker: &mut RingTaker,
        runs: bool,
        account: &mut AccountBuilder,
        end: &mut u64,
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) -> Result<(), ReadError> {
        let counted = taker.ring().account()?;
        let counters = [taker.ring().counters(Side::Main)?, taker.ring().counters(Side::Nested)?];
        if taker.is_readable {
            taker.waiting = taker.remote.waiting()?;
        }
        let Self { metadata, walker, journal, buffer, .. } = self;
        taker.take(metadata, walker, journal, buffer, take);
        let [main, nested] = Side::ALL;
        let streams = [
            self.end_of_stream(taker, main, counters[0], take)?,
            self.end_of_stream(taker, nested, counters[1], take)?,
        ];
        let ring = taker.ring();
        let RingEnd { streams, .. } = RingEnd::new(ring, counted, streams, runs, (account, &mut self.journal));
        *end = streams.iter().map(|stream| stream.position.end).fold(*end, u64::max);
        for (side, stream) in Side::ALL.into_iter().zip(&streams) {
            let earliest = if ring.is_ringless() { *end } else { 0 };
            let Some(last) = stream.last_packet(ring, earliest) else { continue };
            take(taker.packet(side, &sealed(last.bytes()), last.events_before, last.events_before));
            account.stream(ring.class(), stream.account(ring), &stream.counters);
        }
        Ok(())
    }

    /// Takes the committed records of a stream's open packet.
    fn end_of_stream(
        &mut self,
        taker: &mut RingTaker,
        side: Side,
        counters: StreamCounters,
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) -> Result<StreamEnd, ReadError> {
        let mut position = taker.positions[side.index()].clone();
        let mut open = None;
        if position.sequence > counters.closed {
            // The process is running, and has closed the packet in the meantime.
            open = Some(position.records);
        } else if let Some(mut packet) = taker.remote.open_packet(side, &counters)? {
            match position.check(&mut self.walker, &self.metadata, &mut packet.bytes, Some(counters.discarded)) {
                Ok(next) => {
                    open = Some(next.after);
                    if !next.is_empty() {
                        position.advance(&next, &self.walker);
                        seal(&mut packet.bytes);
                        take(taker.packet(side, &packet.bytes, next.before, next.after));
                    }
                }
                Err(reason) => {
                    let path = taker.ring().path().display();
                    self.journal.wrong(format!("{path}: packet {}: {reason}", packet.number + 1));
                }
            }
        }
        Ok(StreamEnd::new(side, position, counters, open))
    }
}
