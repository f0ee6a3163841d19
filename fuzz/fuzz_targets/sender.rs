//! A sender against any collector: messages of all kinds with any contents, in any order and truncated, while packets are queued, time passes and
//! connections end. The sender's messages can be decoded, and it counts no event as lost that did not exist. The first byte selects UDP for data, and
//! the size of the resend buffer; [`steps`] follow.

#![no_main]

mod steps;

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use steps::{FIRST_MESSAGE, step};
use tracepoint_sinks::stream::Driver;

fuzz_target!(|bytes: &[u8]| {
    let Some((options, mut rest)) = bytes.split_first() else { return };
    let resend_buffer = if options & 2 == 0 { 1 << 14 } else { 0 };
    let mut driver = Driver::new(options & 1 == 1, resend_buffer).expect("sockets");
    while let Some((what, kind, payload)) = step(&mut rest) {
        match what % 8 {
            0 => driver.message(FIRST_MESSAGE + u32::from(kind), payload),
            1 => driver.bytes(payload),
            2 => driver.open(),
            3 => driver.packet(kind % 4, (kind / 64).into(), payload.len()),
            4 => driver.synchronise(),
            5 => driver.pass(Duration::from_millis(u64::from(kind) * 50)),
            6 => driver.hang_up(),
            _ if kind < 128 => driver.end(),
            _ => driver.give_up(),
        }
    }
});
