//! Any messages of senders and viewers, in any order, to the state machines of a collector. An input is a list of [`steps`].

#![no_main]

mod steps;

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use steps::{FIRST_MESSAGE, step};
use tempfile::TempDir;
use tracepoint_collector::internal::Driver;

fuzz_target!(|bytes: &[u8]| {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let mut driver = Driver::new(&place.path().join("out")).expect("a thread");
    let mut rest = bytes;
    while let Some((what, kind, payload)) = step(&mut rest) {
        match what % 7 {
            0 => driver.relay(kind.into(), payload),
            1 => driver.packet((kind % 8).into(), (kind / 8).into(), payload),
            2 => driver.message(FIRST_MESSAGE + u32::from(kind), payload),
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
