//! The sink that writes a CTF directory.

use super::CtfError;
use super::books::Books;
use super::directory::Directory;
use super::metadata::MetadataText;
use super::rotation::Rotation;
use super::streams::Streams;
use crate::account::{ACCOUNT_PATH, Account};
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::{Output, Sink, StreamInfo};
use crate::trace_info::TraceInfo;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_core::channel::Packet;
use tracepoint_reader::chunk_name;

/// The name of the metadata file.
const METADATA: &str = "metadata";
/// How much room is kept for the account, in bytes: for a few dozen streams…
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
/// [`Sink::rotate`] closes what was written so far as a trace by itself, in a directory `chunk-000001` and so on in this one, and goes
/// on in the next. They share the trace's UUID; packet numbers and counters run on. A trace that is to be cut by size or time is in
/// chunks from the beginning; one that is not is moved into its first chunk by the first rotation.
#[derive(Debug)]
pub struct CtfSink {
    base: Directory,
    /// The present chunk; `None` while the trace is not cut.
    chunk: Option<Directory>,
    streams: Streams,
    rotation: Rotation,
    books: Books,
    /// What is in the metadata.
    text: String,
    events: u64,
}

impl CtfSink {
    /// A sink that writes into `directory`, which is made, parents included, if it does not exist.
    ///
    /// # Errors
    ///
    /// If the directory is not empty, is no directory, or cannot be made.
    pub fn create(directory: impl AsRef<Path>) -> Result<Self, CtfError> {
        Ok(Self {
            base: Directory::create(directory.as_ref())?,
            chunk: None,
            streams: Streams::default(),
            rotation: Rotation::default(),
            books: Books::default(),
            text: String::new(),
            events: 0,
        })
    }

    /// Goes on in another chunk when packets of so many bytes, or a little more, are in the present one. Never, unless told otherwise.
    #[must_use]
    pub const fn rotate_size(mut self, bytes: u64) -> Self {
        self.rotation.by_size(bytes);
        self
    }

    /// Goes on in another chunk when the present one is so old, if there is anything in it; looked at whenever the session's packets
    /// are moved, every 200 ms at least. Never, unless told otherwise.
    #[must_use]
    pub const fn rotate_every(mut self, time: Duration) -> Self {
        self.rotation.by_time(time);
        self
    }

    /// How many chunks stay, the present one included: the newest; older ones are removed when another one begins, and the account
    /// tells what was in them. All of them, unless told otherwise.
    #[must_use]
    pub const fn keep(mut self, chunks: usize) -> Self {
        self.rotation.keep(chunks);
        self
    }

    /// The directory, as it was named.
    pub fn path(&self) -> &Path {
        self.base.path()
    }

    /// How many bytes of packets are there, in all chunks that stay.
    pub fn kept_bytes(&self) -> u64 {
        self.rotation.closed_bytes() + self.books.content().bytes
    }

