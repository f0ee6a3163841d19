//! The files of one stream.

use super::{Packet, SequencedPacket};
use crate::shares::Share;
use rustix::fs::{AtFlags, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracepoint_wire::relay::{Index, IndexFile, METADATA_CHANNEL};

/// The files of a stream.
#[derive(Debug)]
pub(crate) struct Files {
    data: Arc<File>,
    index: Option<(Arc<File>, PathBuf)>,
    format: IndexFile,
    /// The bytes and entries that they contain already.
    bytes: u64,
    entries: u64,
    /// For metadata without bytes.
    unnamed: Option<UnnamedMetadata>,
    pub(crate) share: Option<Arc<Share>>,
}

/// The directory of a metadata file that gets its name with its first bytes. Readers would take a directory with an empty one for a damaged trace.
#[derive(Debug)]
struct UnnamedMetadata(File);

/// The name of a metadata file before that.
pub(super) const UNNAMED: &str = ".metadata";

impl UnnamedMetadata {
    /// Renames the file. The directory itself may have been renamed meanwhile.
    fn name(&self) -> io::Result<()> {
        match renameat(&self.0, UNNAMED, &self.0, METADATA_CHANNEL) {
            // Metadata that replaced this file has the name.
            Err(Errno::NOENT) if statat(&self.0, METADATA_CHANNEL, AtFlags::empty()).is_ok() => Ok(()),
            named => Ok(named?),
        }
    }
}

/// The readable part of one file of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) data: Arc<File>,
    index: Option<Arc<File>>,
    format: IndexFile,
    /// Number of packets that viewers may read.
    pub(crate) entries: u64,
    /// Number of packets in a complete file.
    pub(crate) total: Option<u64>,
    /// Number of bytes of metadata that viewers may read.
    pub(crate) bytes: u64,
    share: Option<Arc<Share>>,
}

impl Segment {
    /// Returns the share that these files hold.
    pub(crate) fn share(&self) -> Option<&Share> {
        self.share.as_deref()
    }

    /// Returns whether the file is complete and has packets that viewers may not read yet.
    pub(crate) fn hides_packets(&self) -> bool {
        self.total.is_some_and(|total| self.entries < total)
    }

    /// Opens a stream's files and index for reading while another `Files` writes them.
    #[cfg(feature = "nats")]
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let index = File::open(index_path(path).ok_or(io::ErrorKind::NotFound)?)?;
        let mut header = [0; IndexFile::HEADER];
        index.read_exact_at(&mut header, 0)?;
        let format = IndexFile::of_header(&header).ok_or(io::ErrorKind::InvalidData)?;
        let data = Arc::new(File::open(path)?);
        Ok(Self { data, index: Some(Arc::new(index)), format, entries: 0, total: None, bytes: 0, share: None })
    }

    /// Returns the number of packets in the file now. A packet is written before its index entry.
    #[cfg(feature = "nats")]
    pub(crate) fn written(&self) -> io::Result<u64> {
        let size = self.index.as_ref().ok_or(io::ErrorKind::NotFound)?.metadata()?.len();
        Ok(size.saturating_sub(IndexFile::HEADER as u64) / self.format.entry_size() as u64)
    }

    /// Returns the offset and the index of a packet. Costs one read of 72 bytes.
    pub(crate) fn entry(&self, number: u64) -> io::Result<(u64, Index)> {
        let file = self.index.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = [0; 72];
        let bytes = &mut bytes[..self.format.entry_size()];
        file.read_exact_at(bytes, entry_offset(self.format, number))?;
        self.format.entry(bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Returns the total size of the files below a directory, as far as it can be read.
pub(crate) fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.fold(0, |sum, entry| match entry.metadata() {
        Ok(found) if found.is_dir() => sum + bytes_below(&entry.path()),
        Ok(found) if found.is_file() => sum + found.len(),
        _ => sum,
    })
}

fn entry_offset(format: IndexFile, number: u64) -> u64 {
    IndexFile::HEADER as u64 + number * format.entry_size() as u64
}

/// Creates a file that does not exist. Does not follow symbolic links.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o640).open(path)
}

/// Returns the path of the index for a stream file: `index/NAME.idx` in the same directory.
pub(super) fn index_path(data: &Path) -> Option<PathBuf> {
    let mut name = data.file_name()?.to_owned();
    name.push(".idx");
    Some(data.parent()?.join("index").join(name))
}

