//! A trace that was recorded already, for a server.

use super::server::{Packet, UdpServer};
use super::sizes::Sizes;
use crate::account::Account;
use crate::error::SinkError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tracepoint::channel::StreamId;
use tracepoint_reader::metadata::MAX_METADATA;
use tracepoint_reader::udp::wire::packet::HEADER;
use tracepoint_reader::{Damage, Metadata, PacketDecoder, Packets, ReadError, Trace, stream_files};

/// The longest packet that is served, in bytes.
const LONGEST_PACKET: u64 = 64 << 20;
/// Where a packet says how long it is, in bits.
const PACKET_SIZE: usize = 56;

/// A recorded trace: a CTF directory.
#[derive(Debug)]
pub struct Replay {
    text: Vec<u8>,
    metadata: Metadata,
    sizes: Option<Sizes>,
    files: Vec<PathBuf>,
    account: Option<Account>,
}

/// One stream file.
struct Lane {
    path: PathBuf,
    file: File,
    packets: Packets,
    next: tracepoint_reader::Packet,
}

impl Replay {
    /// Opens the trace at `path`, which is a directory with one CTF trace in it or below it.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`]; [`ReadError::NotATrace`] if there are several traces.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let trace = Trace::open(path)?;
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
        Ok(Self { text, metadata: metadata.clone(), sizes: Sizes::of(metadata), files, account })
    }

    /// Whether it can be sent in batches: whether it is laid out as `tracepoint` does it. If not, it is sent in the stock layout.
    pub const fn has_batches(&self) -> bool {
        self.sizes.is_some()
    }

    /// Tells `server` what there is, and has it begin to answer.
    ///
    /// # Errors
    ///
    /// As [`UdpServer::start`].
    pub fn begin(&self, server: &mut UdpServer) -> Result<(), SinkError> {
        server.describe_bytes(&self.text)?;
        let offset = self.metadata.clocks().first().map_or(0, |clock| clock.nanoseconds(0));
        server.start(Box::new(move || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            u64::try_from(i128::try_from(now).unwrap_or(0) - i128::from(offset)).unwrap_or(0)
        }))
    }

    /// Gives `server` all packets, by the times at which they begin, as fast as it has room for them. What cannot be read is told
    /// to `damaged`. `false` if the server was ended meanwhile.
    pub fn run(&self, server: &UdpServer, mut damaged: impl FnMut(Damage)) -> bool {
        let mut lanes = Vec::new();
        let mut order = BinaryHeap::new();
        for path in &self.files {
            match Lane::open(&self.metadata, path) {
                Ok(Some(lane)) => {
                    order.push(Reverse((lane.next.begin, lanes.len())));
                    lanes.push(lane);
                }
                Ok(None) => {}
                Err(damage) => damaged(damage),
            }
        }
        while let Some(Reverse((_, index))) = order.pop() {
            let Some(lane) = lanes.get_mut(index) else { break };
            let packet = match lane.packet(&self.metadata, self.sizes.as_ref()) {
                Ok(packet) => packet,
                Err(damage) => {
                    damaged(damage);
                    continue;
                }
            };
            if !server.push_when_there_is_room(packet) {
                return false;
            }
            match lane.packets.next() {
                Some(Ok(next)) => {
                    lane.next = next;
                    order.push(Reverse((lane.next.begin, index)));
                }
                Some(Err(damage)) => damaged(damage),
                None => {}
            }
        }
        true
    }

    /// The account of the trace, if it has one.
    pub const fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }
}

impl Lane {
    /// `None`: there is no packet in it.
    fn open(metadata: &Metadata, path: &Path) -> Result<Option<Self>, Damage> {
        let damage = |reason| Damage { file: path.to_owned(), offset: 0, reason };
        let file = File::open(path).map_err(|error| damage(format!("cannot be opened: {error}")))?;
        let mut packets = Packets::open(metadata, path).map_err(|error| damage(error.to_string()))?;
        let next = packets.next().transpose()?;
        Ok(next.map(|next| Self { path: path.to_owned(), file, packets, next }))
    }

    /// Reads the next packet.
    fn packet(&self, metadata: &Metadata, sizes: Option<&Sizes>) -> Result<Packet, Damage> {
        let offset = self.next.offset;
        let damage = |reason| Damage { file: self.path.clone(), offset, reason };
        let size = if sizes.is_some() { self.next.content_bits.div_ceil(8) } else { self.next.size() };
        if size > LONGEST_PACKET {
            return Err(damage(format!("a packet of {size} bytes is not served")));
        }
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| damage(format!("cannot be read: {error}")))?;
        let class = u32::try_from(self.next.class.id).map_err(|_| damage("its stream class is unheard of".into()))?;
        let events = match sizes {
            Some(sizes) => {
                // Padding does not travel.
                if let Some(word) = bytes.get_mut(PACKET_SIZE..PACKET_SIZE + 8) {
                    word.copy_from_slice(&(size * 8).to_le_bytes());
                }
                sizes.records(class, &bytes, HEADER, 0).count()
            }
            None => PacketDecoder::new(metadata, &bytes).map_or(0, Iterator::count),
        };
        let stream = StreamId { class, instance: self.next.instance.unwrap_or(0) };
        Ok(Packet { stream, bytes, events: events as u64 })
    }
}
