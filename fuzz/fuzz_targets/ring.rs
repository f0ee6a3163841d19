//! Any bytes as a ring file: its header, its counters, and all sub-buffers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_reader::internal::Ring;
use tracepoint_reader::internal::{Side, SubBuffer};

/// Limits the sub-buffers of an input, because more would only make it slow.
const MAX_SUB_BUFFERS: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(ring)) = Ring::from_bytes(bytes.to_vec()) else {
        return;
    };
    let _ = ring.account().unwrap();
    for side in Side::ALL {
        let Ok(counters) = ring.counters(side) else {
            continue;
        };
        let mut last = None;
        for found in ring.sub_buffers(side, &counters).take(MAX_SUB_BUFFERS) {
            if let SubBuffer::Packet(packet) = found.unwrap() {
                assert!(packet.bytes.len() >= 96 && packet.bytes.len() <= bytes.len());
                assert!(last < Some(packet.number), "packets come in their order");
                last = Some(packet.number);
            }
        }
    }
});
