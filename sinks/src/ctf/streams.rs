//! Files that grow only by complete pieces.
//!
//! Space is reserved before a piece is written: a full disk refuses whole pieces, and the piece that ends a stream always fits. For a large file,
//! more is reserved than the piece needs, so that few pieces need a system call for it; [`Streams::cut`] releases it.
//!
//! An in-memory file system reserves page by page, which takes as long as the write, and the write then looks up each page again. So no space is
//! reserved there for the piece itself; a failed write is undone. The space for another header is mostly in the last page of the piece, and is
//! reserved otherwise.

use super::directory::Directory;
use crate::system::{file_size_limit, is_in_memory, reserve, truncate};
use fileguard::GuardedFd;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use tracepoint_ring::channel::HEADER_SIZE;

/// Space reserved after the last packet, for the empty packet that ends the stream.
const RESERVE: u64 = HEADER_SIZE as u64;
/// Additional space reserved: this fraction of the file, up to a maximum in bytes.
const AHEAD_PART: u64 = 4;
const MAX_AHEAD: u64 = 4 << 20;
/// Minimum page size. Bytes beyond the last page of a piece are beyond a multiple of this.
const PAGE: u64 = 4096;

/// The files of a directory, by name. Only one is open at a time, to leave file descriptors to the traced program.
#[derive(Debug, Default)]
pub(super) struct Streams {
    lengths: HashMap<String, Length>,
    open: Option<(String, Arc<GuardedFd<File>>)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Length {
    /// The length of all complete pieces, in bytes.
    whole: u64,
    /// End of the reserved space.
    reserved: u64,
    /// Set if part of a failed write may follow the pieces.
    dirty: bool,
    /// Set if the file is in memory.
    in_memory: bool,
}

impl Streams {
    /// Appends `bytes` to the file `name`, all or nothing; the first call creates the file. After a piece larger than a packet's header, space for
    /// another header is reserved.
    pub(super) fn append(&mut self, directory: &Directory, name: &str, bytes: &[u8]) -> io::Result<()> {
        fileguard::retried(|| self.try_append(directory, name, bytes))
    }

    fn try_append(&mut self, directory: &Directory, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.open {
            // The program may have closed it.
            Some((open, file)) if open == name && file.is_open() => file,
            other => {
                let known = self.lengths.contains_key(name);
                let file = if known { directory.open_file(name)? } else { directory.create_file(name)? };
                self.lengths
                    .entry(name.to_owned())
                    .or_insert_with(|| Length { in_memory: is_in_memory(&file), ..Length::default() });
                &mut other.insert((name.to_owned(), file.keep())).1
            }
        };
        let mut file = file.get()?;
        let length = self.lengths.entry(name.to_owned()).or_default();
        if length.dirty {
            length.cut(file)?;
        }
        length.make_room(file, bytes.len() as u64)?;
        if let Err(error) = file.write_all(bytes) {
            length.dirty = true;
            // If this fails, it is retried before the next piece.
            let _ = length.cut(file).and_then(|()| length.reserve_end(file));
            return Err(error);
        }
        length.whole += bytes.len() as u64;
        Ok(())
    }

    /// Creates the file `name` with these bytes, all or nothing, even if the process is killed meanwhile. They are written in the subdirectory
    /// `folder`.
    pub(super) fn create_whole(
        &mut self,
        directory: &Directory,
        folder: &str,
        name: &str,
        bytes: &[u8],
    ) -> io::Result<()> {
        directory.put_whole_here(folder, name, bytes)?;
        let whole = bytes.len() as u64;
        self.lengths.insert(name.to_owned(), Length { whole, ..Length::default() });
        Ok(())
    }

    /// Closes the open file until the next piece.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Releases the space reserved after the files, as far as possible.
    pub(super) fn cut(&mut self, directory: &Directory) {
        for (name, length) in self.lengths.iter_mut().filter(|(_, length)| length.reserved > length.whole) {
            let _ = directory.open_file(name).and_then(|file| length.cut(&file));
        }
    }

