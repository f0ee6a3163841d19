//! The loop without a site: the base of all comparisons.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Hold, Mode, Proof, Variant};

/// No event.
#[derive(Clone, Copy, Debug)]
pub struct None;

impl Site for None {
    #[inline(always)]
    fn event(_: i32, _: i32, _: i64) {}
}

/// An event that cannot be switched off: the tally of all events.
#[derive(Clone, Copy, Debug)]
pub struct Direct;

impl Site for Direct {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        tally::add(a, b, c);
    }
}

const NONE: Variant = Variant {
    name: "none",
    mode: Mode::Off,
    does: "no site",
    kernels: Compiled::of::<None>(),
    arm: AS_IT_IS,
    count: AS_IT_IS,
    proof: Proof::Nothing,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: Option::None,
};

/// The base, and the same machine code again under another name.
pub const VARIANTS: &[Variant] =
    &[NONE, Variant { name: "none-again", does: "no site, measured twice: the noise of the comparison", ..NONE }];
