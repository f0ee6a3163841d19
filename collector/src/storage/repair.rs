//! Repairs the files of a killed collector.
//!
//! A session that is being written has the file [`MARK`] in its directory. When a collector starts, it looks for these marks below its output
//! directory. In a marked session it removes index entries that are incomplete or whose packet is, and truncates each stream file after the packet of
//! its last entry. A stream without an index stays unchanged. Packetised metadata loses an incomplete packet at its end.

use super::file::{UNNAMED, index_path};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tracepoint_wire::relay::{IndexFile, METADATA_CHANNEL};

/// The mark in the directory of a session that is being written.
pub(crate) const MARK: &str = ".collecting";
/// The directory in which a session's next chunk is prepared. It is useless if the collector is killed before the rename.
pub(crate) const NEXT_CHUNK: &str = ".next-chunk";
/// The first bytes of a metadata packet, in either byte order.
const METADATA_MAGIC: u32 = 0x75D1_1D57;
/// Maximum depth of the search.
const DEEPEST: usize = 24;

/// Results of the search below an output directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepairReport {
    /// Total size of all files in bytes.
    pub(crate) bytes: u64,
    /// Number of sessions that were being written.
    pub(crate) sessions: u64,
    /// Number of bytes of incomplete packets that were removed.
    pub(crate) cut_off: u64,
}

/// Repairs all sessions below `directory` that were being written.
pub(crate) fn repair(directory: &Path) -> io::Result<RepairReport> {
    let mut found = RepairReport::default();
    search(directory, false, DEEPEST, &mut found)?;
    Ok(found)
}

fn search(directory: &Path, is_open: bool, depth: usize, found: &mut RepairReport) -> io::Result<()> {
    let mark = directory.join(MARK);
    let is_marked = mark.symlink_metadata().is_ok();
    let is_open = is_open || is_marked;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() && is_open && entry.file_name() == NEXT_CHUNK {
            std::fs::remove_dir_all(&path)?;
        } else if kind.is_dir() && depth > 0 {
            search(&path, is_open, depth - 1, found)?;
        } else if kind.is_file() && is_open && entry.file_name() == UNNAMED {
            std::fs::remove_file(&path)?;
        } else if kind.is_file() && entry.file_name() != MARK {
            let before = entry.metadata()?.len();
            let after = if is_open { repair_file(&path, before)? } else { before };
            found.bytes += after;
            found.cut_off += before - after;
        }
    }
    if is_marked {
        found.sessions += 1;
        std::fs::remove_file(mark)?;
    }
    Ok(())
}

/// Truncates an incomplete end of a file. Returns its size afterwards.
fn repair_file(path: &Path, size: u64) -> io::Result<u64> {
    let whole = if path.file_name().is_some_and(|name| name == METADATA_CHANNEL) {
        whole_metadata(&File::open(path)?, size)?
    } else {
        match index_path(path).map(|path| OpenOptions::new().read(true).write(true).open(path)) {
            Some(Ok(index)) => whole_packets(&index, size)?,
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => size,
        }
    };
    if whole < size {
        OpenOptions::new().write(true).open(path)?.set_len(whole)?;
    }
    Ok(whole)
}

/// Removes incomplete entries. Returns the end of the last packet that has one.
fn whole_packets(index: &File, size: u64) -> io::Result<u64> {
    let mut header = [0; IndexFile::HEADER];
    let Some(format) = index.read_exact_at(&mut header, 0).ok().and_then(|()| IndexFile::of_header(&header)) else {
        return Ok(size);
    };
    let entry_size = format.entry_size() as u64;
    let mut entries = (index.metadata()?.len() - IndexFile::HEADER as u64) / entry_size;
    let mut bytes = vec![0; entry_size as usize];
    let mut whole = 0;
    while entries > 0 {
        index.read_exact_at(&mut bytes, IndexFile::HEADER as u64 + (entries - 1) * entry_size)?;
        if let Some((offset, entry)) = format.entry(&bytes) {
            whole = offset.saturating_add(entry.packet_size / 8);
            if whole <= size {
                break;
            }
        }
        entries -= 1;
        whole = 0;
    }
    index.set_len(IndexFile::HEADER as u64 + entries * entry_size)?;
    Ok(whole)
}

