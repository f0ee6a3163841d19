//! A circular trace file: the newest packets of a trace, with the metadata and the account.
//!
//! ```text
//!   packet ──▶ a slot; when all are used, the slot of the oldest packet
//!   events ──▶ metadata  ┐ postambles, always in two copies: one of them is
//!   account, every 500 ms┘ complete at any instant at which the process is killed
//! ```
//!
//! The file never grows beyond its slots and postambles. `tracectl view` and `verify` read it like a directory; `tracectl convert` writes a directory
//! from it.

use crate::account::Account;
use crate::accounting;
use crate::description::{ChannelDescription, NewEvents, TraceStart};
use crate::error::SinkError;
use crate::sink::{Output, Sink, SinkExtension, StreamInfo};
use datatrace::{Error, FileStorage};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint_reader::dt::{ACCOUNT_TAG, DtTraceWriter, EDGES_TAG, METADATA_TAG};
use tracepoint_ring::channel::{Packet, StreamId};

/// Disk space reserved for the account, in bytes: for a few dozen streams…
const ACCOUNT_SIZE: usize = 16 << 10;
/// …and for each event, with a few reasons why it was lost.
const ACCOUNT_EVENT_SIZE: usize = 384;

/// Tags reserved for the trace itself.
const RESERVED_TAGS: [[u8; 4]; 3] = [METADATA_TAG, EDGES_TAG, ACCOUNT_TAG];

/// Writes the newest packets of a trace into a circular file of fixed size, one packet per slot.
///
/// The file is created at its full size when the session starts. Written data survives `kill -9` at any instant, including the metadata of all
/// events.
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
    /// The file names that the streams would have in a directory.
    files: HashMap<StreamId, String>,
    postambles: Vec<Postamble>,
}

/// A postamble of the program.
struct Postamble {
    tag: [u8; 4],
    contents: Box<dyn FnMut() -> Vec<u8> + Send>,
}

impl fmt::Debug for Postamble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postamble").field("tag", &self.tag.escape_ascii().to_string()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum File {
    /// The file has no name and no slots yet.
    New(FileStorage),
    /// The file is being written.
    Open(Box<DtTraceWriter>),
    /// The file could not be created.
    Gone,
}

impl DtSink {
    /// Creates a sink that writes into a new file at `path`, with `slots` packets. The packet size is the channel's: the size of its ring divided by
    /// the number of packets. The directory must exist. The file appears when the session starts.
    ///
    /// # Errors
    ///
    /// If `slots` is 0 or too large, if the file exists, or if it cannot be created in its directory.
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
        Ok(Self {
            path,
            absolute,
            slots,
            slot_size: None,
            replace: false,
            file,
            events: 0,
            files: HashMap::new(),
            postambles: Vec::new(),
        })
    }

    /// Sets the size of each slot: at least 8 bytes more than the largest packet, and a multiple of 4. The default is the size that the session's
    /// packets require. A session with larger packets does not start.
    #[must_use]
    pub fn slot_size(mut self, bytes: u32) -> Self {
        self.slot_size = Some(bytes);
        self
    }

    /// Sets whether the file may replace an older one that no process is writing. The default is no.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Adds a postamble to the file, for example the program's configuration or final figures. Its contents are created when the session starts, and
    /// replaced when it stops. `tracectl dt postamble --tag TAG` shows it. If the process was killed, the file has the first contents.
    ///
    /// `contents` runs on the thread that starts or stops the session. With a tag of the trace itself (`ctfm`, `ctfe`, `ctfa`), or more than 64 MiB,
    /// the session does not start.
    ///
    /// ```no_run
    /// use tracepoint_sinks::DtSink;
    ///
    /// let sink = DtSink::create("/var/tmp/shop.dt", 256)?
    ///     .postamble(*b"args", || std::env::args().collect::<Vec<_>>().join("\n").into_bytes());
    /// # Ok::<(), tracepoint_sinks::DtError>(())
    /// ```
    #[must_use]
    pub fn postamble(mut self, tag: [u8; 4], contents: impl FnMut() -> Vec<u8> + Send + 'static) -> Self {
        self.postambles.push(Postamble { tag, contents: Box::new(contents) });
        self
    }

    /// Returns the path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the slot size for the packets of these channels.
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

    /// Calls `act` with the file.
    fn with(&mut self, act: impl FnOnce(&mut DtTraceWriter) -> Result<(), Error>) -> Result<(), SinkError> {
        match &mut self.file {
            File::Open(file) => act(file).map_err(|error| self.failed(error)),
            File::New(_) | File::Gone => Err(self.refused("the trace has not begun".to_owned())),
        }
    }
}

