//! The packets of one stream of a dt file, one of which is in memory at a time.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use datatrace::{DtReader, SlotPlace};

use super::index::{PacketBytes, Part};
use crate::loss::Damage;
use crate::source::Source;

/// Packets at arbitrary positions in the file. Each is checked when it is read; packets overwritten since the file was opened are skipped. A
/// packet that cannot be read ends the stream.
#[derive(Clone, Debug)]
pub(crate) struct SlotsWindow {
    reader: Arc<DtReader>,
    parts: Arc<[Part]>,
    /// The range of parts to read.
    range: Range<usize>,
    /// The index of the packet in memory.
    at: usize,
    held: Vec<u8>,
    /// The error of the system, if the packet could not be read.
    failed: Option<(io::ErrorKind, String)>,
    length: u64,
}

impl SlotsWindow {
    pub(crate) fn new(reader: Arc<DtReader>, parts: Arc<[Part]>) -> Self {
        let length = parts.iter().map(|part| part.offset.saturating_add(part.length)).max().unwrap_or(0);
        let range = 0..parts.len();
        Self { reader, parts, range, at: 0, held: Vec::new(), failed: None, length }
    }

    /// All packets of the stream.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// A window that contains only this packet.
    pub(crate) fn only(&self, index: usize) -> Self {
        Self { range: index..(index + 1).min(self.parts.len()), held: Vec::new(), ..self.clone() }
    }

    /// The total size of its packets in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.parts[self.range.clone()].iter().fold(0, |sum, part| part.length.saturating_add(sum))
    }

    /// Splits off the first packets, about `bytes` bytes; `None` if there are none.
    pub(crate) fn split(&mut self, bytes: u64) -> Option<Self> {
        let (mut end, mut sum) = (self.range.start, 0u64);
        while end < self.range.end && sum < bytes {
            sum = self.parts[end].length.saturating_add(sum);
            end += 1;
        }
        let first = std::mem::replace(&mut self.range.start, end)..end;
        (!first.is_empty()).then(|| Self { range: first, held: Vec::new(), ..self.clone() })
    }

    /// True if the packet in memory could be read.
    pub(crate) const fn is_readable(&self) -> bool {
        self.failed.is_none()
    }

    /// Reads the next packet that was not overwritten, starting with number `from`, and returns its offset. Also returns the offset of a packet that
    /// cannot be read.
    fn hold(&mut self, from: usize) -> u64 {
        self.hold_by(from, DtReader::bytes_at)
    }

    fn hold_by(
        &mut self,
        from: usize,
        read: impl Fn(&DtReader, &SlotPlace) -> Result<Option<Vec<u8>>, datatrace::ReadError>,
    ) -> u64 {
        (self.held, self.failed) = (Vec::new(), None);
        for index in from..self.range.end {
            let part = &self.parts[index];
            self.at = index;
            let bytes = match &part.bytes {
                PacketBytes::Held(bytes) => Ok(Some(bytes.to_vec())),
                PacketBytes::Slot(place) => read(&self.reader, place),
            };
            match bytes {
                Ok(None) => {}
                Ok(Some(bytes)) => {
                    self.held = bytes;
                    return part.offset;
                }
                Err(error) => {
                    let kind = match &error {
                        datatrace::ReadError::Io { source, .. } => source.kind(),
                        _ => io::ErrorKind::Other,
                    };
                    self.failed = Some((kind, error.to_string()));
                    return part.offset;
                }
            }
        }
        self.at = self.range.end;
        self.length
    }

    /// The bytes of packet number `next`, or of the next one that was not overwritten. Sets `next` to the number of the following packet. `None`
    /// after the last one.
    ///
    /// # Errors
    /// The system's error. The next call skips the packet.
    pub(crate) fn next_packet(&mut self, next: &mut usize) -> Result<Option<&[u8]>, Damage> {
        let offset = self.hold(*next);
        *next = self.at + 1;
        match &self.failed {
            Some((_, reason)) => {
                let file = self.reader.path().to_owned();
                Err(Damage { file, offset, reason: format!("a packet cannot be read: {reason}") })
            }
            None if self.at < self.range.end => Ok(Some(&self.held)),
            None => Ok(None),
        }
    }
}

impl Source for SlotsWindow {
    fn length(&self) -> u64 {
        self.length
    }

    fn bytes(&mut self, offset: u64, _least: usize) -> io::Result<&[u8]> {
        if let Some((kind, reason)) = &self.failed {
            return Err(io::Error::new(*kind, reason.as_str()));
        }
        let start = self.parts.get(self.at).map_or(u64::MAX, |part| part.offset);
        let skip = offset.checked_sub(start).and_then(|skip| usize::try_from(skip).ok());
        // Bytes after the packet do not belong to it.
        Ok(skip.and_then(|skip| self.held.get(skip..)).unwrap_or_default())
    }

    fn first(&mut self) -> u64 {
        self.hold(self.range.start)
    }

    fn following(&mut self, _offset: u64, _size: u64) -> u64 {
        self.hold(self.at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packets of a file of two slots.
    fn window() -> Result<SlotsWindow, datatrace::ReadError> {
        let header = [1, 4, 2, 1, 4_u32].into_iter().flat_map(u32::to_le_bytes);
        let reader = DtReader::from_bytes(header.chain(*b"1st.2nd.").collect())?;
        let place = |slot: datatrace::Slot<'_>| Part {
            offset: slot.offset(),
            length: 4,
            bytes: PacketBytes::Slot(slot.place()),
            begin: 0,
            end: None,
            sequence: None,
            before: None,
        };
        let parts = reader.slots().map(|slot| slot.map(place)).collect::<Result<_, _>>()?;
        Ok(SlotsWindow::new(Arc::new(reader), parts))
    }

    fn refused(reader: &DtReader, _: &SlotPlace) -> Result<Option<Vec<u8>>, datatrace::ReadError> {
        let source = io::Error::from(io::ErrorKind::StaleNetworkFileHandle);
        Err(datatrace::ReadError::Io { path: reader.path().to_owned(), source })
    }

    #[test]
    fn unreadable_slots_are_not_reported_as_overwritten() -> Result<(), Box<dyn std::error::Error>> {
        let mut window = window()?;
        assert_eq!((window.hold_by(1, |_, _| Ok(None)), window.bytes(28, 1)?), (28, [].as_slice()), "overwritten");
        assert_eq!(window.hold_by(1, refused), 24, "it has its place");
        let error = window.bytes(24, 1).err().ok_or("it was read")?;
        assert_eq!(error.kind(), io::ErrorKind::StaleNetworkFileHandle);
        assert_eq!((window.hold(0), window.bytes(20, 1)?), (20, b"1st.".as_slice()), "nothing is left of it");
        Ok(())
    }

    #[test]
    fn packets_are_read_unchanged() -> Result<(), Box<dyn std::error::Error>> {
        let (mut window, mut next) = (window()?, 0);
        for packet in [Some(b"1st.".as_slice()), Some(b"2nd."), None, None] {
            assert_eq!(window.next_packet(&mut next)?, packet);
        }
        Ok(())
    }
}
