//! A circular trace file: the newest packets of a trace, and all that is needed to read them.
//!
//! ```text
//!   packet ──▶ a slot; when all are used, that of the oldest packet
//!   events ──▶ metadata  ┐ postambles, of which there are always two copies:
//!   account, every 500 ms┘ one of them is whole at whatever instant the process is killed
//! ```
//!
//! The file never grows beyond its slots and its description. `tracectl view` and `verify` read it as they read a directory;
//! `tracectl convert` makes a directory of it.

use crate::account::{Account, Chunk};
use crate::ctf::MetadataText;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::sink::{Output, Sink, StreamInfo};
use crate::trace_info::TraceInfo;
use datatrace::{Error, FileStorage};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint_core::channel::{Packet, StreamId};
use tracepoint_reader::dt::DtTraceWriter;

/// How much room is kept for the account, in bytes: for a few dozen streams…
const ACCOUNT_SIZE: usize = 16 << 10;
/// …and for each event, with a few reasons why it was lost.
const ACCOUNT_EVENT_SIZE: usize = 384;

/// Writes the newest packets of a trace into a circular file of a fixed size, one packet for each slot.
///
/// The file is made at its full size when the session starts. What was written survives `kill -9` at any instant, with the
/// description of all events.
///
/// ```no_run
/// use tracepoint_sinks::DtSink;
///
/// let sink = DtSink::create("/var/tmp/shop.dt", 256)?; // the newest 256 packets
/// # Ok::<(), tracepoint_sinks::DtError>(())
/// ```
#[derive(Debug)]
pub struct DtSink {
    path: PathBuf,
    absolute: PathBuf,
    slots: u32,
    slot_size: Option<u32>,
    replace: bool,
    file: File,
    events: usize,
    /// The streams of which it was given a packet.
    begun: HashSet<StreamId>,
}

#[derive(Debug)]
enum File {
    /// It has no name and no slots yet.
    New(FileStorage),
    /// It is written to.
    Open(Box<DtTraceWriter>),
    /// It could not be begun.
    Gone,
}

impl DtSink {
    /// A sink that writes into a new file at `path`, of `slots` packets. Packets are as large as the session's channel makes them:
    /// its ring divided by the number of packets in it. The directory must exist. The file appears when the session starts.
    ///
    /// # Errors
    ///
    /// If there are no slots or too many, if a file of that name exists, or if its directory does not take one.
    pub fn create(path: impl AsRef<Path>, slots: u32) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let most = i32::MAX as u32;
        if slots == 0 || slots > most {
            let (value, most) = (u64::from(slots), u64::from(most));
            return Err(Error::Limit { what: "the number of slots", value, least: 1, most });
        }
        let failed = |source| Error::Io { path: path.clone(), action: "find the directory of", source };
        let absolute = std::path::absolute(&path).map_err(failed)?;
        let file = File::New(FileStorage::begin(&path)?);
        Ok(Self { path, absolute, slots, slot_size: None, replace: false, file, events: 0, begun: HashSet::new() })
    }

    /// Gives each slot so many bytes: 8 more than the largest packet, and a multiple of 4. Unless told otherwise, they are as large as the
    /// session's packets need. A session whose packets can be larger does not start.
    #[must_use]
    pub fn slot_size(mut self, bytes: u32) -> Self {
        self.slot_size = Some(bytes);
        self
    }

    /// Whether the file may take the place of an older one that nobody is writing: no, unless told otherwise.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// The file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of a slot that takes these channels' packets.
    fn size_for(&self, channels: &[ChannelDescription]) -> Result<u32, SinkError> {
        let largest = channels.iter().map(|channel| channel.packet_size).max().unwrap_or(0);
        let needed = DtTraceWriter::slot_size(largest);
        let size = self.slot_size.map_or(needed, u64::from);
        if size < needed {
            let reason = format!(
                "a slot of {size} bytes does not take the session's packets of up to {largest} bytes; give it {needed} \
                 (`DtSink::slot_size`), or the channel more and smaller packets (`Channel::packets`)"
            );
            return Err(self.refused(reason));
        }
        u32::try_from(size)
            .map_err(|_| self.refused(format!("no slot has {size} bytes; give the channel smaller packets")))
    }

    fn refused(&self, reason: String) -> SinkError {
        SinkError::new(
            format!("record into {}", self.path.display()),
            io::Error::new(io::ErrorKind::InvalidInput, reason),
        )
    }

    fn failed(&self, error: Error) -> SinkError {
        match error {
            Error::Io { path, action, source } => {
                SinkError::new(format!("record into {} ({action})", path.display()), source)
            }
            other => SinkError::new(format!("record into {}", self.path.display()), io::Error::other(other)),
        }
    }

    /// Does something with the file.
    fn with(&mut self, act: impl FnOnce(&mut DtTraceWriter) -> Result<(), Error>) -> Result<(), SinkError> {
        match &mut self.file {
            File::Open(file) => act(file).map_err(|error| self.failed(error)),
            File::New(_) | File::Gone => Err(self.refused("it was not begun".to_owned())),
        }
    }
}

