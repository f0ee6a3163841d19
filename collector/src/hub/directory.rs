//! The directory of a session: its trace chunks, and the places of its stream files.
//!
//! ```text
//!   OUTPUT/HOST/SESSION-YYYYMMDD-HHMMSS/            the session; local time
//!       .collecting                                 while it is written
//!       PATH/{CHANNEL, index/CHANNEL.idx, metadata} the first chunk
//!       BEGIN-N/PATH/…                              the current chunk after a rotation; UTC
//!       archives/BEGIN-END-N/PATH/…                 closed chunks
//! ```
//!
//! Each session gets a new directory: if its name is taken, `-2`, `-3` … is appended.

use crate::files::make_directories;
use crate::names;
use crate::storage::repair::MARK;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tracepoint_wire::relay::{ChunkEnd, CloseChunk, CreateChunk};

/// The file with a session's key in its directory, by which a resumed session finds the directory.
const KEY_FILE: &str = ".tracepoint-stream";
/// Maximum number of names tried.
const MAX_TRIES: u32 = 1000;

#[derive(Clone, Debug)]
struct Chunk {
    begin: u64,
    /// Path relative to the session's directory; empty for the first chunk.
    relative: PathBuf,
    /// The first components of the paths of its streams.
    tops: BTreeSet<PathBuf>,
    /// Number of connections that have opened it and not closed it.
    users: usize,
}

/// The directory of a session. The connections of several consumer daemons may share it.
#[derive(Debug)]
pub(crate) struct SessionDirectory {
    path: PathBuf,
    /// The path relative to the output directory.
    relative: String,
    chunks: BTreeMap<u64, Chunk>,
}

