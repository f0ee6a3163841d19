//! Serves a recorded trace.

mod directory;
mod dt;

use super::server::{Packet, UdpServer};
use crate::account::Account;
use crate::ctf;
use crate::error::SinkError;
use crate::trace_info::{ClockInfo, ProcessInfo, TraceInfo};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tracepoint_reader::dt::DtTrace;
use tracepoint_reader::internal::{RecordSizes, seal};
use tracepoint_reader::metadata::MAX_METADATA;
use tracepoint_reader::{Damage, Metadata, PacketDecoder, ReadError, Trace, stream_files};
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader, StreamId};

/// A recorded trace: a CTF directory, or a dt file of a session.
#[derive(Debug)]
pub struct Replay {
    description: Description,
    text: Vec<u8>,
    recorded: ReplaySource,
    account: Option<Account>,
}

/// The source of its packets.
#[derive(Debug)]
enum ReplaySource {
    /// Stream files.
    Files(Vec<PathBuf>),
    /// The slots of a dt file.
    Dt(DtTrace),
}

/// The layout of its packets.
#[derive(Debug)]
struct Description {
    metadata: Metadata,
    /// `None` for the packets of another tracer.
    sizes: Option<RecordSizes>,
}

impl Replay {
    /// Opens the trace at `path`: a directory with one CTF trace in it or below it, or a dt file. The streams of a dt file lack overwritten packets.
    /// An account that is not complete, as after a killed session, is not served.
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
            let reason = "there are several traces below it, and a server serves one; name one of them".to_owned();
            return Err(ReadError::NotATrace { path: path.to_owned(), reason });
        };
        let io = |path: PathBuf| |source| ReadError::Io { path, source };
        let text = directory.join("metadata");
        let text = std::fs::read(&text).map_err(io(text))?;
        if text.len() > MAX_METADATA {
            let reason = format!("its metadata is longer than {MAX_METADATA} bytes");
            return Err(ReadError::NotATrace { path: path.to_owned(), reason });
        }
        let files = stream_files(directory).map_err(io(directory.to_owned()))?;
        let account = Account::open(directory).ok();
        Ok(Self { description: Description::of(metadata), text, recorded: ReplaySource::Files(files), account })
    }

    /// Creates a trace without events, to serve only those of [`UdpOptions::events_from`](super::UdpOptions::events_from). Their times count from
    /// 1970.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotATrace`]: never in a sound build.
    pub fn without_trace() -> Result<Self, ReadError> {
        let mut uuid = [0; 16];
        uuid.chunks_mut(8).for_each(|half| half.copy_from_slice(&RandomState::new().hash_one(()).to_le_bytes()));
        let process = ProcessInfo { pid: std::process::id(), ..ProcessInfo::default() };
        let name = "events".to_owned();
        let mut account = Account::new(uuid, name.clone(), process.pid);
        account.complete = true;
        let text =
            ctf::metadata(&TraceInfo { uuid, name, clock: ClockInfo::default(), process }, &[], &[]).into_bytes();
        let metadata = Metadata::parse(&text)
            .map_err(|error| ReadError::NotATrace { path: PathBuf::new(), reason: error.to_string() })?;
        let (description, recorded) = (Description::of(&metadata), ReplaySource::Files(Vec::new()));
        Ok(Self { description, text, recorded, account: Some(account) })
    }

    fn of_dt(trace: DtTrace) -> Result<Self, ReadError> {
        let account = trace.account()?.filter(|account| account.complete);
        let (description, text) = (Description::of(trace.metadata()), trace.metadata_text().to_vec());
        Ok(Self { description, text, recorded: ReplaySource::Dt(trace), account })
    }

    /// Returns whether it can be sent in batches, as traces of `tracepoint` can. Others are sent in the legacy layout.
    pub const fn has_batches(&self) -> bool {
        self.description.sizes.is_some()
    }

    /// Returns the damage if the metadata, read from `file`, differs from what was written. It is served unchanged.
    pub fn metadata_damage(&self, file: &Path) -> Option<Damage> {
        Damage::of_metadata(file, &self.description.metadata)
    }

    /// Describes the trace to `server`, and starts it.
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

    /// Pushes all packets to `server`, sorted by begin time, as fast as it accepts them. Reports damage to `damaged`. Returns `false` if the server
    /// has ended in the meantime or accepted no more packets: the rest is then read and counted as lost, unless [`UdpServer::quit`] was called.
    pub fn run(&self, server: &UdpServer, mut damaged: impl FnMut(Damage)) -> bool {
        let mut all = true;
        let mut push = |packet| {
            all &= server.push_blocking(packet);
            !server.is_quitting()
        };
        match &self.recorded {
            ReplaySource::Files(files) => directory::run(files, &self.description, &mut push, &mut damaged),
            ReplaySource::Dt(trace) => dt::run(trace, &self.description, &mut push, &mut damaged),
        };
        all
    }

    /// Returns the trace's account, if it has one, with the losses of this server so far. Losses of an earlier server get another name, to
    /// distinguish them.
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

    /// Creates a packet for the server. If it can be sent in batches, its padding was removed.
    fn packet(&self, class: u64, instance: Option<u64>, mut bytes: Vec<u8>) -> Result<Packet, String> {
        let class = u32::try_from(class).map_err(|_| "its stream class has an id of more than 32 bits".to_owned())?;
        let events = match &self.sizes {
            Some(sizes) => {
                // The packet ends with its content.
                let header = PacketHeader::parse(&bytes);
                let packet_bits = bytes.len() as u64 * 8;
                if header.packet_bits != packet_bits {
                    PacketHeader { packet_bits, ..header }.write_to(&mut bytes);
                    seal(&mut bytes);
                }
                sizes.records(class, &bytes, HEADER_SIZE, 0).count()
            }
            None => PacketDecoder::new(&self.metadata, &bytes).map_or(0, Iterator::count),
        };
        let stream = StreamId { class, instance: instance.unwrap_or(0) };
        Ok(Packet { stream, bytes, events: events as u64 })
    }
}