impl Files {
    /// Creates a stream file in an existing directory, and its index if it has one.
    pub(crate) fn create(path: &Path, format: IndexFile, is_indexed: bool) -> io::Result<Self> {
        let index = match index_path(path).filter(|_| is_indexed) {
            None => None,
            Some(path) => {
                if let Some(directory) = path.parent() {
                    std::fs::create_dir_all(directory)?;
                }
                let mut file = create(&path)?;
                file.write_all(&format.header())?;
                Some((Arc::new(file), path))
            }
        };
        Ok(Self { data: Arc::new(create(path)?), index, format, bytes: 0, entries: 0, unnamed: None, share: None })
    }

    /// Creates a metadata file in an existing directory. It gets its name with its first bytes.
    pub(crate) fn create_metadata(directory: &Path) -> io::Result<Self> {
        if directory.join(METADATA_CHANNEL).symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let data = Arc::new(create(&directory.join(UNNAMED))?);
        let unnamed = Some(UnnamedMetadata(File::open(directory)?));
        let format = IndexFile { is_long: true };
        Ok(Self { data, index: None, format, bytes: 0, entries: 0, unnamed, share: None })
    }

    /// Removes the metadata of a directory, to be replaced by a new file.
    pub(crate) fn remove_metadata(directory: &Path) -> io::Result<()> {
        for name in [METADATA_CHANNEL, UNNAMED] {
            match std::fs::remove_file(directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens the files of an earlier collector's stream, after their repair, to append to them. Metadata if they have no index.
    pub(crate) fn reopen(path: &Path, is_indexed: bool) -> io::Result<Self> {
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let data = open(path)?;
        let bytes = io::Seek::seek(&mut &data, io::SeekFrom::End(0))?;
        let data = Arc::new(data);
        let format = IndexFile { is_long: true };
        let Some(index) = index_path(path).filter(|_| is_indexed) else {
            return Ok(Self { data, index: None, format, bytes, entries: 0, unnamed: None, share: None });
        };
        let file = open(&index)?;
        let mut header = [0; IndexFile::HEADER];
        file.read_exact_at(&mut header, 0)?;
        let format = IndexFile::of_header(&header).ok_or(io::ErrorKind::InvalidData)?;
        let entries = (file.metadata()?.len() - IndexFile::HEADER as u64) / format.entry_size() as u64;
        Ok(Self { data, index: Some((Arc::new(file), index)), format, bytes, entries, unnamed: None, share: None })
    }

    /// Attaches the sender's share, which is held as long as the files are open anywhere.
    pub(crate) fn with(self, share: impl Into<Arc<Share>>) -> Self {
        Self { share: Some(share.into()), ..self }
    }

    /// Returns the tracer's number of the last packet.
    pub(crate) fn last_number(&self) -> Option<u64> {
        let last = self.entries.checked_sub(1)?;
        self.segment().entry(last).ok().map(|(_, index)| index.packet_number)
    }

    /// Returns the number of packets.
    #[cfg(feature = "nats")]
    pub(crate) const fn entries(&self) -> u64 {
        self.entries
    }

    /// Truncates the files before the packet with this number of the tracer. Returns how many packets remain.
    #[cfg(feature = "nats")]
    pub(crate) fn cut_off(&self, from: u64) -> io::Result<u64> {
        let (segment, mut left, mut end) = (self.segment(), self.entries, None);
        while let Some(last) = left.checked_sub(1) {
            let (offset, index) = segment.entry(last)?;
            if index.packet_number < from {
                break;
            }
            (left, end) = (last, Some(offset));
        }
        if let (Some(end), Some((index, _))) = (end, &self.index) {
            // In this order, an index entry never lacks its packet.
            index.set_len(entry_offset(self.format, left))?;
            self.data.set_len(end)?;
        }
        Ok(left)
    }

    /// Removes the files; `path` is the stream file's.
    #[cfg(feature = "nats")]
    pub(crate) fn remove(self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)?;
        self.index.map_or(Ok(()), |(_, path)| std::fs::remove_file(path))
    }

    /// Returns the number of bytes in the stream file.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the readable part of these files.
    pub(crate) fn segment(&self) -> Segment {
        let index = self.index.as_ref().map(|(file, _)| Arc::clone(file));
        Segment {
            data: Arc::clone(&self.data),
            index,
            format: self.format,
            entries: self.entries,
            total: None,
            bytes: self.bytes,
            share: self.share.clone(),
        }
    }
}

/// Files that are being written.
#[derive(Debug)]
pub(super) struct OpenFiles {
    files: Files,
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

/// Zeros for padding.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl OpenFiles {
    pub(super) fn new(files: Files) -> Self {
        let (bytes, entries) = (files.bytes, files.entries);
        Self { files, bytes, entries }
    }

    /// Appends all bytes or none, with one call if the system accepts them at once. Remains of a failed write are truncated.
    fn write(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        let size: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut left = size;
        while left > 0 {
            let error = match (&*self.files.data).write_vectored(slices) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(written) => {
                    IoSlice::advance_slices(&mut slices, written);
                    left -= written;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            self.cut_off()?;
            return Err(error);
        }
        // The file gets its name with its first bytes: a full disk leaves no empty file of that name.
        if let Some(unnamed) = self.files.unnamed.as_ref().filter(|_| size > 0) {
            if let Err(error) = unnamed.name() {
                self.cut_off()?;
                return Err(error);
            }
            self.files.unnamed = None;
        }
        self.bytes += size as u64;
        Ok(())
    }

    /// Closes the files. Metadata without bytes is removed.
    pub(super) fn close(self) {
        if let Some(UnnamedMetadata(directory)) = self.files.unnamed {
            // If it stays, readers ignore it.
            let _ = unlinkat(directory, UNNAMED, AtFlags::empty());
        }
    }

    /// Truncates the file to the end of the last append, and continues there.
    fn cut_off(&self) -> io::Result<()> {
        self.files.data.set_len(self.bytes)?;
        io::Seek::seek(&mut &*self.files.data, io::SeekFrom::Start(self.bytes)).map(drop)
    }

    /// Appends packets and their index entries, all or none.
    pub(super) fn packets(&mut self, packets: &[SequencedPacket]) -> io::Result<()> {
        let mut slices = Vec::new();
        for SequencedPacket { packet, .. } in packets {
            slices.push(IoSlice::new(packet.content()));
            let padding = packet.padding as usize;
            slices.extend(
                (0..padding).step_by(ZEROS.len()).map(|at| IoSlice::new(&ZEROS[..ZEROS.len().min(padding - at)])),
            );
        }
        let begin = self.bytes;
        self.write(&mut slices)?;
        let Some((file, _)) = &self.files.index else { return Ok(()) };
        let (mut offset, mut entries, mut count) = (begin, Vec::new(), 0);
        for SequencedPacket { packet, index, .. } in packets {
            if let Some(index) = index {
                // The entry has the size that the packet has in the file, so that viewers can add sizes up.
                let index = Index { packet_size: packet.size() * 8, ..*index };
                self.files.format.put_entry(offset, &index, &mut entries);
                count += 1;
            }
            offset += packet.size();
        }
        match file.write_all_at(&entries, entry_offset(self.files.format, self.entries)) {
            Ok(()) => self.entries += count,
            Err(error) => {
                self.bytes = begin;
                self.cut_off()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes the index; readers create one from the packets.
    pub(super) fn unindex(&mut self) {
        if let Some((_, path)) = self.files.index.take() {
            // If it stays, readers detect that it does not match, and ignore it.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Moves the packets from number `from` on into these new files. Returns how many.
    pub(super) fn take_tail(&mut self, old: &mut Self, from: u64) -> io::Result<u64> {
        let segment = Segment { entries: old.entries, ..old.files.segment() };
        let mut kept = old.entries;
        while kept > 0 && segment.entry(kept - 1)?.1.packet_number >= from {
            kept -= 1;
        }
        let moved = old.entries - kept;
        for number in kept..old.entries {
            let (offset, index) = segment.entry(number)?;
            let mut bytes = vec![0; usize::try_from(index.packet_size / 8).unwrap_or(usize::MAX)];
            segment.data.read_exact_at(&mut bytes, offset)?;
            self.packets(&[SequencedPacket { sequence: 0, packet: Packet::new(bytes, 0, None), index: Some(index) }])?;
        }
        if moved > 0 {
            old.bytes = segment.entry(kept)?.0;
            old.entries = kept;
            if let Some((file, _)) = &old.files.index {
                file.set_len(entry_offset(old.files.format, kept))?;
            }
            old.cut_off()?;
        }
        Ok(moved)
    }
}
