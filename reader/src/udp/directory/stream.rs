//! Writes the file of one stream.

use crate::account::StreamAccount;
use crate::checksum::sealed;
use crate::recover::RecoverError;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tracepoint_ring::channel::PacketHeader;

#[derive(Debug)]
pub(super) struct StreamFile {
    name: String,
    file: Option<File>,
    packets: u64,
    written: u64,
    /// The header of the last packet, and the number of events of the stream up to its end.
    last: Option<(PacketHeader, u64)>,
}

impl StreamFile {
    pub(super) fn new((class, instance): (u32, u64)) -> Self {
        Self { name: format!("stream_{class}_{instance}"), file: None, packets: 0, written: 0, last: None }
    }

    /// True if a packet fits after the previous ones.
    pub(super) fn fits(&self, header: &PacketHeader) -> bool {
        header.begin <= header.end
            && self.last.is_none_or(|(last, events)| {
                header.sequence > last.sequence
                    && header.begin >= last.end
                    && header.discarded >= last.discarded
                    && header.events_before >= events
            })
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Closes the file until the next packet: a trace may have more streams than a process may have open files.
    pub(super) fn close_file(&mut self) {
        self.file = None;
    }

    /// Appends a packet with `events` events. If packets before the first one are missing, an empty packet represents them.
    pub(super) fn append(
        &mut self,
        directory: &Path,
        header: &PacketHeader,
        bytes: &[u8],
        events: u64,
    ) -> Result<(), RecoverError> {
        if self.last.is_none() && header.sequence > 0 && header.events_before > 0 {
            let nothing = PacketHeader { tid: header.tid, ..PacketHeader::empty(header.stream, header.begin) };
            self.write(directory, &nothing, &sealed(nothing.bytes()), 0)?;
        }
        self.write(directory, header, bytes, events)
    }

    fn write(
        &mut self,
        directory: &Path,
        header: &PacketHeader,
        bytes: &[u8],
        events: u64,
    ) -> Result<(), RecoverError> {
        let path = directory.join(&self.name);
        let open = || match self.packets {
            0 => File::create_new(&path),
            _ => File::options().append(true).open(&path),
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open().map_err(RecoverError::write(&path))?),
        };
        file.write_all(bytes).map_err(RecoverError::write(&path))?;
        self.packets += 1;
        self.written += events;
        self.last = Some((*header, header.events_before.saturating_add(events)));
        Ok(())
    }

    /// Writes an empty packet if the end of the stream is missing; its final counts are `recorded` and `discarded`.
    pub(super) fn end(&mut self, directory: &Path, recorded: u64, discarded: u64) -> Result<(), RecoverError> {
        let Some((last, events)) = self.last else { return Ok(()) };
        if (recorded, discarded) == (events, last.discarded) {
            return Ok(());
        }
        // A gap of one shows that packets were lost: their number is unknown.
        let sequence = last.sequence.saturating_add(if recorded > events { 2 } else { 1 });
        let header = PacketHeader {
            sequence,
            discarded: discarded.max(last.discarded),
            tid: last.tid,
            events_before: recorded.max(events),
            ..PacketHeader::empty(last.stream, last.end)
        };
        self.write(directory, &header, &sealed(header.bytes()), 0)
    }

    pub(super) fn account(&self, line: &mut StreamAccount) {
        line.file.clone_from(&self.name);
        line.packets = self.packets;
        line.written = self.written;
    }
}
