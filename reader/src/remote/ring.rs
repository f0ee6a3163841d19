//! The consumer side of a ring written by another process.
//!
//! ```text
//!   read `closed` ─▶ copy packets ─▶ pass them on ─▶ write `released` ─▶ the owner may reuse their sub-buffers
//! ```
//!
//! The file is accessed by system calls and not mapped, so that truncating it causes an error here and no signal.
//!
//! `released` is written byte by byte, from the lowest byte on: if one call wrote several bytes, the owner could see some of them without the
//! others. Between two bytes, the owner sees the low bytes of the new number under the high bytes of the old one. As the number only grows,
//! this value never exceeds the new number. If it is less, the ring seems fuller to the owner than it is, for a moment.

use crate::error::ReadError;
use crate::fields::Fields;
use crate::ring::{Ring, RingFile, RingPacket, Side, StreamCounters, SubBuffer};
use fileguard::CheckedFd;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use tracepoint_ring::channel::ring_offsets::{COUNTERS_SIZE, header as at};

/// A ring, and the number of its released packets.
#[derive(Debug)]
pub(super) struct RemoteRing {
    ring: Ring,
    file: Arc<RingFile>,
    /// For each side.
    released: [u64; 2],
}

impl RemoteRing {
    /// Opens a ring at the position of its last consumer. `file` must be open for reading and writing; messages call it `path`. `None` if the
    /// process has not completed the ring yet.
    ///
    /// # Errors
    /// As [`Ring::open`].
    pub(super) fn open(path: &Path, file: CheckedFd<File>) -> Result<Option<Self>, ReadError> {
        let file = Arc::new(RingFile::new(path, file).map_err(|error| ReadError::io(path, error))?);
        let Some(ring) = Ring::of(path, Box::new(Arc::clone(&file)))? else { return Ok(None) };
        let released = [ring.released(Side::Main)?, ring.released(Side::Nested)?];
        Ok(Some(Self { ring, file, released }))
    }

    /// Closes the file until its next access.
    pub(super) fn close_file(&self) {
        self.file.close();
    }

    pub(super) const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The numbers of the packets of each stream that are closed and not released.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if the file cannot be read.
    pub(super) fn waiting(&self) -> Result<[Range<u64>; 2], ReadError> {
        // One call reads the counters of both streams.
        let begins = [0, at::NESTED_COUNTERS - at::MAIN_COUNTERS];
        let mut bytes = [0; at::NESTED_COUNTERS - at::MAIN_COUNTERS + COUNTERS_SIZE];
        self.ring.fill(&mut bytes, at::MAIN_COUNTERS as u64)?;
        // Pairs with the fence of `release`, in the next round: data copied after this is as it was when the packet was closed.
        fence(Ordering::SeqCst);
        Ok(Side::ALL.map(|side| {
            let closed = StreamCounters::parse(Fields(&bytes[begins[side.index()]..])).closed;
            self.ring.slots(side).waiting(self.released[side.index()], closed)
        }))
    }

    /// Releases the sub-buffers of all packets before `end`, which must have been copied, to the owner.
    ///
    /// # Errors
    /// The error of the system call.
    pub(super) fn release(&mut self, side: Side, end: u64) -> io::Result<()> {
        let released = &mut self.released[side.index()];
        // R3: the loads of the copy come before the stores with which the owner reuses the sub-buffers; these come after its load of the
        // position written here.
        fence(Ordering::SeqCst);
        for (index, (new, old)) in end.to_le_bytes().into_iter().zip(released.to_le_bytes()).enumerate() {
            if new != old {
                self.file.write_all_at(&[new], side.released_at() + index as u64)?;
                // The owner sees the lower bytes before the upper ones.
                fence(Ordering::SeqCst);
            }
        }
        *released = end;
        Ok(())
    }

    /// A copy of the committed part of the open packet; `None` if there is none. `counters` are the stream's.
    ///
    /// # Errors
    /// As [`Ring::counters`].
    pub(super) fn open_packet(&self, side: Side, counters: &StreamCounters) -> Result<Option<RingPacket>, ReadError> {
        for found in self.ring.sub_buffers(side, counters) {
            match found? {
                SubBuffer::Packet(packet) if packet.open && packet.number == counters.closed => {
                    return Ok(Some(packet));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::test_ring as ring;
    use std::io::Write;
    use tracepoint_ring::channel::HEADER_SIZE;

    fn remote(bytes: &[u8]) -> RemoteRing {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        let file = CheckedFd::of(file).expect("an inode");
        RemoteRing::open(Path::new("ring"), file).expect("a ring").expect("completed")
    }

    fn position(remote: &RemoteRing) -> u64 {
        let mut position = [0; 8];
        remote.ring.fill(&mut position, Side::Main.released_at()).expect("read");
        u64::from_le_bytes(position)
    }

    /// While the number is being written, the owner never sees more than the new number.
    #[test]
    fn a_position_never_runs_ahead() {
        let mut remote = remote(&ring(3, &[3; 8]));
        for (from, to) in
            [(0, 1), (0xff, 0x100), (0x1ff, 0x200), (0x00ff_ffff, 0x0100_0000), (5, 0x0102_0304_0506_0708)]
        {
            let (from, to): (u64, u64) = (from, to);
            remote.file.write_all_at(&from.to_le_bytes(), Side::Main.released_at()).expect("written");
            remote.released[0] = from;
            // The number after each byte was written.
            let mut seen = from.to_le_bytes();
            for (place, byte) in to.to_le_bytes().into_iter().enumerate() {
                seen[place] = byte;
                assert!(u64::from_le_bytes(seen) <= to, "{from:#x} to {to:#x}");
            }
            remote.release(Side::Main, to).expect("released");
            assert_eq!((position(&remote), remote.released[0]), (to, to));
        }
    }

    #[test]
    fn closed_packets_are_copied_once() {
        let mut bytes = ring(3, &[3; 8]);
        bytes[328..336].copy_from_slice(&4u64.to_le_bytes());
        let mut remote = remote(&bytes);
        let [main, nested] = remote.waiting().expect("counters");
        assert_eq!((main.clone(), nested), (3..4, 0..0), "it has one sub-buffer");
        assert_eq!(remote.ring.slots(Side::Main).percent(&main), 100);
        let mut packet = Vec::new();
        let length = remote.ring().leased_packet(Side::Main, 3, &mut packet).expect("read").expect("a packet");
        assert_eq!(length, HEADER_SIZE + 8);
        assert!(packet.len() >= length);
        assert!(remote.ring().leased_packet(Side::Main, 4, &mut packet).expect("read").is_err());
        remote.release(Side::Main, 4).expect("released");
        assert_eq!(remote.waiting().expect("counters")[0], 4..4);
    }
}
