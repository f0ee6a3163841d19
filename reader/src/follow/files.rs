//! The files of one stream: the positions of unread packets.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fileguard::FileExt;

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
    /// See `file_id`.
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
struct FollowedFile {
    directory: PathBuf,
    path: PathBuf,
    /// The end of the packets found so far, in bytes, and the clock there.
    offset: u64,
    clock: u64,
    length: u64,
    /// The look after which there was no file at the path.
    missing: Option<u64>,
}

/// Number of looks for a file that is not at its path. A search misses a directory that is renamed at the same time.
const LOOKS_FOR_MOVED: u64 = 3;

/// The next packet of a stream.
pub(super) enum FileStep {
    /// Its directory and its bytes.
    Packet(PathBuf, Vec<u8>),
    Damage(Damage),
    /// The file was moved or removed: another look finds it, or shows that it was removed.
    Moved,
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
    known: HashMap<(u64, u64), FollowedFile>,
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
        let known = self.known.entry(file.id).or_insert_with(|| FollowedFile {
            directory: path.to_owned(),
            path: file.path.clone(),
            offset: 0,
            clock: 0,
            length: 0,
            missing: None,
        });
        // A rotation moves files.
        if known.path != file.path {
            (known.directory, known.path) = (path.to_owned(), file.path.clone());
            known.missing = None;
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

    /// Reads the next packet, if one is unread. `looks`: the number of looks so far.
    pub(super) fn next(&mut self, looks: u64) -> Option<FileStep> {
        let Place { file, offset, size } = self.unread.front()?;
        let (offset, known) = (*offset, self.known.get_mut(file)?);
        let mut bytes = vec![0; *size as usize];
        let read = source::open(&known.path).and_then(|file| file.read_exact_at(&mut bytes, offset));
        let next = match read {
            Ok(()) => {
                known.missing = None;
                FileStep::Packet(known.directory.clone(), bytes)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if looks < *known.missing.get_or_insert(looks) + LOOKS_FOR_MOVED {
                    return Some(FileStep::Moved);
                }
                FileStep::Damage(unreadable(&known.path, offset, &error))
            }
            Err(error) => FileStep::Damage(unreadable(&known.path, offset, &error)),
        };
        self.unread.pop_front();
        Some(next)
    }
}

fn unreadable(path: &Path, offset: u64, error: &std::io::Error) -> Damage {
    Damage::new(path, offset, format!("a packet cannot be read: {error}"))
}