    /// Removes the oldest chunk, should there be one before the present one: whether there was. The account tells what was in it.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub fn remove_oldest(&mut self) -> Result<bool, SinkError> {
        let Some(number) = self.rotation.oldest() else { return Ok(false) };
        self.remove_chunk(number).map(|()| true)
    }

    /// Removes a directory in which a trace was begun, and nothing was recorded. One in which there is anything else stays as it is.
    ///
    /// # Errors
    ///
    /// If it cannot be looked into, or not be removed.
    pub fn remove_unused(directory: impl AsRef<Path>) -> io::Result<()> {
        let base = Directory::open(directory.as_ref())?;
        let first = chunk_name(1);
        if let Ok(chunk) = base.open_subdirectory(&first) {
            base.remove_begun_subdirectory(&first, &chunk)?;
        }
        base.remove_begun()
    }

    /// Where the packets go.
    fn here(&self) -> &Directory {
        self.chunk.as_ref().unwrap_or(&self.base)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        let directory = self.chunk.as_ref().unwrap_or(&self.base);
        self.streams.append(directory, name, bytes).map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> SinkError {
        SinkError::new(format!("write {}", self.here().path().join(name).display()), error)
    }

    fn cannot_rotate(&self, error: io::Error) -> SinkError {
        SinkError::new(format!("go on in another chunk of {}", self.path().display()), error)
    }

    /// Room that is kept for the account: a disk that fills up takes no account of what it did not take, unless there is.
    fn reserve(&self, directory: &Directory) -> io::Result<()> {
        let (folder, name) = account_path();
        directory.reserve(folder, name, ACCOUNT_SIZE + ACCOUNT_EVENT_SIZE * self.events)
    }

    /// Makes the directory of a chunk, with all in it that is known of the trace.
    fn make_chunk(&self, number: u64) -> io::Result<(Directory, Streams)> {
        let name = chunk_name(number);
        let directory = self.base.create_subdirectory(&name)?;
        let mut streams = Streams::default();
        let made = streams.append(&directory, METADATA, self.text.as_bytes()).and_then(|()| self.reserve(&directory));
        match made {
            Ok(()) => Ok((directory, streams)),
            Err(error) => {
                let _ = self.base.remove_begun_subdirectory(&name, &directory);
                Err(error)
            }
        }
    }

    /// Moves a trace that is not cut into its first chunk. At whatever moment the process is killed, each file is in one of two
    /// directories, and both have the metadata.
    fn cut(&mut self) -> io::Result<()> {
        let (directory, _) = self.make_chunk(1)?;
        let moved = self.streams.move_to(&self.base, &directory, METADATA);
        if let Err(error) = moved {
            let _ = self.base.remove_begun_subdirectory(&chunk_name(1), &directory);
            return Err(error);
        }
        // What cannot be removed is a trace of the same name without events.
        let _ = self.base.remove_contents_begun();
        self.chunk = Some(directory);
        self.rotation.begin(1, None);
        Ok(())
    }

    /// Goes on in the next chunk; where the one before is.
    fn go_on(&mut self) -> io::Result<PathBuf> {
        if self.chunk.is_none() {
            self.cut()?;
        }
        let next = self.rotation.number() + 1;
        let (directory, streams) = self.make_chunk(next)?;
        let account = self.books.account(self.rotation.chunk(false));
        let (folder, name) = account_path();
        if let Err(error) = self.here().put_whole(folder, name, &account.to_json()) {
            let _ = self.base.remove_begun_subdirectory(&chunk_name(next), &directory);
            return Err(error);
        }
        let closed = self.here().absolute_path().to_owned();
        self.rotation.begin(next, Some(self.books.content()));
        self.books.next_chunk();
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

    fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        self.begin_with_text(trace, channels, MetadataText::begin(trace, channels).as_str())
    }

    fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        self.describe_with_text(events, MetadataText::events(events).as_str())
    }

    fn add_channel(&mut self, trace: &TraceInfo, channel: &ChannelDescription) -> Result<(), SinkError> {
        let text = MetadataText::further_channel(trace, channel);
        self.append(METADATA, text.as_str().as_bytes())?;
        self.text.push_str(text.as_str());
        self.books.add_channel(channel);
        Ok(())
    }

    fn begin_with_text(
        &mut self,
        trace: &TraceInfo,
        channels: &[ChannelDescription],
        text: &str,
    ) -> Result<(), SinkError> {
        if self.rotation.is_asked_for() {
            let first = self.base.create_subdirectory(&chunk_name(1));
            self.chunk = Some(first.map_err(|error| self.failed(&chunk_name(1), error))?);
            self.rotation.begin(1, None);
        }
        self.append(METADATA, text.as_bytes())?;
        self.text.push_str(text);
        self.books.begin(trace, channels);
        Ok(())
    }

    fn describe_with_text(&mut self, events: &[EventDescription], text: &str) -> Result<(), SinkError> {
        // The text comes last: whoever tries again after an error finds none of it there.
        self.events += events.len() as u64;
        let reserved = self.reserve(self.here()).map_err(|error| self.failed(ACCOUNT_PATH, error));
        if let Err(error) = reserved.and_then(|()| self.append(METADATA, text.as_bytes())) {
            self.events -= events.len() as u64;
            return Err(error);
        }
        self.text.push_str(text);
        self.books.describe(events);
        Ok(())
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        let file = self.file_of(stream);
        self.append(&file, packet.bytes)?;
        self.books.add(stream.id, &file, packet);
        Ok(())
    }

    fn rotation_is_due(&self) -> bool {
        self.rotation.is_due(self.books.content())
    }

    fn can_rotate(&self) -> bool {
        true
    }

    fn rotate(&mut self) -> Result<Option<PathBuf>, SinkError> {
        if self.books.content().packets == 0 {
            return Ok(None);
        }
        match self.go_on() {
            Ok(closed) => self.remove_excess().map(|()| Some(closed)),
            Err(error) => {
                self.rotation.fail();
                Err(self.cannot_rotate(error))
            }
        }
    }

    fn settle(&self, account: &mut Account) {
        if self.chunk.is_some() {
            self.books.settle(account, self.rotation.chunk(true));
        }
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        let (folder, name) = account_path();
        let put = self.here().put_whole(folder, name, &account.to_json());
        put.map_err(|error| self.failed(ACCOUNT_PATH, error))
    }

    fn file_of(&self, stream: &StreamInfo) -> String {
        format!("{}_{}", stream.channel, stream.id.instance)
    }

    fn output(&self) -> Option<Output> {
        Some(Output { format: "ctf", path: self.base.absolute_path().to_owned() })
    }
}

/// The folder and the name of the account.
fn account_path() -> (&'static str, &'static str) {
    ACCOUNT_PATH.split_once('/').unwrap_or(("account", ACCOUNT_PATH))
}
