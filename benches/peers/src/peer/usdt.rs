//! `usdt`: USDT with a semaphore.

use crate::kernel::Compiled;
use crate::peer::uprobe;
use crate::site::Site;
use crate::variant::{AS_IT_IS, Hold, Mode, Proof, Variant};

#[usdt::provider]
mod peers_usdt {
    fn small(a: i32, b: i32, c: i64) {}
}

/// The generated macro.
#[derive(Clone, Copy, Debug)]
pub struct Usdt;

impl Site for Usdt {
    #[inline(always)]
    #[expect(clippy::items_after_statements, clippy::cast_sign_loss, reason = "the macro's code")]
    fn event(a: i32, b: i32, c: i64) {
        peers_usdt::small!(|| (a, b, c));
    }
}

const OFF: Variant = Variant {
    name: "usdt",
    mode: Mode::Off,
    does: "USDT by the crate usdt: a semaphore, a load and a branch",
    kernels: Compiled::of::<Usdt>(),
    arm: AS_IT_IS,
    count: || uprobe::attach("peers_usdt", "small"),
    proof: Proof::Hits,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

/// Off and on.
pub const VARIANTS: &[Variant] = &[
    OFF,
    Variant {
        name: "usdt-uprobe",
        mode: Mode::On,
        counts_losses: true,
        hold: Hold::Pass,
        does: uprobe::DOES,
        arm: OFF.count,
        ..OFF
    },
];
