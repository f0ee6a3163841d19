//! The packets of one stream of a dt file, one in memory at a time.

use std::io;
use std::sync::Arc;

use datatrace::DtReader;

use super::index::Part;
use crate::source::Source;

/// Packets that lie anywhere in the file. Each is checked when it is brought into memory: one that somebody has overwritten since the
/// file was opened is passed over.
#[derive(Debug)]
pub(crate) struct SlotsWindow {
    reader: Arc<DtReader>,
    parts: Arc<[Part]>,
    /// The packet that is in memory.
    at: usize,
    held: Vec<u8>,
    length: u64,
}

impl SlotsWindow {
    pub(crate) fn new(reader: Arc<DtReader>, parts: Arc<[Part]>) -> Self {
        let length = parts.iter().map(|part| part.offset.saturating_add(part.length)).max().unwrap_or(0);
        Self { reader, parts, at: 0, held: Vec::new(), length }
    }

    /// Brings the next packet into memory that is there still, from number `from` on; where it begins.
    fn hold(&mut self, from: usize) -> u64 {
        self.held = Vec::new();
        for (index, part) in self.parts.iter().enumerate().skip(from) {
            if let Some(bytes) = part.read(&self.reader) {
                (self.at, self.held) = (index, bytes);
                return part.offset;
            }
        }
        self.at = self.parts.len();
        self.length
    }

    /// The bytes of the next packet that is there still; `None` behind the last one. For whoever wants them as they are.
    pub(crate) fn next_packet(&mut self) -> Option<&[u8]> {
        let from = if self.held.is_empty() { 0 } else { self.at + 1 };
        let there = self.at < self.parts.len() && self.hold(from) < self.length;
        there.then_some(self.held.as_slice())
    }
}

impl Source for SlotsWindow {
    fn length(&self) -> u64 {
        self.length
    }

    fn bytes(&mut self, offset: u64, _least: usize) -> io::Result<&[u8]> {
        let start = self.parts.get(self.at).map_or(u64::MAX, |part| part.offset);
        let skip = offset.checked_sub(start).and_then(|skip| usize::try_from(skip).ok());
        // What lies behind the packet is not its own.
        Ok(skip.and_then(|skip| self.held.get(skip..)).unwrap_or_default())
    }

    fn first(&mut self) -> u64 {
        self.hold(0)
    }

    fn following(&mut self, _offset: u64, _size: u64) -> u64 {
        self.hold(self.at + 1)
    }
}
