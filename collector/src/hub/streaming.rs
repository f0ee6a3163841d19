//! Sessions of the stream protocol (`docs/format-stream.md`) in the hub.

mod clocks;
mod open;
mod rotation;

#[cfg(feature = "nats")]
pub(super) use open::streamed_directory;
pub(crate) use open::{OpenedSession, Refusal, refused};

use super::Hub;
use super::ordered::{OrderedStream, unwrap};
use super::stream::Stream;
use super::streamed::StreamedSession;
use crate::files::put;
use crate::fragments::Fragments;
use crate::memory::MemoryShare;
use crate::reorder::Limits;
use crate::storage::{Job, Packet};
use anyhow::{Context as _, bail};
use std::time::{Duration, Instant};
use tracepoint_reader::account::ACCOUNT_PATH;
use tracepoint_wire::stream::{
    AckEntry, ClosedStream, Datagram, NO_SEQ, NackEntry, SeqRange, StreamTotals, Sync, SyncEntry,
};

/// Maximum size of the metadata in bytes, as for readers.
const LARGEST_METADATA: u64 = 64 << 20;
/// Maximum size of an account in bytes.
const LARGEST_ACCOUNT: u64 = 64 << 20;
/// Maximum time that a sender may interleave another packet between two fragments: the duration of one packet at a bandwidth cap.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Time that a session without a control connection waits for its sender.
pub(super) const DETACHED_TIME: Duration = Duration::from_secs(60);

impl Hub {
    pub(crate) fn streamed(&mut self, id: u64) -> Option<&mut StreamedSession> {
        self.session_mut(id)?.streamed.as_mut()
    }

    /// Returns the open session that data with this token belongs to.
    pub(crate) fn session_of_token(&mut self, token: &[u8; 16]) -> Option<u64> {
        let id = *self.tokens.get(token)?;
        self.session(id).filter(|session| session.is_open())?;
        Some(id)
    }

    /// Handles a piece of the metadata. Bytes received before are ignored.
    pub(crate) fn streamed_metadata(
        &mut self,
        id: u64,
        offset: u64,
        bytes: &[u8],
        memory: Option<MemoryShare>,
    ) -> anyhow::Result<()> {
        let streamed = self.streamed(id).context("there is no session")?;
        let known = streamed.metadata_bytes.checked_sub(offset);
        let known = known.with_context(|| {
            format!("metadata came from byte {offset} on, and {} are there", streamed.metadata_bytes)
        })?;
        let fresh = usize::try_from(known).ok().and_then(|known| bytes.get(known..)).unwrap_or_default();
        if streamed.metadata_bytes + fresh.len() as u64 > LARGEST_METADATA {
            bail!("the metadata has more than {LARGEST_METADATA} bytes");
        }
        streamed.metadata_bytes += fresh.len() as u64;
        let handle = streamed.metadata;
        if !fresh.is_empty() {
            let fresh = fresh.to_vec();
            let fresh = match &mut streamed.chunks {
                Some(chunks) => chunks.hold(fresh, memory),
                None => Some((fresh, memory)),
            };
            if let Some((bytes, memory)) = fresh {
                self.give_metadata(handle, bytes, memory);
            }
        }
        Ok(())
    }

    fn give_metadata(&self, handle: u64, bytes: Vec<u8>, memory: Option<MemoryShare>) {
        self.storage.give(handle, Job::Metadata { packet: Packet::new(bytes, 0, memory) });
    }

    /// Handles a complete packet. Returns `false` if it is damaged or names no stream of this session.
    pub(crate) fn wire_packet(&mut self, id: u64, wire: Vec<u8>, memory: Option<MemoryShare>, now: Instant) -> bool {
        self.counts.packets += 1;
        let handle = tracepoint_wire::stream::route_of(&wire).map(|route| route.handle);
        let stream = handle.ok().and_then(|handle| self.stream_of(id, handle));
        let Some(ordered) = stream.and_then(|stream| stream.ordered.as_mut()) else { return false };
        let Ok((route, arrived)) = unwrap(wire, memory, ordered.key, ordered.largest) else {
            self.counts.damaged += 1;
            return false;
        };
        if ordered.reorder.wants(route.seq) {
            ordered.reorder.push(route.seq, route.prev_seq, arrived.0.size(), arrived, now);
            self.advance(route.handle, now);
        } else {
            let is_late = ordered.is_late(route.seq);
            self.count_unwanted(is_late);
        }
        true
    }

