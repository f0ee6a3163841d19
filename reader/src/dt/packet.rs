//! One packet of a dt file.

use datatrace::DtReader;

use super::index::{DtStream, Part};

/// A packet that was in a dt file when the file was opened.
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

    /// Its offset in the file, in bytes. Empty packets, which are outside the slots, have numbers beyond the end of the file.
    pub fn offset(&self) -> u64 {
        self.part.offset
    }

    /// Reads and checks its bytes, header and padding included; `None` if it was overwritten since the file was opened, or cannot be read.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        self.part.read(self.reader)
    }
}
