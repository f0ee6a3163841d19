//! The sink that writes a CTF directory.

use super::CtfError;
use super::directory::Directory;
use super::metadata::MetadataText;
use super::streams::Streams;
use crate::account::{ACCOUNT_PATH, Account};
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::{Output, Sink, StreamInfo};
use crate::trace_info::TraceInfo;
use std::path::Path;
use tracepoint::channel::Packet;

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
#[derive(Debug)]
pub struct CtfSink {
    directory: Directory,
    streams: Streams,
    events: u64,
}

impl CtfSink {
    /// A sink that writes into `directory`, which is made, parents included, if it does not exist.
    ///
    /// # Errors
    ///
    /// If the directory is not empty, is no directory, or cannot be made.
    pub fn create(directory: impl AsRef<Path>) -> Result<Self, CtfError> {
        Ok(Self { directory: Directory::create(directory.as_ref())?, streams: Streams::default(), events: 0 })
    }

    /// The directory, as it was named.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), SinkError> {
        self.streams.append(&self.directory, name, bytes).map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: std::io::Error) -> SinkError {
        SinkError::new(format!("write {}", self.path().join(name).display()), error)
    }
}

impl Sink for CtfSink {
    fn name(&self) -> String {
        format!("CTF in {}", self.path().display())
    }

    fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        self.append(METADATA, MetadataText::begin(trace, channels).as_str().as_bytes())
    }

    fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        self.append(METADATA, MetadataText::events(events).as_str().as_bytes())?;
        self.events += events.len() as u64;
        // A disk that fills up takes no account of what it did not take, unless there is room for it from the start.
        let (folder, name) = account_path();
        let size = ACCOUNT_SIZE + ACCOUNT_EVENT_SIZE * self.events;
        self.directory.reserve(folder, name, size).map_err(|error| self.failed(ACCOUNT_PATH, error))
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        self.append(&self.file_of(stream), packet.bytes)
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        let (folder, name) = account_path();
        self.directory.put_whole(folder, name, &account.to_json()).map_err(|error| self.failed(ACCOUNT_PATH, error))
    }

    fn file_of(&self, stream: &StreamInfo) -> String {
        format!("{}_{}", stream.channel, stream.id.instance)
    }

    fn output(&self) -> Option<Output> {
        Some(Output { format: "ctf", path: self.directory.absolute_path().to_owned() })
    }
}

/// The folder and the name of the account.
fn account_path() -> (&'static str, &'static str) {
    ACCOUNT_PATH.split_once('/').unwrap_or(("account", ACCOUNT_PATH))
}
