//! The files of one stream: the positions of unread packets.

use std::collections::{HashMap, VecDeque};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::headers::Headers;
use crate::loss::Damage;
use crate::merge::KnownCounters;
use crate::metadata::Metadata;
use crate::source;

/// Identifies a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StreamKey {
    pub(super) root: PathBuf,
    pub(super) class: u64,
    pub(super) instance: Option<u64>,
    /// The file of a stream without an instance.
    pub(super) alone: Option<PathBuf>,
}

/// A stream file found in a directory.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Device and inode.
    pub(super) id: (u64, u64),
    pub(super) length: u64,
}

/// An unread packet.
#[derive(Debug)]
struct Place {
    file: (u64, u64),
    offset: u64,
    size: u64,
}

/// State of a file.
#[derive(Debug)]
struct Known {
    directory: PathBuf,
    path: PathBuf,
    /// The end of the packets found so far, in bytes, and the clock there.
    offset: u64,
    clock: u64,
    length: u64,
}

/// The files of a stream.
#[derive(Debug)]
pub(super) struct Files {
    /// The directory of its trace, without symbolic links.
    pub(super) root: PathBuf,
    pub(super) has_ended: bool,
    /// The end of the newest packet, in nanoseconds since the epoch.
    pub(super) newest: i64,
    /// The counters before the first packet that is included.
    pub(super) before: KnownCounters,
    known: HashMap<(u64, u64), Known>,
    unread: VecDeque<Place>,
}

impl Files {
    /// A stream of the trace in `root`.
    pub(super) fn new(root: PathBuf) -> Self {
        let (known, unread) = (HashMap::new(), VecDeque::new());
        Self { root, has_ended: false, newest: i64::MIN, before: KnownCounters::default(), known, unread }
    }

    /// Finds new packets of a file, except those that end before `since`.
    pub(super) fn grow(&mut self, metadata: &Metadata, path: &Path, file: &File, since: i64) {
        let known = self.known.entry(file.id).or_insert_with(|| Known {
            directory: path.to_owned(),
            path: file.path.clone(),
            offset: 0,
            clock: 0,
            length: 0,
        });
        // A rotation moves files.
        if known.path != file.path {
            (known.directory, known.path) = (path.to_owned(), file.path.clone());
        }
        known.length = file.length;
        if file.length <= known.offset {
            return;
        }
        let Some(mut headers) = Headers::open(metadata, &file.path, known.offset, known.clock) else { return };
        for packet in headers.by_ref() {
            let end = packet.end.or(packet.begin).unwrap_or(0);
            let end = metadata.nanoseconds(&packet.class, end);
            self.newest = self.newest.max(end);
            if end < since && self.unread.is_empty() {
                self.before.discarded = packet.discarded;
            } else {
                self.unread.push_back(Place { file: file.id, offset: packet.offset, size: packet.size() });
            }
        }
        (known.offset, known.clock) = (headers.offset(), headers.clock());
    }

    /// The bytes after the last complete packet of each file, as damage.
    pub(super) fn rest(&self) -> impl Iterator<Item = Damage> {
        let cut = self.known.values().filter(|known| known.offset < known.length);
        cut.map(|known| {
            let reason = format!("there is no whole packet in the last {} bytes", known.length - known.offset);
            Damage::new(known.path.clone(), known.offset, reason)
        })
    }

    /// Reads the next packet; returns its directory and its bytes.
    pub(super) fn next(&mut self) -> Option<Result<(PathBuf, Vec<u8>), Damage>> {
        let Place { file, offset, size } = self.unread.pop_front()?;
        let known = self.known.get(&file)?;
        let mut bytes = vec![0; size as usize];
        let read = source::open(&known.path).and_then(|file| file.read_exact_at(&mut bytes, offset));
        Some(match read {
            Ok(()) => Ok((known.directory.clone(), bytes)),
            Err(error) => Err(Damage::new(known.path.clone(), offset, format!("a packet cannot be read: {error}"))),
        })
    }
}
