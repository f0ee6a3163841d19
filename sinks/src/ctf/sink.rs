//! The sink that writes a CTF directory.

use super::CtfError;
use super::accounting::ChunkAccounting;
use super::directory::Directory;
use super::existing::{dated_directory, remove_traces};
use super::rotation::Chunks;
use super::streams::Streams;
use crate::account::{ACCOUNT_PATH, Account};
use crate::description::{NewEvents, TraceStart};
use crate::error::SinkError;
use crate::sink::{Output, Rotation, Sink, SinkExtension, StreamInfo};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_reader::chunk_name;
use tracepoint_ring::channel::Packet;

/// The name of the metadata file.
const METADATA: &str = "metadata";
/// Disk space reserved for the account, in bytes: for a few dozen streams…
const ACCOUNT_SIZE: u64 = 16 << 10;
/// …and for each event, with a few reasons why it was lost.
const ACCOUNT_EVENT_SIZE: u64 = 384;

/// Writes a trace into a directory, in the Common Trace Format 1.8.
///
/// ```no_run
/// use tracepoint_sinks::CtfSink;
///
/// let sink = CtfSink::create("/tmp/trace")?;
/// # Ok::<(), tracepoint_sinks::CtfError>(())
/// ```
///
/// # Chunks
///
/// A rotation closes the packets so far as a complete trace in a subdirectory `chunk-000001` and so on, and continues in the next one. All chunks
/// have the same UUID; packet numbers and counters continue. A trace that is rotated by size or time is in chunks from the beginning; otherwise the
/// first rotation moves the trace into its first chunk.
#[derive(Debug)]
pub struct CtfSink {
    base: Directory,
    /// The current chunk; `None` while the trace is not in chunks.
    chunk: Option<Directory>,
    streams: Streams,
    rotation: Chunks,
    accounting: ChunkAccounting,
    /// The content of the metadata file.
    metadata: String,
    events: u64,
}

impl CtfSink {
    /// Creates a sink that writes into `directory`. The directory and its parents are created if they do not exist.
    ///
    /// # Errors
    ///
    /// If the directory is not empty, is not a directory, or cannot be created.
    pub fn create(directory: impl AsRef<Path>) -> Result<Self, CtfError> {
        Ok(Self {
            base: Directory::create(directory.as_ref())?,
            chunk: None,
            streams: Streams::default(),
            rotation: Chunks::default(),
            accounting: ChunkAccounting::default(),
            metadata: String::new(),
            events: 0,
        })
    }

    /// Creates a sink that writes into `directory`, replacing the [traces there](super::remove_traces).
    ///
    /// # Errors
    ///
    /// If the directory contains anything else, is not a directory, or cannot be created.
    pub fn replace(directory: impl AsRef<Path>) -> Result<Self, CtfError> {
        remove_traces(directory.as_ref())?;
        Self::create(directory)
    }

    /// Creates a sink that writes into a new directory in `parent`, [named by the time](super::dated_directory): see [`CtfSink::path`].
    ///
    /// # Errors
    ///
    /// If the directory cannot be created.
    pub fn create_dated(parent: impl AsRef<Path>) -> Result<Self, CtfError> {
        Self::create(dated_directory(parent))
    }

    /// Rotates when the packets in the current chunk have this many bytes, or slightly more. Off by default.
    #[must_use]
    pub const fn rotate_size(mut self, bytes: u64) -> Self {
        self.rotation.size = Some(bytes);
        self
    }

    /// Rotates when the current chunk has this age and is not empty. The age is checked whenever the drain moves packets, at least every 200 ms. Off
    /// by default.
    #[must_use]
    pub const fn rotate_every(mut self, time: Duration) -> Self {
        self.rotation.every = Some(time);
        self
    }

    /// Retains the newest `chunks` chunks, including the current one. Older ones are removed when a chunk begins, and the account counts their
    /// content. By default all are retained.
    #[must_use]
    pub const fn keep(mut self, chunks: usize) -> Self {
        self.rotation.keep = Some(chunks);
        self
    }

