//! The log of a published trace: its sender's messages, except packets, as frames of the stream protocol.
//!
//! The [`Hub`](crate::hub::Hub) appends `HELLO`, `METADATA`, `ANNOUNCE`, and at the end `CLOSE` and `ACCOUNT` to the file [`LOG`] in the session's
//! directory, before it acknowledges them to the sender. The publisher reads the file. A stream's handle in it is its number in the order of
//! announcement, so that it stays the same when the collector restarts or the sender reconnects.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use tracepoint_wire::nats::LONGEST_PIECE;
use tracepoint_wire::stream::{Announce, Close, ClosedStream, FRAME_HEADER, FrameHeader, Hello, Piece, ToCollector};

/// The log file in a session's directory.
pub(crate) const LOG: &str = ".publish";

/// A frame of a log, and its end offset.
#[derive(Debug)]
pub(super) struct LogFrame {
    pub(super) kind: u32,
    pub(super) body: Vec<u8>,
    pub(super) end: u64,
}

impl LogFrame {
    /// Decodes the message; `None` if it is damaged.
    pub(super) fn message(&self) -> Option<ToCollector<'_>> {
        ToCollector::decode(self.kind, &self.body).ok()
    }
}

/// Reads the frame at an offset; `None` if there is no complete one.
pub(super) fn frame_at(log: &File, offset: u64) -> io::Result<Option<LogFrame>> {
    let invalid = || io::Error::from(ErrorKind::InvalidData);
    let mut header = [0; FRAME_HEADER];
    match log.read_exact_at(&mut header, offset) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let Ok(header) = FrameHeader::decode(&header).ok_or_else(invalid)? else { return Err(invalid()) };
    let mut body = vec![0; header.size];
    match log.read_exact_at(&mut body, offset + FRAME_HEADER as u64) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    Ok(Some(LogFrame { kind: header.kind, body, end: offset + (FRAME_HEADER + header.size) as u64 }))
}

/// Appends to a log. Messages that it contains already are ignored.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: File,
    /// Size of the file in bytes.
    size: u64,
    /// Numbers of the announced streams.
    streams: BTreeMap<(u32, u64), u64>,
    metadata: u64,
    has_account: bool,
}

impl LogWriter {
    /// Creates the log in a session's directory.
    pub(crate) fn create(root: &Path, hello: &Hello<'_>) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o640).open(root.join(LOG))?;
        let mut log = Self { file, size: 0, streams: BTreeMap::new(), metadata: 0, has_account: false };
        log.append(&ToCollector::Hello(hello.clone()))?;
        Ok(log)
    }

    /// Opens an earlier collector's log for appending; `None` if there is none. Truncates it before the first incomplete frame.
    pub(crate) fn reopen(root: &Path) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).write(true).open(root.join(LOG)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let mut log = Self { file, size: 0, streams: BTreeMap::new(), metadata: 0, has_account: false };
        loop {
            let logged = match frame_at(&log.file, log.size) {
                Err(error) if error.kind() == ErrorKind::InvalidData => break,
                Ok(None) => break,
                Ok(Some(logged)) => logged,
                Err(error) => return Err(error),
            };
            log.size = logged.end;
            match logged.message() {
                Some(ToCollector::Announce(announce)) => log.number(announce.class, announce.instance),
                Some(ToCollector::Metadata(piece)) => log.metadata = piece.offset + piece.bytes.len() as u64,
                Some(ToCollector::Account(piece, whole)) => {
                    log.has_account = piece.offset + piece.bytes.len() as u64 >= whole;
                }
                _ => {}
            }
        }
        log.file.set_len(log.size)?;
        Ok(Some(log))
    }

    fn number(&mut self, class: u32, instance: u64) {
        let next = self.streams.len() as u64;
        self.streams.entry((class, instance)).or_insert(next);
    }

    /// Returns the size of the log in bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of a stream.
    pub(crate) fn number_of(&self, key: (u32, u64)) -> Option<u64> {
        self.streams.get(&key).copied()
    }

    fn append(&mut self, message: &ToCollector<'_>) -> io::Result<()> {
        let mut frame = Vec::new();
        message.encode(&mut frame);
        if let Err(error) = self.file.write_all_at(&frame, self.size) {
            // If this fails as well, the next frame overwrites the remains.
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        self.size += frame.len() as u64;
        Ok(())
    }

    /// Appends the announcement of a stream.
    pub(crate) fn announce(&mut self, announce: &Announce<'_>) -> io::Result<()> {
        let key = (announce.class, announce.instance);
        if self.streams.contains_key(&key) {
            return Ok(());
        }
        let request = self.streams.len() as u32;
        self.append(&ToCollector::Announce(Announce { request, ..*announce }))?;
        self.number(announce.class, announce.instance);
        Ok(())
    }

    /// Appends metadata.
    pub(crate) fn metadata(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // The hub rejects a piece that leaves a gap.
        let Some(known) = self.metadata.checked_sub(offset) else { return Ok(()) };
        let fresh = usize::try_from(known).ok().and_then(|known| bytes.get(known..)).unwrap_or_default();
        for bytes in fresh.chunks(LONGEST_PIECE) {
            self.append(&ToCollector::Metadata(Piece { offset: self.metadata, bytes }))?;
            self.metadata += bytes.len() as u64;
        }
        Ok(())
    }

    /// Appends the end of a stream.
    pub(crate) fn end(&mut self, key: (u32, u64), end: ClosedStream) -> io::Result<()> {
        let Some(handle) = self.number_of(key).filter(|_| !self.has_account) else { return Ok(()) };
        self.append(&ToCollector::Close(Close { whole: false, entries: vec![ClosedStream { handle, ..end }] }))
    }

    /// Appends the complete account.
    pub(crate) fn account(&mut self, text: &[u8]) -> io::Result<()> {
        if self.has_account {
            return Ok(());
        }
        for (number, bytes) in text.chunks(LONGEST_PIECE).enumerate() {
            let piece = Piece { offset: (number * LONGEST_PIECE) as u64, bytes };
            self.append(&ToCollector::Account(piece, text.len() as u64))?;
        }
        self.has_account = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::HELLO;

    fn hello() -> Hello<'static> {
        Hello { host: "h", session: "s", process: "p-1-2", ..HELLO }
    }

    fn announce(class: u32) -> Announce<'static> {
        Announce { request: 9, class, instance: 1, packet_size: 4096, names: ["h", "s", "p-1-2", "c", "c_1"] }
    }

    #[test]
    fn a_log_goes_on_behind_its_last_whole_frame_and_has_nothing_twice() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let root = place.path();
        let mut log = LogWriter::create(root, &hello())?;
        log.metadata(0, b"one")?;
        log.announce(&announce(3))?;
        let whole = log.size();
        log.announce(&announce(4))?;
        let size = log.size();
        let bytes = std::fs::read(root.join(LOG))?;
        // A killed collector may leave any part of the last frame.
        for cut in whole..size {
            std::fs::write(root.join(LOG), &bytes[..cut as usize])?;
            let mut log = LogWriter::reopen(root)?.expect("a log");
            assert_eq!((log.size(), log.number_of((3, 1)), log.number_of((4, 1))), (whole, Some(0), None), "{cut}");
            log.announce(&announce(3))?;
            log.metadata(0, b"one")?;
            assert_eq!(log.size(), whole);
            log.announce(&announce(4))?;
            log.metadata(1, b"netwo")?;
            assert_eq!((log.number_of((4, 1)), log.size() > size), (Some(1), true));
        }
        assert!(LogWriter::reopen(&root.join("other"))?.is_none());
        Ok(())
    }
}
