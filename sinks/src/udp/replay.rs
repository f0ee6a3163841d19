//! A trace that was recorded already, for a server.

mod directory;
mod dt;

use super::server::{Packet, UdpServer};
use crate::account::Account;
use crate::error::SinkError;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tracepoint_core::channel::StreamId;
use tracepoint_reader::dt::DtTrace;
use tracepoint_reader::internal::RecordSizes;
use tracepoint_reader::metadata::MAX_METADATA;
use tracepoint_reader::udp::wire::packet::HEADER;
use tracepoint_reader::{Damage, Metadata, PacketDecoder, ReadError, Trace, stream_files};

/// Where a packet says how long it is, in bits.
const PACKET_SIZE: usize = 56;

/// A recorded trace: a CTF directory, or a dt file of a session.
#[derive(Debug)]
pub struct Replay {
    description: Description,
    text: Vec<u8>,
    recorded: Recorded,
    account: Option<Account>,
}

/// Where its packets are.
#[derive(Debug)]
enum Recorded {
    /// Stream files.
    Files(Vec<PathBuf>),
    /// Slots.
    Dt(DtTrace),
}

/// What its packets look like.
#[derive(Debug)]
struct Description {
    metadata: Metadata,
    /// `None`: they are laid out by another tracer.
    sizes: Option<RecordSizes>,
}

impl Replay {
    /// Opens the trace at `path`, which is a directory with one CTF trace in it or below it, or a dt file. Of a dt file, what has been
    /// overwritten is missing at the beginning of its streams; an account that is not complete, as a killed session leaves it, does
    /// not go along.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`]; [`ReadError::NotATrace`] if there are several traces; [`ReadError::Account`] if the account of a dt file is
    /// damaged.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let trace = match Trace::open(path)?.into_dt() {
            Ok(trace) => return Self::of_dt(trace),
            Err(directories) => directories,
        };
        let mut parts = trace.metadata();
        let (Some((directory, metadata)), None) = (parts.next(), parts.next()) else {
            let reason = "there are several traces below it, and a server has one".to_owned();
            return Err(ReadError::NotATrace { path: path.to_owned(), reason });
        };
        let io = |path: PathBuf| |source| ReadError::Io { path, source };
        let text = directory.join("metadata");
        let text = std::fs::read(&text).map_err(io(text))?;
        if text.len() > MAX_METADATA {
            let reason = "its metadata has grown beyond measure".to_owned();
            return Err(ReadError::NotATrace { path: path.to_owned(), reason });
        }
        let files = stream_files(directory).map_err(io(directory.to_owned()))?;
        let account = Account::open(directory).ok();
        Ok(Self { description: Description::of(metadata), text, recorded: Recorded::Files(files), account })
    }

    fn of_dt(trace: DtTrace) -> Result<Self, ReadError> {
        let account = trace.account()?.filter(|account| account.complete);
        let (description, text) = (Description::of(trace.metadata()), trace.metadata_text().to_vec());
        Ok(Self { description, text, recorded: Recorded::Dt(trace), account })
    }

    /// Whether it can be sent in batches: whether it is laid out as `tracepoint` does it. If not, it is sent in the stock layout.
    pub const fn has_batches(&self) -> bool {
        self.description.sizes.is_some()
    }

    /// Tells `server` what there is, and has it begin to answer.
    ///
    /// # Errors
    ///
    /// As [`UdpServer::start`].
    pub fn begin(&self, server: &mut UdpServer) -> Result<(), SinkError> {
        server.describe_bytes(&self.text)?;
        let offset = self.description.metadata.clocks().first().map_or(0, |clock| clock.nanoseconds(0));
        server.start(Box::new(move || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            u64::try_from(i128::try_from(now).unwrap_or(0) - i128::from(offset)).unwrap_or(0)
        }))
    }

    /// Gives `server` all packets, by the times at which they begin, as fast as it has room for them. What cannot be read is told
    /// to `damaged`. `false` if the server was ended meanwhile, or took no more: the rest is read all the same, and counted as lost.
    pub fn run(&self, server: &UdpServer, mut damaged: impl FnMut(Damage)) -> bool {
        let mut all = true;
        let mut push = |packet| {
            all &= server.push_blocking(packet);
            true
        };
        match &self.recorded {
            Recorded::Files(files) => directory::run(files, &self.description, &mut push, &mut damaged),
            Recorded::Dt(trace) => dt::run(trace, &self.description, &mut push, &mut damaged),
        };
        all
    }

    /// The account of the trace, if it has one, with what this server has lost by now. What was lost on an earlier way by UDP has another
    /// name in it, so that it is not taken for losses of this one.
    pub fn account_of(&self, server: &UdpServer) -> Option<Account> {
        let mut account = self.account.clone()?;
        for channel in &mut account.channels {
            let Ok(class) = u32::try_from(channel.id) else { continue };
            for line in &mut channel.streams {
                for (reason, events) in std::mem::take(&mut line.sink_lost) {
                    let reason = if reason.starts_with("udp_") { format!("before_{reason}") } else { reason };
                    *line.sink_lost.entry(reason).or_default() += events;
                }
                for (reason, events) in server.lost(StreamId { class, instance: line.instance }) {
                    *line.sink_lost.entry(reason.to_owned()).or_default() += events;
                    line.sink = line.sink.saturating_add(events);
                    line.written = line.written.saturating_sub(events);
                }
            }
        }
        Some(account)
    }
}

impl Description {
    fn of(metadata: &Metadata) -> Self {
        Self { sizes: RecordSizes::of(metadata), metadata: metadata.clone() }
    }

    /// Makes of a packet's bytes what a server takes. If it can be sent in batches, it has no padding any more.
    fn packet(&self, class: u64, instance: Option<u64>, mut bytes: Vec<u8>) -> Result<Packet, String> {
        let class = u32::try_from(class).map_err(|_| "its stream class is unheard of".to_owned())?;
        let events = match &self.sizes {
            Some(sizes) => {
                // Padding does not travel.
                let size = bytes.len() as u64;
                if let Some(word) = bytes.get_mut(PACKET_SIZE..PACKET_SIZE + 8) {
                    word.copy_from_slice(&(size * 8).to_le_bytes());
                }
                sizes.records(class, &bytes, HEADER, 0).count()
            }
            None => PacketDecoder::new(&self.metadata, &bytes).map_or(0, Iterator::count),
        };
        let stream = StreamId { class, instance: instance.unwrap_or(0) };
        Ok(Packet { stream, bytes, events: events as u64 })
    }
}
