//! The announced streams, and fetching of their packets.

use super::LiveError;
use super::connection::Relay;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_wire::live::{Index, NEW_METADATA, NEW_STREAM, PacketBytes, PacketStatus, Request, StreamRecord};

/// Number of bytes requested at once.
const PIECE: u64 = 256 << 10;
/// Maximum size of a packet, in bytes.
const MAX_PACKET: u64 = 256 << 20;
/// Maximum total size of packets in memory, over all streams, in bytes.
const MAX_HELD: u64 = 1 << 30;
/// Pause before bytes that the relay does not have yet are requested again.
const PAUSE: Duration = Duration::from_millis(10);

/// A data stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// The id of its trace.
    pub(super) trace: u64,
    /// Its name in messages.
    pub(super) name: PathBuf,
    /// True once it takes part in the merge, which requires its metadata.
    pub(super) is_merged: bool,
    /// The size of its last packet.
    held: u64,
}

/// The result of a request for a packet.
#[derive(Debug)]
pub(super) enum FetchResult {
    /// The packet.
    Packet(Vec<u8>),
    /// These flags have to be handled first.
    Flags(u32),
    /// The stream has ended.
    Ended,
}

impl Stream {
    pub(super) fn new(record: &StreamRecord) -> Self {
        // The names come from the network, and are shown on terminals.
        let name: String = format!("{}/{}", record.path.trim_end_matches('/'), record.channel);
        let name = name.replace(char::is_control, "?");
        Self { trace: record.trace, name: name.into(), is_merged: false, held: 0 }
    }

    /// Fetches the packet of an index. `held` is the total number of packet bytes in memory.
    pub(super) fn fetch<S: Read + Write>(
        &mut self,
        relay: &mut Relay<S>,
        stream: u64,
        index: &Index,
        held: &mut u64,
    ) -> Result<FetchResult, LiveError> {
        let size = index.packet_bits.div_ceil(8);
        let others = *held - self.held;
        for (what, size, most) in
            [("bytes of a packet", size, MAX_PACKET), ("bytes of packets", others + size.min(MAX_PACKET), MAX_HELD)]
        {
            if size > most {
                return Err(LiveError::TooMuch { what, size, most });
            }
        }
        let mut packet = Vec::new();
        let mut heard = Instant::now();
        while (packet.len() as u64) < size {
            let done = packet.len() as u64;
            let length = PIECE.min(size - done) as u32;
            let owned = |bytes: &[u8]| {
                let reply = PacketBytes::decode(bytes, length)?;
                Ok(reply.map(|PacketBytes { status, flags, bytes }| (status, flags, bytes.to_vec())))
            };
            let offset = index.offset.wrapping_add(done);
            let (status, flags, bytes) = relay.ask(Request::Packet { stream, offset, length }, owned)?;
            match status {
                PacketStatus::Ok if bytes.is_empty() => {
                    return Err(LiveError::Relay("it announces a packet, and sends no byte of it"));
                }
                PacketStatus::Ok => {
                    packet.extend_from_slice(&bytes);
                    heard = Instant::now();
                }
                PacketStatus::Error if flags & (NEW_METADATA | NEW_STREAM) != 0 => {
                    return Ok(FetchResult::Flags(flags));
                }
                PacketStatus::Error => return Err(LiveError::Relay("it cannot read a packet that it has announced")),
                PacketStatus::Eof => return Ok(FetchResult::Ended),
                PacketStatus::Retry => {
                    relay.check(heard)?;
                    sleep(PAUSE);
                }
            }
        }
        *held = others + size;
        self.held = size;
        Ok(FetchResult::Packet(packet))
    }

    /// Ends the stream, and subtracts its bytes from `held`.
    pub(super) fn release(self, held: &mut u64) {
        *held -= self.held;
    }
}