    /// Counts a packet that is not wanted.
    const fn count_unwanted(&mut self, is_late: bool) {
        let count = if is_late { &mut self.counts.late } else { &mut self.counts.duplicates };
        *count += 1;
    }

    pub(crate) fn datagram(&mut self, id: u64, datagram: &Datagram<'_>, now: Instant) {
        let header = datagram.header;
        if let Some(streamed) = self.streamed(id) {
            streamed.has_data = true;
        }
        if header.probe {
            return;
        }
        let ordered = self.stream_of(id, header.handle).and_then(|stream| stream.ordered.as_mut());
        let Some(ordered) = ordered else { return };
        if u64::from(header.total) > u64::from(ordered.largest) + 32 || !ordered.reorder.wants(header.seq) {
            let is_late = ordered.is_late(header.seq);
            return self.count_unwanted(is_late);
        }
        if header.again {
            ordered.reorder.answered(now);
        }
        let Some(session) = self.session_mut(id) else { return };
        let memory = session.memory().clone();
        let streamed = session.streamed.as_mut();
        let whole = streamed
            .and_then(|streamed| streamed.fragments.push(datagram, now, |bytes| memory.try_take(bytes).map(Some)));
        if let Some((wire, memory)) = whole {
            self.wire_packet(id, wire, memory, now);
        }
    }

    pub(crate) fn sync(&mut self, id: u64, sync: &Sync, now: Instant) {
        self.align(id, sync);
        #[cfg(feature = "nats")]
        self.keep_sync(id, sync);
        for entry in &sync.entries {
            if let Some(ordered) = self.stream_of(id, entry.handle).and_then(|stream| stream.ordered.as_mut()) {
                ordered.sync(entry.last, entry.time, now);
                if entry.last != u64::MAX {
                    self.storage.give(entry.handle, Job::Release { upto: entry.last });
                }
                self.advance(entry.handle, now);
            }
        }
    }

    /// Handles timeouts of a session's gaps. Returns the packets to request from its sender.
    pub(crate) fn gaps(&mut self, id: u64, limits: &Limits, now: Instant) -> Vec<NackEntry> {
        let Some(streamed) = self.sessions.get_mut(&id).and_then(|session| session.streamed.as_mut()) else {
            return Vec::new();
        };
        let mut nacks = Vec::new();
        let mut freed = Vec::new();
        for handle in streamed.streams.values() {
            let Some(ordered) = self.streams.get_mut(handle).and_then(|stream| stream.ordered.as_mut()) else {
                continue;
            };
            if !ordered.reorder.is_waiting() {
                continue;
            }
            let mut asked = Vec::new();
            // Numbers reported as gone are skipped after a while.
            ordered.tick(now, limits, &mut asked);
            freed.push(*handle);
            for (first, last) in asked {
                ask(&streamed.fragments, *handle, first, last, &mut nacks);
            }
        }
        let streams = &self.streams;
        streamed.fragments.expire(now, limits.time.saturating_add(LONGEST_PAUSE), |handle, seq| {
            let ordered = streams.get(&handle).and_then(|stream| stream.ordered.as_ref());
            ordered.is_some_and(|ordered| ordered.reorder.wants(seq))
        });
        for handle in freed {
            self.advance(handle, now);
        }
        nacks
    }

