//! Any messages of senders and viewers, in any order, to the state machines of a collector. Each step is a byte that says what comes, a byte with its
//! kind or number, two bytes with the length of the rest, and the rest.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use tempfile::TempDir;
use tracepoint_collector::internal::Driver;

/// The number of the first message of the stream protocol.
const FRAME: u32 = 0x5450_0000;

/// The next step: what, its kind, and its bytes.
fn step<'a>(bytes: &mut &'a [u8]) -> Option<(u8, u8, &'a [u8])> {
    let ([what, kind, low, high], rest) = bytes.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (payload, rest) = rest.split_at(length);
    *bytes = rest;
    Some((*what, *kind, payload))
}

fuzz_target!(|bytes: &[u8]| {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let mut driver = Driver::new(&place.path().join("out")).expect("a thread");
    let mut rest = bytes;
    while let Some((what, kind, payload)) = step(&mut rest) {
        match what % 7 {
            0 => driver.relay(kind.into(), payload),
            1 => driver.packet((kind % 8).into(), (kind / 8).into(), payload),
            2 => driver.message(FRAME + u32::from(kind), payload),
            3 => driver.wire(payload),
            4 => driver.datagram(payload),
            5 => driver.request(payload),
            _ => driver.pass(Duration::from_millis(u64::from(kind) * 10)),
        }
    }
    drop(driver);
    let entries = std::fs::read_dir(place.path()).expect("a directory").count();
    assert!(entries <= 1, "something is outside the output");
});
