//! The packets: one stream, made before the measured time begins.

use tracepoint_reader::internal::sealed;
use tracepoint_ring::channel::{PacketHeader, StreamKey};

/// The stream class and the instance.
pub(crate) const KEY: (u32, u64) = (3, 0);

/// Consecutive packets of `size` bytes with their checksums; `total` bytes in all.
pub(crate) fn make(total: usize, size: usize) -> Vec<u8> {
    let stream = StreamKey { uuid: [9; 16], class: KEY.0, instance: KEY.1 };
    let mut packets = Vec::with_capacity(total);
    for sequence in 0..(total / size) as u64 {
        let time = sequence * 10;
        let header = PacketHeader { end: time + 5, sequence, ..PacketHeader::empty(stream, time).with_size(size) };
        let mut packet = vec![0x5a; size];
        header.write_to(&mut packet);
        packets.extend_from_slice(&sealed(packet));
    }
    packets
}
