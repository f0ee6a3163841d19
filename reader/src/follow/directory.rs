//! A directory with a trace, or with a chunk of one.

use std::collections::HashMap;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::files::{File, StreamKey};
use crate::account::ACCOUNT_PATH;
use crate::chunk::root;
use crate::clock_alignment;
use crate::directories::stream_files;
use crate::error::ReadError;
use crate::headers::Headers;
use crate::loss::Damage;
use crate::metadata::Metadata;

/// How long metadata may be unreadable because it is being written.
const METADATA_DELAY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Directory {
    /// The directory of the whole trace, without symbolic links.
    pub(super) root: PathBuf,
    /// `None` until it can be read.
    pub(super) metadata: Option<Metadata>,
    pub(super) has_ended: bool,
    /// Since when the metadata, or an addition to it, has been unreadable.
    unreadable: Option<Instant>,
    is_reported: bool,
    /// Since when the metadata has failed its checksums, and if that was reported.
    damaged: Option<Instant>,
    is_damage_told: bool,
    /// The offset of its clock, if the clock was aligned when the metadata was first read.
    offset: Option<i64>,
    path: PathBuf,
    /// The length of the metadata at its last reading, in bytes.
    length: u64,
    /// The streams of the files, indexed by inode.
    keys: HashMap<(u64, u64), StreamKey>,
}

/// The result of looking at the metadata of a directory.
pub(super) enum MetadataState {
    /// It is at least as new as the lengths of the files.
    Current,
    /// It ends within a declaration, and is read again by the next look.
    Waiting,
    /// It has been unreadable for too long. The damage is returned once.
    Damaged(Option<Damage>),
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        let root = root(path).canonicalize().map_err(|error| ReadError::io(path, error))?;
        Ok(Self { root, path: path.to_owned(), ..Self::default() })
    }

    /// Its stream files, with their current lengths.
    pub(super) fn files(&self) -> Vec<File> {
        let paths = stream_files(&self.path).unwrap_or_default();
        let file = |path: PathBuf| {
            let stat = fs::metadata(&path).ok()?;
            Some(File { id: file_id(&path, &stat), path, length: stat.len() })
        };
        paths.into_iter().filter_map(file).collect()
    }

    pub(super) fn has_account(path: &Path) -> bool {
        path.join(ACCOUNT_PATH).exists()
    }

    /// Reads metadata that is new or has grown.
    pub(super) fn renew(&mut self) -> MetadataState {
        let Err(error) = self.read() else {
            self.unreadable = None;
            return MetadataState::Current;
        };
        if self.unreadable.get_or_insert_with(Instant::now).elapsed() < METADATA_DELAY {
            return MetadataState::Waiting;
        }
        let is_new = !mem::replace(&mut self.is_reported, true);
        MetadataState::Damaged(is_new.then(|| damage(&self.path.join("metadata"), error)))
    }

    /// The same; unreadable metadata is an error immediately.
    ///
    /// # Errors
    /// [`ReadError::Io`], [`ReadError::Metadata`].
    pub(super) fn read(&mut self) -> Result<(), ReadError> {
        let file = self.path.join("metadata");
        let length = file.metadata().map_or(self.length, |file| file.len());
        if self.metadata.is_some() && length == self.length {
            return Ok(());
        }
        if self.metadata.is_none() {
            // Later estimates would make time go backwards.
            self.offset = clock_alignment::read(&self.path).map(|(offset, _)| offset);
        }
        let metadata = Metadata::open(&file)?;
        let offset = self.offset;
        self.metadata = Some(offset.map(|offset| metadata.with_offset(offset)).unwrap_or(metadata));
        self.length = length;
        Ok(())
    }

    /// Damage of metadata that fails its checksums, returned once: after a delay, because it may be incomplete, or at the end of the trace.
    pub(super) fn metadata_damage(&mut self) -> Option<Damage> {
        let damage = Damage::of_metadata(&self.path.join("metadata"), self.metadata.as_ref()?);
        if damage.is_none() {
            self.damaged = None;
        }
        let damage = damage.filter(|_| !self.is_damage_told)?;
        let lasts = self.damaged.get_or_insert_with(Instant::now).elapsed() >= METADATA_DELAY;
        self.is_damage_told = lasts || self.has_ended;
        self.is_damage_told.then_some(damage)
    }

    /// The stream of a file; `None` until it has a complete packet that the metadata describes.
    pub(super) fn key(&mut self, file: &File) -> Option<StreamKey> {
        if let Some(known) = self.keys.get(&file.id) {
            return Some(known.clone());
        }
        let packet = Headers::open(self.metadata.as_ref()?, &file.path, 0, 0)?.next()?;
        // A file without an instance is a separate stream.
        let alone = packet.instance.is_none().then(|| file.path.clone());
        let key = StreamKey { root: self.root.clone(), class: packet.class.id, instance: packet.instance, alone };
        self.keys.insert(file.id, key.clone());
        Some(key)
    }
}

/// Converts an error in metadata to damage.
fn damage(file: &Path, error: ReadError) -> Damage {
    let (offset, reason) = match error {
        ReadError::Metadata { line, offset, reason, .. } => (offset, format!("line {line}: {reason}")),
        ReadError::Io { source, .. } => (0, source.to_string()),
        other => (0, other.to_string()),
    };
    Damage::new(
        file,
        offset,
        format!("the metadata cannot be read; events that it does not describe are left out: {reason}"),
    )
}

/// Identifies a file, even after it was moved: its device and inode.
#[cfg(unix)]
fn file_id(_path: &Path, stat: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (stat.dev(), stat.ino())
}

/// The same on Windows, where the standard library knows no index of a file: the time when it was created, and its name, which a rotation keeps.
#[cfg(windows)]
fn file_id(path: &Path, stat: &fs::Metadata) -> (u64, u64) {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    use std::os::windows::fs::MetadataExt;
    (stat.creation_time(), BuildHasherDefault::<DefaultHasher>::default().hash_one(path.file_name()))
}