    /// Handles a piece of the account. Returns whether the account is complete.
    pub(crate) fn account(&mut self, id: u64, offset: u64, bytes: &[u8], whole: u64) -> anyhow::Result<bool> {
        let directory = self.trace_directory(id).context("there is no session")?;
        if !self.account_room(id, bytes.len()) {
            bail!("the accounts of this sender and its host are too large together");
        }
        let streamed = self.streamed(id).context("there is no session")?;
        let (account, length) = &mut streamed.account;
        if whole > LARGEST_ACCOUNT || offset != account.len() as u64 || length.is_some_and(|length| length != whole) {
            bail!("the account does not come in order");
        }
        account.extend_from_slice(bytes);
        *length = Some(whole);
        if (account.len() as u64) < whole {
            return Ok(false);
        }
        let account = std::mem::take(account);
        streamed.account_share = None;
        #[cfg(feature = "nats")]
        self.log(id, |log| log.account(&account))?;
        let account = self.last_account(id, account);
        put(&directory, ACCOUNT_PATH, &account).map(|()| true).context("cannot write the account")
    }

    /// Records that the sender no longer has these packets.
    pub(crate) fn gone(&mut self, id: u64, gone: SeqRange, now: Instant) {
        if let Some(ordered) = self.stream_of(id, gone.handle).and_then(|stream| stream.ordered.as_mut()) {
            ordered.reorder.gone(gone.first, gone.last, now);
            self.advance(gone.handle, now);
        }
    }

    pub(crate) fn end_stream(&mut self, id: u64, end: ClosedStream, now: Instant) {
        if let Some(ordered) = self.stream_of(id, end.handle).and_then(|stream| stream.ordered.as_mut()) {
            ordered.end(end, now);
            #[cfg(feature = "nats")]
            let key = ordered.key;
            #[cfg(feature = "nats")]
            if let Err(why) = self.log(id, |log| log.end(key, end)) {
                self.say(format!("{why:#}"));
            }
            // No further synchronisation releases the last packets. Their events are counted like those of other packets.
            self.storage.give(end.handle, Job::Release { upto: u64::MAX });
        }
    }

    /// Gives up missing packets, and packets that wait for space on the disk. Returns `false`, without effect, during a rotation.
    pub(crate) fn pass_gaps(&mut self, id: u64) -> bool {
        if self.is_rotating(id) {
            return false;
        }
        let Some(streamed) = self.sessions.get(&id).and_then(|session| session.streamed.as_ref()) else { return true };
        for handle in streamed.streams.values().copied() {
            if let Some(stream) = self.streams.get_mut(&handle) {
                stream.pass_gaps(|job| self.storage.give(handle, job));
            }
        }
        for handle in streamed.streams.values().copied().chain([streamed.metadata]) {
            if self.streams.get(&handle).is_some_and(|stream| !stream.view.is_closed) {
                self.storage.drop_waiting(handle);
            }
        }
        true
    }

    /// Returns, for streams with changes or for all, the lowest number that is neither stored nor given up; and the ranges given up before it.
    pub(crate) fn stored_numbers(&mut self, id: u64, all: bool) -> (Vec<AckEntry>, Vec<SeqRange>) {
        let (mut entries, mut lost) = (Vec::new(), Vec::new());
        let Some(streamed) = self.sessions.get(&id).and_then(|session| session.streamed.as_ref()) else {
            return (entries, lost);
        };
        for handle in streamed.streams.values().copied() {
            let ordered = self.streams.get_mut(&handle).and_then(|stream| stream.ordered.as_mut());
            let Some(ordered) = ordered.filter(|ordered| ordered.is_announced(streamed.connection)) else { continue };
            let mut ranges = Vec::new();
            entries.extend(ordered.news(all, &mut ranges).map(|next| AckEntry { handle, next }));
            lost.extend(ranges.into_iter().map(|(first, last)| SeqRange { handle, first, last }));
        }
        (entries, lost)
    }

    /// Returns whether a packet is neither stored, given up nor queued.
    #[cfg(feature = "nats")]
    pub(crate) fn wants(&self, handle: u64, seq: u64) -> bool {
        let ordered = self.stream(handle).and_then(|stream| stream.ordered.as_ref());
        ordered.is_some_and(|ordered| ordered.reorder.wants(seq))
    }

    /// Returns the lowest number of a stream that is neither stored nor given up; `None` if the stream does not exist.
    #[cfg(feature = "nats")]
    pub(crate) fn next_stored(&self, handle: u64) -> Option<u64> {
        self.stream(handle)?.ordered.as_ref().map(OrderedStream::next_stored)
    }

