//! A directory with a trace, or a chunk of one.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::files::{File, StreamKey};
use crate::account::ACCOUNT_PATH;
use crate::chunk::root;
use crate::clock_alignment;
use crate::error::ReadError;
use crate::headers::Headers;
use crate::merge::stream_files;
use crate::metadata::Metadata;

#[derive(Debug)]
pub(super) struct Directory {
    /// The directory of the whole trace, without links.
    pub(super) root: PathBuf,
    pub(super) metadata: Metadata,
    /// The offset of its clock, if that was aligned when the directory was found.
    offset: Option<i64>,
    pub(super) has_ended: bool,
    path: PathBuf,
    /// The length of the metadata when it was read, in bytes.
    length: u64,
    /// The streams of the files, by inode.
    keys: HashMap<(u64, u64), StreamKey>,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        let file = path.join("metadata");
        let length = file.metadata().map_or(0, |file| file.len());
        // Later estimates would make time go back.
        let offset = clock_alignment::read(path).map(|(offset, _)| offset);
        let metadata = open(&file, offset)?;
        let root = root(path).canonicalize().map_err(|error| ReadError::io(path, error))?;
        Ok(Self { root, metadata, offset, has_ended: false, path: path.to_owned(), length, keys: HashMap::new() })
    }

    /// Its stream files, with their present lengths.
    pub(super) fn files(&self) -> Vec<File> {
        let paths = stream_files(&self.path).unwrap_or_default();
        let file = |path: PathBuf| {
            let stat = fs::metadata(&path).ok()?;
            Some(File { path, id: (stat.dev(), stat.ino()), length: stat.len() })
        };
        paths.into_iter().filter_map(file).collect()
    }

    pub(super) fn has_account(path: &Path) -> bool {
        path.join(ACCOUNT_PATH).exists()
    }

    /// Reads metadata that has grown; whether it is as it was when the files had their lengths, or newer.
    pub(super) fn renew(&mut self) -> bool {
        let file = self.path.join("metadata");
        let length = file.metadata().map_or(self.length, |file| file.len());
        if length == self.length {
            return true;
        }
        // It may end within a declaration.
        if let Ok(metadata) = open(&file, self.offset) {
            (self.metadata, self.length) = (metadata, length);
            return true;
        }
        false
    }

    /// The stream of a file; `None` before it has a whole packet.
    pub(super) fn key(&mut self, file: &File) -> Option<StreamKey> {
        if let Some(known) = self.keys.get(&file.id) {
            return Some(known.clone());
        }
        let packet = Headers::open(&self.metadata, &file.path, 0, 0)?.next()?;
        // A file without an instance is a stream of its own.
        let alone = packet.instance.is_none().then(|| file.path.clone());
        let key = StreamKey { root: self.root.clone(), class: packet.class.id, instance: packet.instance, alone };
        self.keys.insert(file.id, key.clone());
        Some(key)
    }
}

fn open(file: &Path, offset: Option<i64>) -> Result<Metadata, ReadError> {
    let metadata = Metadata::open(file)?;
    Ok(offset.map(|offset| metadata.with_offset(offset)).unwrap_or(metadata))
}
