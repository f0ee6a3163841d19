//! Seeds of random tests: printed, and taken from `TRACEPOINT_SEED` if set.
#![allow(dead_code, reason = "every test uses its part of this")]

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// The value of `TRACEPOINT_SEED`.
fn given() -> Option<u64> {
    let seed = std::env::var("TRACEPOINT_SEED").ok()?;
    Some(seed.parse().expect("TRACEPOINT_SEED is a number"))
}

/// The seed of a test that differs from run to run.
pub(crate) fn seed() -> u64 {
    let time = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    printed(given().unwrap_or_else(time))
}

/// The seed of a test that is the same in every run.
pub(crate) fn or(default: u64) -> u64 {
    printed(given().unwrap_or(default))
}

/// The seeds of a campaign: the first `count`, or only the given one.
pub(crate) fn campaign(count: u64) -> Range<u64> {
    given().map_or(0..count, |seed| seed..seed + 1)
}

fn printed(seed: u64) -> u64 {
    println!("to repeat this: TRACEPOINT_SEED={seed}");
    seed
}
