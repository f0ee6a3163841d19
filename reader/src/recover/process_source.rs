//! The location of the metadata, the list of outputs and the rings of a process: its directory, or the memory of this process.

use super::{find, liveness};
use crate::error::ReadError;
use crate::metadata::MAX_METADATA;
use crate::ring::{Bytes, Identity, Ring};
use crate::source::read_unlinked;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a list of outputs, in bytes.
const MAX_OUTPUTS: usize = 1 << 20;

/// A recording of this process whose rings are in no file.
#[derive(Debug)]
pub struct MemoryRings {
    /// The name of the place in messages.
    pub name: PathBuf,
    /// The metadata of the trace. Read before the rings: each event in them is described.
    pub metadata: Vec<u8>,
    /// The list of the sinks' outputs, as in the file `outputs`.
    pub outputs: Vec<u8>,
    /// The rings, each with its name; the one of threads without a ring last.
    pub rings: Vec<(String, Arc<dyn Bytes + Sync>)>,
}

/// The recording of one process.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessSource<'a> {
    /// In the directory of a process that is running or dead.
    Directory(&'a Path),
    /// In this process, which is recording.
    Memory(&'a MemoryRings),
}

/// The location of a ring.
#[derive(Clone, Debug)]
pub(super) enum RingPlace {
    File(PathBuf),
    Memory(PathBuf, Arc<dyn Bytes + Sync>),
}

impl<'a> ProcessSource<'a> {
    /// Its name in messages.
    pub(super) fn path(self) -> &'a Path {
        match self {
            Self::Directory(path) => path,
            Self::Memory(rings) => &rings.name,
        }
    }

    pub(super) fn metadata(self) -> Result<Vec<u8>, ReadError> {
        match self {
            Self::Directory(path) => read_unlinked(&path.join("metadata"), MAX_METADATA),
            Self::Memory(rings) => Ok(rings.metadata.clone()),
        }
    }

    /// The list of streams, if there is one.
    pub(super) fn streams(self) -> Result<Option<Vec<u8>>, ReadError> {
        let Self::Directory(path) = self else { return Ok(None) };
        match read_unlinked(&path.join("streams.json"), MAX_OUTPUTS) {
            Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// The list of outputs. Without the file, no sink had an output.
    pub(super) fn outputs(self) -> Result<Vec<u8>, ReadError> {
        let directory = match self {
            Self::Directory(path) => path,
            Self::Memory(rings) => return Ok(rings.outputs.clone()),
        };
        let path = directory.join("outputs");
        match read_unlinked(&path, MAX_OUTPUTS) {
            Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Ok(text) if text.len() > MAX_OUTPUTS => {
                let reason = format!("longer than {MAX_OUTPUTS} bytes");
                Err(ReadError::Io { path, source: io::Error::new(io::ErrorKind::InvalidData, reason) })
            }
            read => read,
        }
    }

    /// The rings, sorted. Rings that are missing, given the number that each class has `made`, are passed to `reported` by class and number; in
    /// memory none can be missing.
    pub(super) fn rings(
        self,
        made: BTreeMap<u32, u64>,
        mut reported: impl FnMut(u32, u64),
    ) -> Result<Vec<RingPlace>, ReadError> {
        match self {
            Self::Directory(path) => {
                let paths = find::rings(path)?;
                for (class, number) in find::missing(&paths, made, |path| matches!(Ring::open(path), Ok(None))) {
                    reported(class, number);
                }
                Ok(paths.into_iter().map(RingPlace::File).collect())
            }
            Self::Memory(rings) => {
                let place = |(name, bytes): &(String, _)| RingPlace::Memory(rings.name.join(name), Arc::clone(bytes));
                Ok(rings.rings.iter().map(place).collect())
            }
        }
    }

    /// True if the process has not begun to record: it writes its metadata before any event is switched on. Nothing of it is lost.
    pub(super) fn has_not_begun(self) -> bool {
        let Self::Directory(path) = self else { return false };
        let is_described = match read_unlinked(&path.join("metadata"), 1) {
            Ok(text) => !text.is_empty(),
            Err(ReadError::Io { source, .. }) => source.kind() != io::ErrorKind::NotFound,
            Err(_) => true,
        };
        // Metadata that was removed later does not count.
        let is_unused = |ring: &PathBuf| match Ring::open(ring) {
            Ok(Some(ring)) => ring.is_unused().unwrap_or(false),
            Ok(None) => true,
            Err(_) => false,
        };
        !is_described && find::rings(path).is_ok_and(|rings| rings.iter().all(is_unused))
    }

    /// True if the process of this identity may still record.
    pub(super) fn is_recording(self, identity: &Identity) -> bool {
        match self {
            Self::Directory(path) => liveness::is_recording(identity, path),
            Self::Memory(_) => true,
        }
    }
}

impl RingPlace {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Memory(path, _) => path,
        }
    }

    /// Opens the ring; `None` if the process has not completed it yet.
    pub(super) fn open(&self) -> Result<Option<Ring>, ReadError> {
        match self {
            Self::File(path) => Ring::open(path),
            Self::Memory(path, bytes) => Ring::of(path, Box::new(Arc::clone(bytes))),
        }
    }
}