impl Sink for DtSink {
    fn name(&self) -> String {
        format!("dt file {}", self.path.display())
    }

    fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        self.begin_with_text(trace, channels, MetadataText::begin(trace, channels).as_str())
    }

    fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        self.describe_with_text(events, MetadataText::events(events).as_str())
    }

    fn add_channel(&mut self, trace: &TraceInfo, channel: &ChannelDescription) -> Result<(), SinkError> {
        let needed = DtTraceWriter::slot_size(channel.packet_size);
        if self.slot_size.is_none_or(|size| u64::from(size) < needed) {
            return Err(self.refused(format!(
                "its slots do not take packets of {} bytes, those of the channel `{}`; give the channel more and smaller packets \
                 (`Channel::packets`), or the file a `DtSink::slot_size` of {needed} from the start",
                channel.packet_size, channel.name
            )));
        }
        self.with(|file| file.describe(MetadataText::further_channel(trace, channel).as_str().as_bytes()))
    }

    fn begin_with_text(&mut self, _: &TraceInfo, channels: &[ChannelDescription], text: &str) -> Result<(), SinkError> {
        let slot_size = self.size_for(channels)?;
        self.slot_size = Some(slot_size);
        let File::New(storage) = std::mem::replace(&mut self.file, File::Gone) else {
            return Err(self.refused("it has been begun before".to_owned()));
        };
        let begun = DtTraceWriter::create(storage, self.slots, slot_size).and_then(|mut file| {
            file.describe(text.as_bytes())?;
            file.publish(self.replace)?;
            Ok(file)
        });
        self.file = File::Open(Box::new(begun.map_err(|error| self.failed(error))?));
        Ok(())
    }

    fn describe_with_text(&mut self, events: &[EventDescription], text: &str) -> Result<(), SinkError> {
        self.events += events.len();
        let size = ACCOUNT_SIZE + ACCOUNT_EVENT_SIZE * self.events;
        self.with(|file| {
            file.describe(text.as_bytes())?;
            file.reserve(size)
        })
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        let events = packet.events_after - packet.events_before;
        // Readers of a circular file take what was recorded before its first packet as overwritten. That is also how they see what was
        // recorded before the sink was added, so that the packet with which it joins the stream is left out.
        if self.begun.insert(stream.id) && events == 0 && packet.events_before > 0 {
            return Ok(());
        }
        self.with(|file| file.packet(u64::from(stream.id.class), stream.id.instance, packet.bytes, events))
    }

    fn wants_checkpoints(&self) -> bool {
        true
    }

    fn checkpoint(&mut self, account: &Account) -> Result<(), SinkError> {
        self.with(|file| file.save(account))
    }

    fn settle(&self, account: &mut Account) {
        for stream in account.channels.iter_mut().flat_map(|channel| &mut channel.streams) {
            let missed = std::mem::take(&mut stream.before).written;
            stream.written -= missed;
            stream.overwritten += missed;
        }
        account.chunk = account.chunk.take().filter(|chunk| chunk.detached).map(|_| {
            let mut chunk = Chunk::default();
            (chunk.number, chunk.detached) = (1, true);
            chunk
        });
        if let File::Open(file) = &self.file {
            file.settle(account);
        }
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.with(|file| file.finish(account))
    }

    fn file_of(&self, stream: &StreamInfo) -> String {
        format!("{}_{}", stream.channel, stream.id.instance)
    }

    fn output(&self) -> Option<Output> {
        Some(Output { format: "dt", path: self.absolute.clone() })
    }
}
