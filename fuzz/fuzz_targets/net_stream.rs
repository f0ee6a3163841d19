//! Any bytes as messages of the stream protocol: the first byte is the kind of a frame whose payload follows; the rest is also a datagram and a
//! packet on the wire. Decoded messages are encoded to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_wire::stream::{Datagram, FRAME_HEADER, FrameHeader, ToCollector, ToSender, route_of, stored_packet};

/// The kind and payload of the frame that `encode` appends.
fn framed(bytes: &[u8]) -> (u32, &[u8]) {
    let header = FrameHeader::decode(bytes).expect("a header").expect("a good one");
    assert_eq!(bytes.len(), FRAME_HEADER + header.size);
    (header.kind, &bytes[FRAME_HEADER..])
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let _ = FrameHeader::decode(bytes);
    let mut encoded = Vec::new();
    if let Ok(message) = ToCollector::decode((*kind).into(), rest) {
        message.encode(&mut encoded);
        let (kind, payload) = framed(&encoded);
        assert_eq!(ToCollector::decode(kind, payload), Ok(message));
    }
    encoded.clear();
    if let Ok(message) = ToSender::decode((*kind).into(), rest) {
        message.encode(&mut encoded);
        let (kind, payload) = framed(&encoded);
        assert_eq!(ToSender::decode(kind, payload), Ok(message));
    }
    if let Ok(Datagram { header, bytes }) = Datagram::decode(rest) {
        assert!(header.probe || header.offset as usize + bytes.len() <= header.total as usize);
    }
    assert!(route_of(rest).is_err() || stored_packet(rest).is_some());
});
