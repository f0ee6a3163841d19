//! The stream file written by recovery.

use super::RecoverError;
use super::target::Target;
use crate::account::{PriorCounts, StreamAccount};
use crate::checksum::sealed;
use fileguard::GuardedFd;
use std::fs::File;
use std::io::Write;
use tracepoint_ring::channel::PacketHeader;

/// A stream file. It is created with the first packet that has records.
#[derive(Debug)]
pub(super) struct StreamFile<'a> {
    target: &'a Target,
    name: String,
    file: Option<GuardedFd<File>>,
    /// The empty packet at the beginning of the stream.
    first: PacketHeader,
    /// An upper bound for the part of the stream in removed chunks, which is not in this file.
    removed: Option<PriorCounts>,
    before: PriorCounts,
    packets: u64,
    /// Number of records written.
    records: u64,
}

impl<'a> StreamFile<'a> {
    /// `removed` is an upper bound for the part of the stream in removed chunks.
    pub(super) fn new(target: &'a Target, name: String, first: PacketHeader, removed: Option<PriorCounts>) -> Self {
        Self { target, name, file: None, first, removed, before: PriorCounts::default(), packets: 0, records: 0 }
    }

    /// Makes the file begin with this packet, after the removed chunks: a ring may still have packets that were in them.
    fn begin_behind(&mut self, removed: PriorCounts, next: &PacketHeader) {
        self.before.recorded = removed.recorded.min(next.events_before);
        self.before.written = removed.written.min(self.before.recorded);
        self.before.packets = removed.packets.min(next.sequence.saturating_sub(1));
        self.before.discarded = removed.discarded.min(next.discarded);
        self.first = PacketHeader {
            begin: next.begin,
            end: next.begin,
            sequence: next.sequence.saturating_sub(1),
            events_before: self.before.recorded,
            discarded: self.before.discarded,
            ..self.first
        };
    }

    /// Appends a packet with `records` records.
    pub(super) fn write(&mut self, packet: &[u8], records: u64) -> Result<(), RecoverError> {
        let path = self.target.path().join(&self.name);
        if let Some(removed) = self.removed.take() {
            self.begin_behind(removed, &PacketHeader::parse(packet));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file = self.target.create_file(&self.name)?;
                file.write_all(&sealed(self.first.bytes())).map_err(RecoverError::write(&path))?;
                self.packets += 1;
                none.insert(GuardedFd::new(file).map_err(RecoverError::write(&path))?)
            }
        };
        file.get().and_then(|mut file| file.write_all(packet)).map_err(RecoverError::write(&path))?;
        self.packets += 1;
        self.records += records;
        Ok(())
    }

    /// Appends the last packet, and completes the stream's line in the account.
    pub(super) fn finish(mut self, last: &PacketHeader, account: StreamAccount) -> Result<StreamAccount, RecoverError> {
        self.write(&sealed(last.bytes()), 0)?;
        let before = self.before;
        let (packets, written) =
            (before.packets.saturating_add(self.packets), before.written.saturating_add(self.records));
        Ok(StreamAccount { file: self.name, packets, written, before, ..account })
    }
}