    /// Returns the directory as it was given.
    pub fn path(&self) -> &Path {
        self.base.path()
    }

    /// Returns the number of packet bytes in all retained chunks.
    pub fn kept_bytes(&self) -> u64 {
        self.rotation.closed_bytes() + self.accounting.content().bytes
    }

    /// Removes the oldest chunk before the current one, and returns whether there was one. The account counts its content.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub fn remove_oldest(&mut self) -> Result<bool, SinkError> {
        let Some(number) = self.rotation.oldest() else { return Ok(false) };
        self.remove_chunk(number).map(|()| true)
    }

    /// Removes the directory of a trace in which nothing was recorded. A directory that contains anything else is left unchanged.
    ///
    /// # Errors
    ///
    /// If it cannot be read or removed.
    pub fn remove_unused(directory: impl AsRef<Path>) -> io::Result<()> {
        let base = Directory::open(directory.as_ref())?;
        let first = chunk_name(1);
        if let Ok(chunk) = base.open_subdirectory(&first) {
            base.remove_begun_subdirectory(&first, &chunk)?;
        }
        base.remove_begun()
    }

    /// Returns the directory that packets are written to.
    fn here(&self) -> &Directory {
        self.chunk.as_ref().unwrap_or(&self.base)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let directory = self.chunk.as_ref().unwrap_or(&self.base);
        self.streams.append(directory, name, bytes).map_err(|error| self.failed(name, error))
    }

    fn cut_streams(&mut self) {
        self.streams.cut(self.chunk.as_ref().unwrap_or(&self.base));
    }

    fn failed(&self, name: &str, error: io::Error) -> SinkError {
        SinkError::new(format!("write {}", self.here().path().join(name).display()), error)
    }

    fn cannot_rotate(&self, error: io::Error) -> SinkError {
        SinkError::new(format!("begin the next chunk of {}", self.path().display()), error)
    }

    /// Reserves disk space for the account, so that it can still be written when the disk is full.
    fn reserve(&self, directory: &Directory) -> io::Result<()> {
        let (folder, name) = account_path();
        directory.reserve(folder, name, ACCOUNT_SIZE + ACCOUNT_EVENT_SIZE * self.events)
    }

    /// Creates the directory of a chunk, with the metadata so far. If the process is killed before that is complete, the directory has no metadata,
    /// and readers of the other chunks ignore it.
    fn make_chunk(&self, number: u64) -> io::Result<(Directory, Streams)> {
        let name = chunk_name(number);
        let directory = self.base.create_subdirectory(&name)?;
        let mut streams = Streams::default();
        let (folder, _) = account_path();
        let made = streams
            .create_whole(&directory, folder, METADATA, self.metadata.as_bytes())
            .and_then(|()| self.reserve(&directory));
        match made {
            Ok(()) => Ok((directory, streams)),
            Err(error) => {
                let _ = self.base.remove_begun_subdirectory(&name, &directory);
                Err(error)
            }
        }
    }

    /// Moves a trace that is not in chunks into its first chunk. If the process is killed in between, each file is in one of two directories, and
    /// both have the metadata.
    fn move_into_first_chunk(&mut self) -> io::Result<()> {
        let (directory, _) = self.make_chunk(1)?;
        let moved = self.streams.move_to(&self.base, &directory, METADATA);
        if let Err(error) = moved {
            let _ = self.base.remove_begun_subdirectory(&chunk_name(1), &directory);
            return Err(error);
        }
        // If this fails, a trace of the same name without events remains.
        let _ = self.base.remove_contents_begun();
        self.chunk = Some(directory);
        self.rotation.begin(1, None);
        Ok(())
    }

    /// Begins the next chunk. Returns the path of the closed one.
    fn begin_next_chunk(&mut self) -> io::Result<PathBuf> {
        if self.chunk.is_none() {
            self.move_into_first_chunk()?;
        }
        let next = self.rotation.number + 1;
        let (directory, streams) = self.make_chunk(next)?;
        let account = self.accounting.account(self.rotation.chunk(false));
        let (folder, name) = account_path();
        if let Err(error) = self.here().put_whole(folder, name, &account.to_json()) {
            let _ = self.base.remove_begun_subdirectory(&chunk_name(next), &directory);
            return Err(error);
        }
        self.cut_streams();
        let closed = self.here().absolute_path().to_owned();
        self.rotation.begin(next, Some(self.accounting.content()));
        self.accounting.next_chunk();
        (self.chunk, self.streams) = (Some(directory), streams);
        Ok(closed)
    }

    fn remove_excess(&mut self) -> Result<(), SinkError> {
        while let Some(number) = self.rotation.excess() {
            self.remove_chunk(number)?;
        }
        Ok(())
    }

    /// Removes the chunk with this number, which is the oldest.
    fn remove_chunk(&mut self, number: u64) -> Result<(), SinkError> {
        let removed = self.base.remove_trace(&chunk_name(number), METADATA);
        removed.map_err(|error| SinkError::new(format!("remove old chunks of {}", self.path().display()), error))?;
        self.rotation.remove();
        Ok(())
    }
}

