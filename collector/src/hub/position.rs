//! The position of a session, from which another collector can continue; and the truncation of data stored beyond such a position.
//!
//! A session that several collectors share is stored in chunks, and each collector begins a new one. A new owner creates the next chunk, as in a
//! rotation, from the position, in its own directory; the former owner ends its last chunk at the position.

use super::Hub;
use super::chunks::{self, ChunkInfo, Line, Lines};
use super::tally;
use crate::files::{make_directories, put};
use crate::hub::streaming::streamed_directory;
use crate::storage::Files;
use crate::storage::repair::NEXT_CHUNK;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint_reader::account::{ACCOUNT_PATH, PriorCounts, RemovedChunks};
use tracepoint_reader::{Metadata, chunk_name, chunk_number};
use tracepoint_wire::relay::METADATA_CHANNEL;
use tracepoint_wire::stream::Hello;

/// Maximum for the numbers in a position, so that counting beyond it cannot overflow.
pub(crate) const MAX: u64 = 1 << 60;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The number of its chunk.
    pub(crate) chunk: u64,
    pub(crate) streams: Vec<StreamPosition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamPosition {
    class: u32,
    instance: u64,
    name: String,
    /// The lowest number that is neither stored nor given up.
    next: u64,
    /// Its counters for the account, up to that number.
    recorded: u64,
    packets: u64,
    written: u64,
    discarded: u64,
}

impl Position {
    fn of(chunk: u64, lines: &Lines) -> Self {
        let streams = lines.iter().map(|((class, instance), line)| {
            let PriorCounts { recorded, packets, written, discarded, .. } = line.end;
            let (name, next) = (line.name.clone(), line.next);
            StreamPosition { class: *class, instance: *instance, name, next, recorded, packets, written, discarded }
        });
        Self { chunk, streams: streams.collect() }
    }

    /// Returns the streams at the end of a chunk whose state at its beginning was `begins`.
    fn lines(&self, begins: &Lines) -> Lines {
        let line = |stream: &StreamPosition| {
            let key = (stream.class, stream.instance);
            let mut line = Line::new(&stream.name);
            line.next = stream.next;
            line.before = begins.get(&key).map(|line| line.before).unwrap_or_default();
            let StreamPosition { recorded, packets, written, discarded, .. } = *stream;
            (line.end.recorded, line.end.packets) = (recorded, packets);
            (line.end.written, line.end.discarded) = (written, discarded);
            (key, line)
        };
        self.streams.iter().map(line).collect()
    }

    /// Returns whether the file names are ones that a collector generates, and the numbers are within bounds.
    pub(crate) fn is_plausible(&self) -> bool {
        let is_name = |name: &str| crate::names::component("a stream", name, 4).is_ok() && name != METADATA_CHANNEL;
        let is_stream = |stream: &StreamPosition| {
            let StreamPosition { next, recorded, packets, written, discarded, .. } = *stream;
            is_name(&stream.name) && [next, recorded, packets, written, discarded].iter().all(|number| *number <= MAX)
        };
        (1..=MAX).contains(&self.chunk) && self.streams.iter().all(is_stream)
    }
}

impl Hub {
    /// Returns the session's position: only what is stored, without jobs still queued. `None` while it has no metadata. Decodes the last packet of
    /// each stream that has received one.
    pub(crate) fn position(&mut self, id: u64) -> Option<Position> {
        let directory = self.trace_directory(id)?;
        let streamed = self.session(id)?.streamed.as_ref()?;
        let number = streamed.chunks.as_ref()?.number;
        let text = self.stream(streamed.metadata).and_then(|stream| tally::text(&stream.view))?;
        let metadata = Metadata::parse(&text).ok()?;
        let lines = self.ends(id, &directory, &metadata);
        Some(Position::of(number, &lines))
    }

    pub(crate) fn root(&self, id: u64) -> Option<PathBuf> {
        Some(self.session(id)?.directory.as_ref()?.borrow().path().to_owned())
    }