fn write_postambles(postambles: &mut [Postamble], file: &mut DtTraceWriter) -> Result<(), Error> {
    postambles.iter_mut().try_for_each(|own| file.put_postamble(own.tag, &(own.contents)()))
}

impl Sink for DtSink {
    fn name(&self) -> String {
        format!("dt file {}", self.path.display())
    }

    fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
        let slot_size = self.size_for(start.channels)?;
        self.slot_size = Some(slot_size);
        let File::New(storage) = std::mem::replace(&mut self.file, File::Gone) else {
            return Err(self.refused("the trace has begun already".to_owned()));
        };
        if let Some(reserved) = self.postambles.iter().find(|own| RESERVED_TAGS.contains(&own.tag)) {
            let tag = reserved.tag.escape_ascii();
            return Err(self.refused(format!("the trace itself has a postamble `{tag}`; give this one another tag")));
        }
        let postambles = &mut self.postambles;
        let begun = DtTraceWriter::create(storage, self.slots, slot_size).and_then(|mut file| {
            file.describe(start.metadata.as_bytes())?;
            write_postambles(postambles, &mut file)?;
            file.publish(self.replace)?;
            Ok(file)
        });
        self.file = File::Open(Box::new(begun.map_err(|error| self.failed(error))?));
        Ok(())
    }

    fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
        let largest = new.channels.iter().map(|channel| channel.packet_size).max().unwrap_or(0);
        let needed = DtTraceWriter::slot_size(largest);
        if let Some(size) = self.slot_size.filter(|size| u64::from(*size) < needed) {
            return Err(self.refused(format!(
                "a slot of {size} bytes does not take the packets of up to {largest} bytes of a channel that is added; give the channel more and \
                 smaller packets (`Channel::packets`), or the file slots of {needed} bytes from the start (`DtSink::slot_size`)"
            )));
        }
        self.events += new.events.len();
        let size = ACCOUNT_SIZE + ACCOUNT_EVENT_SIZE * self.events;
        self.with(|file| {
            file.describe(new.metadata.as_bytes())?;
            file.reserve(size)
        })
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        let events = packet.events_after - packet.events_before;
        // Readers of a circular file count records before its first packet as overwritten. This includes records from before the sink was added, so
        // the empty packet with which the sink joins the stream is not written.
        if self.files.insert(stream.id, stream.file_name()).is_none() && events == 0 && packet.events_before > 0 {
            return Ok(());
        }
        self.with(|file| file.packet(u64::from(stream.id.class), stream.id.instance, packet.bytes, events))
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        let mut postambles = std::mem::take(&mut self.postambles);
        let written = self.with(|file| write_postambles(&mut postambles, file));
        // The account is written in any case.
        self.with(|file| file.finish(account)).and(written)
    }

    fn extension(&mut self) -> Option<&mut dyn SinkExtension> {
        Some(self)
    }
}

impl SinkExtension for DtSink {
    fn output(&self) -> Option<Output> {
        Some(Output { format: "dt", path: self.absolute.clone() })
    }

    fn adjust_account(&self, account: &mut Account) {
        accounting::count_missed(account, |stream, missed| stream.overwritten += missed);
        for channel in &mut account.channels {
            for stream in &mut channel.streams {
                let id = StreamId { class: channel.id as u32, instance: stream.instance };
                if let Some(file) = self.files.get(&id) {
                    stream.file.clone_from(file);
                }
            }
        }
        if let File::Open(file) = &self.file {
            file.adjust(account);
        }
    }

    fn wants_checkpoints(&self) -> bool {
        true
    }

    fn checkpoint(&mut self, account: &Account) -> Result<(), SinkError> {
        self.with(|file| file.save(account))
    }
}
