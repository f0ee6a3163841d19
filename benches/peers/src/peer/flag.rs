//! The plain form of a site, written by hand: a relaxed load, a branch, a cold call. It is the lower bound for events that a flag
//! switches, and is independent of the form of this library's sites.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Variant};
use std::sync::atomic::{AtomicBool, Ordering};

static ON: AtomicBool = AtomicBool::new(false);

/// A flag and a direct call.
#[derive(Clone, Copy, Debug)]
pub struct Flag;

impl Site for Flag {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if ON.load(Ordering::Relaxed) {
            fire(a, b, c);
        }
    }
}

#[cold]
#[inline(never)]
fn fire(a: i32, b: i32, c: i64) {
    tally::add(a, b, c);
}

const COUNT: Arm = || {
    ON.store(true, Ordering::Relaxed);
    Ok(Armed::until(|| ON.store(false, Ordering::Relaxed)))
};

const OFF: Variant = Variant {
    name: "flag",
    mode: Mode::Off,
    does: "a relaxed load and a branch, by hand",
    kernels: Compiled::of::<Flag>(),
    arm: AS_IT_IS,
    count: COUNT,
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

/// Off, and on with a direct call of the sink.
pub const VARIANTS: &[Variant] = &[
    OFF,
    Variant {
        name: "flag-call",
        mode: Mode::On,
        counts_losses: true,
        does: "a direct call of a function that counts and sums up: a floor",
        arm: COUNT,
        ..OFF
    },
];