impl Sink for CtfSink {
    fn name(&self) -> String {
        format!("CTF in {}", self.path().display())
    }

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        if self.rotation.is_asked_for() {
            let first = self.base.create_subdirectory(&chunk_name(1));
            self.chunk = Some(first.map_err(|error| self.failed(&chunk_name(1), error))?);
            self.rotation.begin(1, None);
        }
        self.append(METADATA, start.metadata.as_bytes())?;
        self.metadata.push_str(start.metadata);
        self.accounting.begin(start.trace, start.channels);
        Ok(())
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        // The metadata is written last: when a caller retries after an error, none of it is in the file.
        let count = new.events.len() as u64;
        self.events += count;
        let reserved = self.reserve(self.here()).map_err(|error| self.failed(ACCOUNT_PATH, error));
        if let Err(error) = reserved.and_then(|()| self.append(METADATA, new.metadata.as_bytes())) {
            self.events -= count;
            return Err(error);
        }
        self.metadata.push_str(new.metadata);
        new.channels.iter().for_each(|channel| self.accounting.add_channel(channel));
        self.accounting.describe(new.events);
        Ok(())
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        let file = stream.file_name();
        self.append(&file, packet.bytes)?;
        self.accounting.add(stream.id, &file, packet);
        Ok(())
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.cut_streams();
        let (folder, name) = account_path();
        let put = self.here().put_whole(folder, name, &account.to_json());
        put.map_err(|error| self.failed(ACCOUNT_PATH, error))
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl SinkExtension for CtfSink {
    fn output(&self) -> Option<Output> {
        Some(Output { format: "ctf", path: self.base.absolute_path().to_owned() })
    }

    fn adjust_account(&self, account: &mut Account) {
        self.accounting.adjust(account, self.chunk.is_some().then(|| self.rotation.chunk(true)));
    }

    fn can_rotate(&self) -> bool {
        true
    }

    fn close_files(&mut self) {
        self.streams.close();
        self.base.close();
        self.chunk.iter().for_each(Directory::close);
    }

    fn rotate(&mut self, when: Rotation) -> Result<Option<PathBuf>, SinkError> {
        let content = self.accounting.content();
        if content.packets == 0 || (when == Rotation::IfDue && !self.rotation.is_due(content)) {
            return Ok(None);
        }
        match self.begin_next_chunk() {
            Ok(closed) => self.remove_excess().map(|()| Some(closed)),
            Err(error) => {
                self.rotation.fail();
                Err(self.cannot_rotate(error))
            }
        }
    }
}

/// Returns the folder and the name of the account.
fn account_path() -> (&'static str, &'static str) {
    ACCOUNT_PATH.split_once('/').unwrap_or((".account", ACCOUNT_PATH))
}