    /// Moves all files except `left` to another directory. If one cannot be moved, those before it are moved back.
    pub(super) fn move_to(&mut self, from: &Directory, to: &Directory, left: &str) -> io::Result<()> {
        let names: Vec<_> = self.lengths.keys().filter(|name| *name != left).cloned().collect();
        for (index, name) in names.iter().enumerate() {
            if let Err(error) = from.move_file(name, to) {
                for name in &names[..index] {
                    to.move_file(name, from)?;
                }
                return Err(error);
            }
        }
        // `left` is a different file there.
        self.open = None;
        if let Some(length) = self.lengths.get_mut(left) {
            length.reserved = 0;
        }
        Ok(())
    }
}

impl Length {
    /// Truncates the file after the pieces, including the reserved space.
    fn cut(&mut self, file: &File) -> io::Result<()> {
        self.reserved = 0;
        truncate(file, self.whole)?;
        self.dirty = false;
        Ok(())
    }

    /// Reserves the space for the packet that ends the stream.
    fn reserve_end(&mut self, file: &File) -> io::Result<()> {
        reserve(file, self.whole, RESERVE)?;
        self.reserved = self.whole + RESERVE;
        Ok(())
    }

    /// Reserves the space for a piece before any of it is written.
    fn make_room(&mut self, file: &File, len: u64) -> io::Result<()> {
        let after = if len > RESERVE { RESERVE } else { 0 };
        let end = self.whole + len + after;
        // A write beyond the limit on file sizes would not only fail: it would send SIGXFSZ to the traced program, which may change its limit at any
        // time.
        let limit = file_size_limit();
        if end > limit {
            return Err(ErrorKind::FileTooLarge.into());
        }
        if after == 0 || end <= self.reserved {
            return Ok(());
        }
        let (from, ahead) = if self.in_memory {
            let next_page = (self.whole + len).next_multiple_of(PAGE);
            if end <= next_page {
                self.reserved = end;
                return Ok(());
            }
            (next_page, 0)
        } else {
            (self.whole, (self.whole / AHEAD_PART).min(MAX_AHEAD).min(limit - end))
        };
        let allocate = |ahead| reserve(file, from, end + ahead - from);
        let is_full = |error: &io::Error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        self.reserved = match allocate(ahead) {
            Err(error) if is_full(&error) => match allocate(0) {
                Err(error) if is_full(&error) => return Err(error),
                _ => end,
            },
            // Not every file system supports this; if not, the write itself fails.
            _ => end + ahead,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    const PIECE: [u8; 4096] = [1; 4096];

    #[test]
    fn few_pieces_need_a_reservation_and_nothing_of_it_is_left() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = Directory::create(place.path()).expect("an empty directory");
        let mut streams = Streams::default();
        let mut reservations = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            streams.append(&directory, "stream", &PIECE).expect("room");
            reservations.insert(streams.lengths["stream"].reserved);
        }
        assert!(reservations.len() < 40, "{} for 1000 pieces", reservations.len());
        let space = || {
            let file = place.path().join("stream").metadata().expect("a file");
            (file.len(), file.blocks() * 512)
        };
        assert!(space().1 > space().0 + PIECE.len() as u64, "{:?}", space());
        streams.cut(&directory);
        // A file system may need a block for itself.
        assert!(space().0 == 4_096_000 && space().1 <= 4_096_000 + 8192, "{:?}", space());
        streams.append(&directory, "stream", &PIECE[..96]).expect("room");
        assert_eq!(space().0, 4_096_096);
    }

    /// On a disk, in memory, and if the header is in another page than the end of the piece.
    #[test]
    fn room_for_the_end_is_reserved() {
        let places = [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].map(|place| place.expect("a directory"));
        for place in places {
            let directory = Directory::create(place.path()).expect("an empty directory");
            let mut streams = Streams::default();
            for (number, len) in [97, 3900, 3999, 4000, 4001, 4050, 4095, 4096].into_iter().enumerate() {
                let name = number.to_string();
                streams.append(&directory, &name, &PIECE[..len]).expect("room");
                let space = place.path().join(&name).metadata().expect("a file").blocks() * 512;
                assert!(space >= len as u64 + RESERVE, "{len} in {place:?}: {space}");
            }
        }
    }

    /// A file whose space was released must reserve it again.
    #[test]
    fn a_piece_behind_a_cut_is_reserved_again() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = Directory::create(place.path()).expect("an empty directory");
        let mut streams = Streams::default();
        (0..100).for_each(|_| streams.append(&directory, "stream", &PIECE).expect("room"));
        streams.cut(&directory);
        streams.append(&directory, "stream", &PIECE).expect("room");
        let length = streams.lengths["stream"];
        assert!(length.reserved >= length.whole + RESERVE, "{length:?}");
    }
}
