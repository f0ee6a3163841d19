//! One packet of a dt file.

use datatrace::DtReader;

use super::index::{DtStream, Part};

/// A packet that was in a dt file when that was opened.
#[derive(Clone, Copy, Debug)]
pub struct DtPacket<'a> {
    pub(super) reader: &'a DtReader,
    pub(super) stream: &'a DtStream,
    pub(super) part: &'a Part,
}

impl DtPacket<'_> {
    /// The stream class.
    pub fn class(&self) -> u64 {
        self.stream.class.id
    }

    /// The instance of the class.
    pub fn instance(&self) -> Option<u64> {
        self.stream.instance
    }

    /// Where it begins in the file, in bytes; for packets without records, which stand behind the slots, a number behind its end.
    pub fn offset(&self) -> u64 {
        self.part.offset
    }

    /// Reads its bytes, header and padding included, and checks them; `None` if it was overwritten since the file was opened, or cannot
    /// be read.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        self.part.read(self.reader)
    }
}
