//! Any bytes as a datagram from a UDP trace server.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_wire::udp::{Batch, CtfPackets, FromServer, ToClient};

/// The packets of a batch are within it.
fn packets(packets: CtfPackets<'_>, size: usize) {
    let mut passed = 0;
    for packet in packets {
        let Ok((header, bytes)) = packet else { return };
        assert_eq!(header.size(), bytes.len() as u64);
        passed += bytes.len();
        assert!(passed <= size);
    }
    assert_eq!(passed, size);
}

fuzz_target!(|bytes: &[u8]| {
    // Also as the packets of a batch, because most inputs fail at its checksum.
    packets(Batch { events_before: 0, events: 0, number: 0, packets: bytes }.packets(), bytes.len());
    match FromServer::decode(bytes).map(|from| from.message) {
        Ok(ToClient::Batch(batch)) => packets(batch.packets(), batch.packets.len()),
        Ok(ToClient::Text(text)) => assert!(text.offset as usize + text.bytes.len() <= text.total as usize),
        Ok(ToClient::Packet(packet)) => assert_eq!(packet.content.len() + 66, bytes.len()),
        _ => {}
    }
});
