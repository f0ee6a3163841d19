//! The stream file that recovery writes.

use super::RecoverError;
use super::target::Target;
use crate::account::StreamAccount;
use crate::checksum::sealed;
use std::fs::File;
use std::io::Write;
use tracepoint_ring::channel::PacketHeader;

/// A stream file. It is created with the first packet that has records.
#[derive(Debug)]
pub(super) struct StreamFile<'a> {
    target: &'a Target,
    name: String,
    file: Option<File>,
    /// The empty packet with which the stream begins.
    first: PacketHeader,
    packets: u64,
    /// Records that were written.
    records: u64,
}

impl<'a> StreamFile<'a> {
    pub(super) fn new(target: &'a Target, name: String, first: PacketHeader) -> Self {
        Self { target, name, file: None, first, packets: 0, records: 0 }
    }

    /// Appends a packet with so many records.
    pub(super) fn write(&mut self, packet: &[u8], records: u64) -> Result<(), RecoverError> {
        let path = self.target.path().join(&self.name);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file = self.target.create_file(&self.name)?;
                file.write_all(&sealed(self.first.bytes())).map_err(RecoverError::write(&path))?;
                self.packets += 1;
                none.insert(file)
            }
        };
        file.write_all(packet).map_err(RecoverError::write(&path))?;
        self.packets += 1;
        self.records += records;
        Ok(())
    }

    /// Appends the last packet, and completes the stream's line in the account.
    pub(super) fn finish(mut self, last: &PacketHeader, account: StreamAccount) -> Result<StreamAccount, RecoverError> {
        self.write(&sealed(last.bytes()), 0)?;
        Ok(StreamAccount { file: self.name, packets: self.packets, written: self.records, ..account })
    }
}