/// Returns the end of the last complete packet of packetised metadata; for plain text, the size itself.
fn whole_metadata(file: &File, size: u64) -> io::Result<u64> {
    let mut offset = 0;
    loop {
        let mut header = [0; 37];
        if size - offset < header.len() as u64 {
            return Ok(if offset == 0 { size } else { offset });
        }
        file.read_exact_at(&mut header, offset)?;
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let read = match u32::from_le_bytes(word(0)) {
            METADATA_MAGIC => u32::from_le_bytes,
            magic if magic.swap_bytes() == METADATA_MAGIC => u32::from_be_bytes,
            _ if offset == 0 => return Ok(size),
            _ => return Ok(offset),
        };
        let bytes = u64::from(read(word(28))) / 8;
        if bytes < header.len() as u64 || offset + bytes > size {
            return Ok(if offset == 0 { size } else { offset });
        }
        offset += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Files, Packet, SequencedPacket};
    use super::*;
    use crate::storage::file::OpenFiles;
    use tracepoint_wire::relay::Index;

    fn packet(size: usize) -> SequencedPacket {
        SequencedPacket { sequence: 0, packet: Packet::new(vec![7; size], 0, None), index: Some(Index::default()) }
    }

    #[test]
    fn an_incomplete_packet_is_cut_off_wherever_it_ends() -> io::Result<()> {
        let sizes = [100_u64, 40, 60];
        for cut in 0..=200_u64 {
            let place = tempfile::tempdir()?;
            let path = place.path().join("c_0");
            let mut files = OpenFiles::new(Files::create(&path, IndexFile { is_long: true }, true)?);
            for size in sizes {
                files.packets(&[packet(size as usize)])?;
            }
            drop(files);
            OpenOptions::new().write(true).open(&path)?.set_len(cut)?;
            File::create(place.path().join(MARK))?;
            let found = repair(place.path())?;
            let (whole, entries) = match cut {
                0..100 => (0, 0),
                100..140 => (100, 1),
                140..200 => (140, 2),
                _ => (200, 3),
            };
            assert_eq!(path.metadata()?.len(), whole, "{cut}");
            let index = index_path(&path).expect("a path");
            assert_eq!(index.metadata()?.len(), 16 + 72 * entries);
            assert_eq!((found.sessions, found.cut_off), (1, cut - whole));
            // Without a mark, files stay unchanged.
            assert_eq!(
                repair(place.path())?,
                RepairReport { bytes: whole + 16 + 72 * entries, ..RepairReport::default() }
            );
        }
        Ok(())
    }

    #[test]
    fn incomplete_index_entries_and_metadata_packets_are_cut_off() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let path = place.path().join("c_0");
        let mut files = OpenFiles::new(Files::create(&path, IndexFile { is_long: false }, true)?);
        for size in [100, 40] {
            files.packets(&[packet(size)])?;
        }
        let index = index_path(&path).expect("a path");
        OpenOptions::new().write(true).open(&index)?.set_len(16 + 56 + 55)?;
        let mut metadata = Vec::new();
        for _ in 0..2 {
            let start = metadata.len();
            metadata.resize(start + 64, 0_u8);
            metadata[start..start + 4].copy_from_slice(&METADATA_MAGIC.to_le_bytes());
            metadata[start + 28..start + 32].copy_from_slice(&(64_u32 * 8).to_le_bytes());
        }
        for (length, whole) in [(128, 128_u64), (127, 64), (64, 64), (63, 63)] {
            std::fs::write(place.path().join("metadata"), &metadata[..length])?;
            File::create(place.path().join(MARK))?;
            repair(place.path())?;
            assert_eq!(place.path().join("metadata").metadata()?.len(), whole, "{length}");
        }
        std::fs::write(place.path().join("metadata"), "/* CTF 1.8 */ and more text than a header has")?;
        File::create(place.path().join(MARK))?;
        repair(place.path())?;
        assert_eq!(place.path().join("metadata").metadata()?.len(), 45);
        assert_eq!((path.metadata()?.len(), index.metadata()?.len()), (100, 16 + 56));
        Ok(())
    }

    #[test]
    fn packets_that_belong_to_the_next_chunk_are_moved() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let create = |name: &str| {
            std::fs::create_dir(place.path().join(name))?;
            Files::create(&place.path().join(name).join("c_0"), IndexFile { is_long: true }, true)
        };
        let mut old = OpenFiles::new(create("old")?);
        for number in 0..4_u8 {
            let index = Some(Index { packet_number: number.into(), ..Index::default() });
            old.packets(&[SequencedPacket { sequence: 0, packet: Packet::new(vec![number; 10], 6, None), index }])?;
        }
        let mut new = OpenFiles::new(create("new")?);
        assert_eq!(new.take_tail(&mut old, 2)?, 2);
        assert_eq!((old.bytes, old.entries, new.bytes, new.entries), (32, 2, 32, 2));
        let (old_bytes, new_bytes) =
            (std::fs::read(place.path().join("old/c_0"))?, std::fs::read(place.path().join("new/c_0"))?);
        assert_eq!((old_bytes.len(), old_bytes[16], new_bytes[0], new_bytes[16], new_bytes[10]), (32, 1, 2, 3, 0));
        assert_eq!(place.path().join("old/index/c_0.idx").metadata()?.len(), 16 + 144);
        let mut third = OpenFiles::new(create("third")?);
        assert_eq!(third.take_tail(&mut new, 9)?, 0);
        Ok(())
    }
}
