//! Keeps the promise to viewers: after a synchronisation point of time T, no packet of a stream begins before T.
//!
//! A packet may be opened long before its first event. A viewer that was informed that the stream is inactive until T must not get a packet that
//! begins before T, because LTTng viewers then abort. So the begin of such a packet is raised to T, which is not after its first record, and the
//! checksum is computed again. If a record is older than T, the packet cannot be sent.

use tracepoint_reader::internal::{extend_time, seal};
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader};

/// Error: a packet contains a record from before the promised time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LateRecord;

/// Makes the packet begin at `promised` or later; `header` is its header.
pub(super) fn keep(packet: &mut [u8], header: &mut PacketHeader, promised: u64) -> Result<(), LateRecord> {
    if header.begin >= promised {
        return Ok(());
    }
    let word =
        packet.get(HEADER_SIZE..).and_then(|records| records.first_chunk()).map(|word| u64::from_le_bytes(*word));
    if word.is_some_and(|word| extend_time(header.begin, word >> 16) < promised) {
        return Err(LateRecord);
    }
    header.begin = promised;
    header.end = header.end.max(promised);
    header.write_to(packet);
    seal(packet);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_reader::internal::{ChecksumResult, check, sealed};
    use tracepoint_ring::channel::StreamKey;

    fn packet(begin: u64, records: &[u64]) -> (Vec<u8>, PacketHeader) {
        let size = HEADER_SIZE + 8 * records.len();
        let last = records.last().copied().unwrap_or(begin);
        let header = PacketHeader { end: last, ..PacketHeader::empty(StreamKey::default(), begin) }.with_size(size);
        let words = records.iter().flat_map(|time| (time << 16).to_le_bytes());
        (sealed(header.bytes().into_iter().chain(words).collect()), header)
    }

    #[test]
    fn the_beginning_is_raised_up_to_the_first_record() {
        for promised in [0, 99, 100] {
            let (mut bytes, mut header) = packet(100, &[150]);
            let before = bytes.clone();
            assert_eq!(keep(&mut bytes, &mut header, promised), Ok(()));
            assert_eq!(bytes, before);
        }
        let (mut bytes, mut header) = packet(100, &[150, 170]);
        assert_eq!(keep(&mut bytes, &mut header, 150), Ok(()));
        assert_eq!((header.begin, header.end), (150, 170));
        assert_eq!((PacketHeader::parse(&bytes), check(&bytes)), (header, ChecksumResult::Good));
        assert_eq!(keep(&mut bytes, &mut header, 151), Err(LateRecord));
    }

    #[test]
    fn an_empty_packet_moves_as_a_whole() {
        let (mut bytes, mut header) = packet(100, &[]);
        assert_eq!(keep(&mut bytes, &mut header, 300), Ok(()));
        assert_eq!((header.begin, header.end, check(&bytes)), (300, 300, ChecksumResult::Good));
    }
}
