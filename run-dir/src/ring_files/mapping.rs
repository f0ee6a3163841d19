//! Ring memory: mapped from a file, or anonymous.
#![expect(unsafe_code, reason = "maps files, and implements the unsafe trait RingMemory")]

#[cfg_attr(not(target_os = "linux"), path = "mapping/elsewhere.rs")]
mod system;

use super::reservation::Reservation;
use crate::session_dir::ProcessDir;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::process;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_reader::internal::Bytes;
use tracepoint_ring::channel::RingMemory;

/// The smallest page size of all supported architectures.
const PAGE: usize = 4096;
/// Size of the unit of loads, in bytes.
const WORD: usize = 8;

/// The directory and the name of a mapped file.
pub(super) type FileName = (Arc<ProcessDir>, String);

/// A resident mapping. It is not inherited by forked children (`MADV_DONTFORK`).
#[derive(Debug)]
pub(super) struct Mapping {
    map: ManuallyDrop<MmapRaw>,
    base: NonNull<u8>,
    /// The process that mapped it.
    process: u32,
    /// The mapped file; `None` for anonymous memory.
    file: Option<FileName>,
    reservation: Reservation,
    /// `None` if truncation of the file is not handled.
    guarded: Option<system::MappingGuard>,
}

impl Mapping {
    /// Maps private memory of `len` bytes.
    pub(super) fn anonymous(len: usize, reservation: Reservation) -> io::Result<Self> {
        let mapping = Self::new(MmapOptions::new().len(len).map_anon()?.into(), None, reservation)?;
        mapping.make_resident(0..len)?;
        Ok(mapping)
    }

    fn new(map: MmapRaw, file: Option<FileName>, reservation: Reservation) -> io::Result<Self> {
        let base = NonNull::new(map.as_mut_ptr()).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = ManuallyDrop::new(map);
        let mapping = Self { map, base, process: process::id(), file, reservation, guarded: None };
        system::keep_from_children(&mapping.map)?;
        Ok(mapping)
    }

    /// Makes these bytes resident. They are zero, and their space is allocated if they are in a file. They are not accessed concurrently.
    fn make_resident(&self, bytes: Range<usize>) -> io::Result<()> {
        assert!(bytes.end <= self.map.len(), "inside the mapping");
        if !system::populate(&self.map, &bytes)? {
            for offset in bytes.step_by(PAGE) {
                // SAFETY: inside the mapping, as just asserted, and nothing else accesses the page, which is zero. Volatile, so that
                // the store is not optimised away.
                unsafe { self.base.as_ptr().add(offset).write_volatile(0) };
            }
        }
        Ok(())
    }

    /// Returns the memory of these bytes to the system. They are part of a ring's packets, which nothing accesses at the moment.
    fn release(&self, bytes: &Range<usize>) -> io::Result<()> {
        assert!(bytes.end <= self.map.len(), "inside the mapping");
        // SAFETY: inside the mapping, as just asserted. The bytes are zero afterwards, which the callers expect, and nothing refers to them.
        unsafe { system::release(&self.map, self.file.is_some(), bytes) }
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Panics
    ///
    /// If they do not fit into the mapping.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.map.len()), "inside the mapping");
        // SAFETY: inside the mapping, as just asserted. `bytes` does not overlap it: only raw pointers refer to the mapping. `self`
        // is borrowed exclusively, so no ring has it yet.
        unsafe { self.base.as_ptr().add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The guard is dropped before the unmapping: afterwards another mapping may be placed at these addresses.
        self.guarded = None;
        // A forked child has no mapping at these addresses, or by now an unrelated one, and must not unmap it.
        if process::id() == self.process {
            // SAFETY: dropped only here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.map) };
        }
    }
}

// SAFETY: plain bytes of the process's address space, not bound to a thread. The pointer is that of `map`, which is Send itself.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives access to the address and the length only.
unsafe impl Sync for Mapping {}

// SAFETY: `new` is given `len` bytes, mapped readable and writable, at a multiple of the page size, which is a multiple of 4096; they stay
// mapped until the value is dropped. For a ring, this process made the file for this mapping alone, under a new name, in a directory that
// belongs to this user, or it is private memory; no other code of this process maps it, and it is resident, and zero except for the identity
// page, which the parent module writes. The file of `shared` holds words, which all processes access as atomics, and for which any
// value is valid. Another process of the same user could write to a file maliciously, as it could write to this process's memory. It could
// also truncate it: that ends this process by SIGBUS or, if the mapping is guarded, makes `is_whole` false. The space is allocated
// beforehand, so no store meets a full file system.
unsafe impl RingMemory for Mapping {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.map.len()
    }

    fn is_whole(&self) -> bool {
        self.guarded.as_ref().is_none_or(system::MappingGuard::is_whole)
    }

    fn give_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.release(&bytes)?;
        self.reservation.shrink(bytes.len());
        Ok(())
    }

    fn take_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.reservation.grow(bytes.len())?;
        let allocated = self.file.as_ref().map_or(Ok(()), |file| {
            system::allocate_again(file, self.map.len(), &bytes)?;
            self.reservation.check_allocated()
        });
        let made = allocated.and_then(|()| self.make_resident(bytes.clone()));
        made.inspect_err(|_| {
            // A part of it may be allocated. If that cannot be released, the next attempt uses it.
            let _ = self.release(&bytes);
            self.reservation.shrink(bytes.len());
        })
    }
}

/// A mapping that is also copied for snapshots.
#[derive(Debug)]
pub(super) struct SharedMapping(pub(super) Arc<Mapping>);

// SAFETY: as for the mapping itself, which lives at least as long as this value. The other owners only copy from it ([`Bytes`]).
unsafe impl RingMemory for SharedMapping {
    fn base(&self) -> NonNull<u8> {
        self.0.base()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_whole(&self) -> bool {
        self.0.is_whole()
    }

    fn give_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.0.give_back(bytes)
    }

    fn take_back(&self, bytes: Range<usize>) -> io::Result<()> {
        self.0.take_back(bytes)
    }
}

/// Copies words that other threads may be writing.
impl Bytes for Mapping {
    fn length(&self) -> io::Result<u64> {
        Ok(self.map.len() as u64)
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buffer.len().next_multiple_of(WORD)).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end > self.map.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !start.is_multiple_of(WORD) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (index, bytes) in buffer.chunks_mut(WORD).enumerate() {
            // SAFETY: an aligned word inside the mapping, as just checked. What publishes a ring's contents, and the counters, are stores of
            // atomics. The bytes of a record are stored as plain bytes, and are either committed before this load (C1), or in a slot that is
            // being reused: the reader then finds the magic or the number of the packet changed (C2), and drops the copy, as every reader
            // of a seqlock does.
            let word = unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(start + index * WORD).cast()) };
            // C3: Acquire: before all later loads of the reader; pairs with the stores of C1, C2, R2 and H1.
            let word = u64::from_le(word.load(Ordering::Acquire)).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        Ok(())
    }
}