    /// Creates the chunk after a position, in which [`open_streamed`](Self::open_streamed) then continues. Does nothing if this collector has created
    /// it before. `metadata` is the complete metadata.
    pub(crate) fn take_over(&self, hello: &Hello<'_>, at: &Position, metadata: &[u8]) -> io::Result<()> {
        let (directory, _) = streamed_directory(&self.output, hello)?;
        let root = directory.path();
        if chunks_of(root)?.into_iter().any(|(number, _)| number > at.chunk) {
            return Ok(());
        }
        let next = root.join(NEXT_CHUNK);
        if next.exists() {
            fs::remove_dir_all(&next)?;
        }
        make_directories(root, Path::new(NEXT_CHUNK))?;
        fs::write(next.join(METADATA_CHANNEL), metadata)?;
        let parsed = Metadata::parse(metadata).map_err(io::Error::other)?;
        let lines: Lines = at.lines(&Lines::new()).into_iter().map(|(key, line)| (key, line.next_chunk())).collect();
        let which = ChunkInfo { number: at.chunk + 1, removed: RemovedChunks::default(), is_shared: true };
        chunks::write(&next, &parsed, &session_name(hello), which, &lines)?;
        fs::rename(&next, root.join(chunk_name(at.chunk + 1)))
    }
}

pub(crate) fn session_name(hello: &Hello<'_>) -> String {
    format!("{}-{}", hello.session, hello.process)
}

/// Removes data beyond a position from a session's directory, and completes its last chunk there. Returns the number of packets removed.
pub(crate) fn cut_off(root: &Path, session: &str, at: &Position) -> io::Result<u64> {
    let mut cut = 0;
    for (_, path) in chunks_of(root)?.into_iter().filter(|(number, _)| *number > at.chunk) {
        for (_, files) in files_of(&path)? {
            cut += files.entries();
        }
        fs::remove_dir_all(&path)?;
    }
    let directory = root.join(chunk_name(at.chunk));
    if directory.exists() {
        cut += end_chunk(&directory, session, at)?;
    }
    if chunks_of(root)?.is_empty() {
        fs::remove_dir_all(root)?;
    }
    Ok(cut)
}

/// Ends a chunk at a position. A chunk without packets is removed.
fn end_chunk(directory: &Path, session: &str, at: &Position) -> io::Result<u64> {
    let mut cut = 0;
    let (begins, account) = chunks::read(directory);
    let lines = at.lines(&begins);
    let mut is_empty = true;
    for (path, files) in files_of(directory)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let next = lines.values().find(|line| line.name == name).map_or(0, |line| line.next);
        let left = files.cut_off(next)?;
        cut += files.entries() - left;
        is_empty &= left == 0;
        if left == 0 {
            files.remove(&path)?;
        }
    }
    if is_empty {
        return fs::remove_dir_all(directory).map(|()| cut);
    }
    let metadata = Metadata::open(&directory.join(METADATA_CHANNEL)).map_err(io::Error::other)?;
    let which = ChunkInfo { is_shared: true, ..chunks::which(at.chunk, account.as_ref()) };
    put(directory, ACCOUNT_PATH, &chunks::closed(&metadata, session, which, &lines).to_json())?;
    Ok(cut)
}

/// Lists the chunks in a session's directory.
fn chunks_of(root: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        all.extend(chunk_number(&path).map(|number| (number, path)));
    }
    Ok(all)
}

/// Lists the stream files in a chunk.
fn files_of(directory: &Path) -> io::Result<Vec<(PathBuf, Files)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_stream = entry.file_type()?.is_file() && entry.file_name() != METADATA_CHANNEL;
        // A file without an index is not a stream.
        if let Some(files) = is_stream.then(|| Files::reopen(&entry.path(), true)).and_then(Result::ok) {
            all.push((entry.path(), files));
        }
    }
    Ok(all)
}