impl SessionDirectory {
    /// Creates `relative` below `output`, with a number appended if the name is taken.
    pub(crate) fn create(output: &Path, relative: &Path) -> io::Result<Self> {
        if let Some(parent) = relative.parent() {
            make_directories(output, parent)?;
        }
        for number in 1..MAX_TRIES {
            let name = numbered(relative, number);
            let path = output.join(&name);
            match DirBuilder::new().mode(0o750).create(&path) {
                Ok(()) => {
                    File::create_new(path.join(MARK))?;
                    return Ok(Self { path, relative: name.to_string_lossy().into_owned(), chunks: BTreeMap::new() });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Opens the directory of a session that an earlier collector began.
    pub(crate) fn reopen(output: &Path, relative: &str) -> io::Result<Self> {
        let path = output.join(relative);
        File::create(path.join(MARK))?;
        Ok(Self { path, relative: relative.to_owned(), chunks: BTreeMap::new() })
    }

    /// Finds the directory with this key: `relative`, or that name with a number, below `output`.
    pub(crate) fn find(output: &Path, relative: &Path, key: &str) -> Option<String> {
        for number in 1..MAX_TRIES {
            let name = numbered(relative, number);
            match std::fs::read_to_string(output.join(&name).join(KEY_FILE)) {
                Ok(found) if found == key => return Some(name.to_string_lossy().into_owned()),
                Err(error) if error.kind() == ErrorKind::NotFound && !output.join(&name).exists() => break,
                _ => {}
            }
        }
        None
    }

    /// Stores the key for [`find`](Self::find).
    pub(crate) fn set_key(&self, key: &str) -> io::Result<()> {
        std::fs::write(self.path.join(KEY_FILE), key)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path relative to the output directory, for the sender.
    pub(crate) fn relative(&self) -> &str {
        &self.relative
    }

    pub(crate) fn has_chunk(&self, id: u64) -> bool {
        self.chunks.contains_key(&id)
    }

    /// Creates a chunk, or joins one that another connection of the session has created.
    pub(crate) fn create_chunk(&mut self, chunk: &CreateChunk) -> anyhow::Result<()> {
        if let Some(known) = self.chunks.get_mut(&chunk.id) {
            known.users += 1;
            return Ok(());
        }
        let relative = match &chunk.name {
            Some(name) => names::component("the name of the chunk", name, 0)?.into(),
            None if self.chunks.is_empty() && chunk.id == 0 => PathBuf::new(),
            None => PathBuf::from(format!("{}-{}", compact(chunk.creation_time), chunk.id)),
        };
        make_directories(&self.path, &relative)?;
        let chunk_of = Chunk { begin: chunk.creation_time, relative, tops: BTreeSet::new(), users: 1 };
        self.chunks.insert(chunk.id, chunk_of);
        Ok(())
    }

    /// Creates and returns the directory for streams with this path in a chunk.
    pub(crate) fn stream_directory(&mut self, chunk: u64, path: &Path) -> io::Result<PathBuf> {
        let chunk = self.chunks.get_mut(&chunk).ok_or(ErrorKind::NotFound)?;
        let relative = chunk.relative.join(path);
        make_directories(&self.path, &relative)?;
        chunk.tops.extend(path.components().next().map(|top| PathBuf::from(top.as_os_str())));
        Ok(self.path.join(relative))
    }

    /// Closes a chunk for one connection; the last one moves it to the archive. Returns the chunk's path relative to the output directory. If the
    /// chunk is to be deleted, appends its directories to `cleared`.
    pub(crate) fn close_chunk(&mut self, close: &CloseChunk, cleared: &mut Vec<PathBuf>) -> io::Result<String> {
        let Some(chunk) = self.chunks.get_mut(&close.id) else { return Err(ErrorKind::NotFound.into()) };
        chunk.users = chunk.users.saturating_sub(1);
        let here = Path::new(&self.relative).join(&chunk.relative);
        if chunk.users > 0 {
            return Ok(here.to_string_lossy().into_owned());
        }
        // The stock sender polls until the chunk no longer exists.
        let chunk =
            self.chunks.remove(&close.id).filter(|_| matches!(close.end, Some(ChunkEnd::Archive | ChunkEnd::Delete)));
        let Some(chunk) = chunk else { return Ok(here.to_string_lossy().into_owned()) };
        let from = self.path.join(&chunk.relative);
        let parts: Vec<_> = chunk.tops.iter().filter(|top| from.join(top).exists()).collect();
        if close.end == Some(ChunkEnd::Delete) {
            if chunk.relative.as_os_str().is_empty() {
                cleared.extend(parts.into_iter().map(|part| from.join(part)));
            } else {
                cleared.push(from);
            }
            return Ok(here.to_string_lossy().into_owned());
        }
        let name = format!("{}-{}-{}", compact(chunk.begin), compact(close.close_time), close.id);
        let archive = Path::new("archives").join(name);
        make_directories(&self.path, &archive)?;
        for part in parts {
            std::fs::rename(from.join(part), self.path.join(&archive).join(part))?;
        }
        if !chunk.relative.as_os_str().is_empty() {
            // It is empty now.
            std::fs::remove_dir(from)?;
        }
        Ok(Path::new(&self.relative).join(archive).to_string_lossy().into_owned())
    }
}

impl Drop for SessionDirectory {
    /// All files are closed.
    fn drop(&mut self) {
        // If it stays, the next collector checks the directory and finds no damage.
        let _ = std::fs::remove_file(self.path.join(MARK));
    }
}

/// Appends `-number` to the name if the number is 2 or more.
fn numbered(relative: &Path, number: u32) -> OsString {
    let mut name = relative.as_os_str().to_owned();
    if number > 1 {
        name.push(format!("-{number}"));
    }
    name
}

/// Returns the directory name of a session: its name and the time of its creation in the local time zone.
pub(crate) fn session_name(name: &str, creation_time: u64) -> String {
    let time = timestamp(creation_time).to_zoned(TimeZone::system());
    format!("{name}-{}", time.strftime("%Y%m%d-%H%M%S"))
}

fn compact(time: u64) -> String {
    timestamp(time).strftime("%Y%m%dT%H%M%S+0000").to_string()
}

/// Converts a sender's time in seconds. An invalid time becomes the epoch.
fn timestamp(time: u64) -> Timestamp {
    i64::try_from(time).ok().and_then(|time| Timestamp::from_second(time).ok()).unwrap_or_default()
}

pub(crate) fn hexadecimal(key: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_get_directories_of_their_own() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let create = || SessionDirectory::create(place.path(), Path::new("host/shop"));
        let (first, second, third) = (create()?, create()?, create()?);
        assert_eq!(
            [first.relative(), second.relative(), third.relative()],
            ["host/shop", "host/shop-2", "host/shop-3"]
        );
        assert!(place.path().join("host/shop-2").join(MARK).exists());
        drop(second);
        assert!(!place.path().join("host/shop-2").join(MARK).exists());
        assert_eq!(create()?.relative(), "host/shop-4");
        third.set_key("its key")?;
        let find = |key| SessionDirectory::find(place.path(), Path::new("host/shop"), key);
        assert_eq!([find("its key"), find("another")], [Some("host/shop-3".to_owned()), None]);
        Ok(())
    }

    #[test]
    fn links_are_not_followed() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        std::os::unix::fs::symlink("/tmp", place.path().join("host"))?;
        assert!(SessionDirectory::create(place.path(), Path::new("host/shop")).is_err());
        assert!(make_directories(place.path(), Path::new("a/../b")).is_err());
        assert!(make_directories(place.path(), Path::new("/a")).is_err());
        Ok(())
    }

    #[test]
    fn closed_chunks_are_archived() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let mut directory = SessionDirectory::create(place.path(), Path::new("host/shop"))?;
        let chunk = |id| CreateChunk { id, creation_time: 1_700_000_000 + id * 10, name: None };
        let close = |id, end| CloseChunk { id, close_time: 1_700_000_005 + id * 10, end };
        for id in 0..2 {
            directory.create_chunk(&chunk(id))?;
            let streams = directory.stream_directory(id, Path::new("ust/uid"))?;
            std::fs::write(streams.join("c_0"), id.to_string())?;
        }
        // Two connections have this chunk open.
        directory.create_chunk(&chunk(0))?;
        let mut cleared = Vec::new();
        assert_eq!(directory.close_chunk(&close(0, Some(ChunkEnd::Archive)), &mut cleared)?, "host/shop/");
        let path = directory.close_chunk(&close(0, Some(ChunkEnd::Archive)), &mut cleared)?;
        assert_eq!(path, "host/shop/archives/20231114T221320+0000-20231114T221325+0000-0");
        assert_eq!(std::fs::read_to_string(place.path().join(path).join("ust/uid/c_0"))?, "0");
        assert!(!place.path().join("host/shop/ust").exists());
        let current = place.path().join("host/shop/20231114T221330+0000-1/ust/uid/c_0");
        assert_eq!(std::fs::read_to_string(&current)?, "1");
        directory.close_chunk(&close(1, None), &mut cleared)?;
        assert!(current.exists() && !directory.has_chunk(1));
        assert!(directory.close_chunk(&close(7, None), &mut cleared).is_err());
        assert!(directory.create_chunk(&CreateChunk { name: Some("../x".into()), ..chunk(9) }).is_err());
        Ok(())
    }

    #[test]
    fn the_directories_of_a_cleared_chunk_are_told() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let mut directory = SessionDirectory::create(place.path(), Path::new("host/shop"))?;
        let mut cleared = Vec::new();
        for id in 0..2 {
            directory.create_chunk(&CreateChunk { id, ..CreateChunk::default() })?;
            directory.stream_directory(id, Path::new("ust/uid"))?;
            let close = CloseChunk { id, close_time: 0, end: Some(ChunkEnd::Delete) };
            assert!(directory.close_chunk(&close, &mut cleared)?.starts_with("host/shop"));
            assert!(!directory.has_chunk(id));
        }
        assert_eq!(cleared, [directory.path().join("ust"), directory.path().join("19700101T000000+0000-1")]);
        assert!(cleared.iter().all(|path| path.exists()), "streams may still be written there");
        Ok(())
    }

    #[test]
    fn a_clock_far_off_gives_a_name_all_the_same() {
        assert!(session_name("shop", 1_700_000_000).starts_with("shop-2023111"));
        assert_eq!(session_name("shop", u64::MAX), session_name("shop", 0));
    }
}