    /// Returns whether packets of a session wait for missing ones.
    #[cfg(feature = "nats")]
    pub(crate) fn has_gaps(&self, id: u64) -> bool {
        let streamed = self.session(id).and_then(|session| session.streamed.as_ref());
        let handles = streamed.map(|streamed| streamed.streams.values()).into_iter().flatten();
        let mut ordered = handles.filter_map(|handle| self.stream(*handle)?.ordered.as_ref());
        ordered.any(|ordered| ordered.reorder.is_waiting())
    }

    #[cfg(feature = "nats")]
    pub(crate) fn stream_names(&self, id: u64) -> Vec<String> {
        let streamed = self.session(id).and_then(|session| session.streamed.as_ref());
        let handles = streamed.map(|streamed| streamed.streams.values()).into_iter().flatten();
        handles.filter_map(|handle| Some(self.stream(*handle)?.place.channel.clone())).collect()
    }

    pub(crate) fn stored_metadata(&mut self, id: u64) -> u64 {
        let Some(handle) = self.streamed(id).map(|streamed| streamed.metadata) else { return 0 };
        self.stream(handle)
            .and_then(|stream| stream.view.metadata().last().map(|(_, segment)| segment.bytes))
            .unwrap_or_default()
    }

    /// Returns whether everything up to the last packets of these entries is stored or given up.
    pub(crate) fn has_all(&self, id: u64, entries: &[SyncEntry]) -> bool {
        entries.iter().all(|entry| {
            let stream = self.stream(entry.handle).filter(|stream| stream.session == id);
            let next = stream.and_then(|stream| stream.ordered.as_ref()).map(OrderedStream::next_stored);
            entry.last == NO_SEQ || next.is_none_or(|next| next > entry.last)
        })
    }

    pub(crate) fn is_all_closed(&mut self, id: u64) -> bool {
        let handles: Vec<_> =
            self.streamed(id).map_or_else(Vec::new, |streamed| streamed.streams.values().copied().collect());
        handles.iter().all(|handle| self.stream(*handle).is_none_or(|stream| stream.view.is_closed))
    }

    /// Closes the streams of the session that are complete, and returns their final counts.
    pub(crate) fn closed(&mut self, id: u64) -> Vec<StreamTotals> {
        let Some(streamed) = self.streamed(id) else { return Vec::new() };
        let (metadata, handles) = (streamed.metadata, streamed.streams.values().copied().collect::<Vec<_>>());
        let mut closed = Vec::new();
        for handle in handles {
            // Removed temporarily, because the metadata stream in the same map is borrowed.
            if !self.streams.get(&handle).is_some_and(Stream::is_ending) {
                continue;
            }
            let Some(mut stream) = self.streams.remove(&handle) else { continue };
            let metadata = self.streams.get(&metadata).map(|metadata| &metadata.view);
            let balance = stream.balance(metadata);
            let stream = self.streams.entry(handle).or_insert(stream);
            let Some(balance) = balance else { continue };
            self.counts.missing += balance.packets_lost;
            stream.give_up(|job| self.storage.give(handle, job));
            closed.push(balance);
        }
        closed
    }
}

/// Appends requests for packets; for a packet of which fragments have arrived, only for the missing ranges.
fn ask<M>(fragments: &Fragments<M>, handle: u64, first: u64, last: u64, nacks: &mut Vec<NackEntry>) {
    let whole = |first, last| NackEntry { handle, first, last, offset: 0, length: 0 };
    // Most gaps contain few packets; long ones consist mostly of numbers that were never sent.
    if last - first >= 64 {
        nacks.push(whole(first, last));
        return;
    }
    let mut from = first;
    for seq in first..=last {
        if let Some(ranges) = fragments.missing(handle, seq) {
            if from < seq {
                nacks.push(whole(from, seq - 1));
            }
            let part = |(offset, length)| NackEntry { offset, length, ..whole(seq, seq) };
            nacks.extend(ranges.into_iter().map(part));
            from = seq + 1;
        }
    }
    if from <= last {
        nacks.push(whole(from, last));
    }
}
