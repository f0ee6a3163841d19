//! The directory that a trace is read from: the session's, or one of its [chunks](crate::hub::Rotation).

use crate::storage::Segment;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use tracepoint_reader::account::Account;
use tracepoint_reader::{chunk_name, chunk_number};
use tracepoint_wire::relay::METADATA_CHANNEL;

/// A directory with stream files.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Number from 1; 0 if the session has no chunks.
    pub(super) number: u64,
    directory: PathBuf,
    /// Number of packets that each stream had before this chunk.
    before: BTreeMap<(u32, u64), u64>,
    files: BTreeMap<(u32, u64), Segment>,
}

impl Chunk {
    /// Returns a session's first chunk with at least this number; `None` if there is none.
    pub(super) fn find(root: &Path, from: u64) -> io::Result<Option<Self>> {
        if root.join(METADATA_CHANNEL).exists() {
            return Ok((from == 0).then(|| Self::of(0, root.to_owned(), BTreeMap::new())));
        }
        let first = numbers(root)?.into_iter().filter(|number| *number >= from).min();
        first.map(|number| Self::numbered(root, number)).transpose()
    }

    /// Returns a session's last chunk, the only one that may get further packets; `None` if there is none.
    pub(super) fn last(root: &Path) -> io::Result<Option<Self>> {
        let last = numbers(root)?.into_iter().max();
        last.map_or_else(|| Self::find(root, 0), |number| Self::numbered(root, number).map(Some))
    }

    fn numbered(root: &Path, number: u64) -> io::Result<Self> {
        let directory = root.join(chunk_name(number));
        let mut before = BTreeMap::new();
        // The first chunk begins with empty streams, and has no account before its end.
        if number > 1 {
            let account = Account::open(&directory).map_err(io::Error::other)?;
            for channel in &account.channels {
                let Ok(class) = u32::try_from(channel.id) else { continue };
                before.extend(channel.streams.iter().map(|stream| ((class, stream.instance), stream.before.packets)));
            }
        }
        Ok(Self::of(number, directory, before))
    }

    fn of(number: u64, directory: PathBuf, before: BTreeMap<(u32, u64), u64>) -> Self {
        Self { number, directory, before, files: BTreeMap::new() }
    }

    /// Returns whether the session continues in a later chunk, so that this one gets no further packets.
    pub(super) fn is_over(&self, root: &Path) -> io::Result<bool> {
        Ok(self.number > 0 && numbers(root)?.into_iter().any(|number| number > self.number))
    }

    /// Returns the number of packets that a stream had before this chunk.
    pub(super) fn before(&self, key: (u32, u64)) -> u64 {
        self.before.get(&key).copied().unwrap_or_default()
    }

    /// Returns the file of a stream; `None` if it has none here.
    pub(super) fn file(&mut self, key: (u32, u64), name: &str) -> io::Result<Option<&Segment>> {
        if !self.files.contains_key(&key) {
            match Segment::open(&self.directory.join(name)) {
                Ok(file) => drop(self.files.insert(key, file)),
                // A newly created index has no header yet.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.files.get(&key))
    }

    /// Returns the number of packets of a stream up to the end of this chunk.
    pub(super) fn packets(&mut self, key: (u32, u64), name: &str) -> io::Result<u64> {
        let before = self.before(key);
        Ok(before + self.file(key, name)?.map_or(Ok(0), Segment::written)?)
    }
}

/// Returns the numbers of a session's existing chunks.
fn numbers(root: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        // The removal of a chunk begins with its metadata.
        numbers.extend(chunk_number(&path).filter(|_| path.join(METADATA_CHANNEL).exists()));
    }
    Ok(numbers)
}
