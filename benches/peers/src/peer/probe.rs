//! `probe`: USDT, with and without a semaphore.

use crate::kernel::Compiled;
use crate::peer::uprobe;
use crate::site::Site;
use crate::variant::{AS_IT_IS, Hold, Mode, Proof, Variant};

/// `probe!`: a no-op whose arguments are always evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Eager;

impl Site for Eager {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        probe::probe!(peers, eager, a, b, c);
    }
}

/// `probe_lazy!`: a semaphore in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Lazy;

impl Site for Lazy {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        probe::probe_lazy!(peers, lazy, a, b, c);
    }
}

const EAGER: Variant = Variant {
    name: "probe",
    mode: Mode::Off,
    does: "USDT by the crate probe: a no-op, arguments in registers",
    kernels: Compiled::of::<Eager>(),
    arm: AS_IT_IS,
    count: || uprobe::attach("peers", "eager"),
    proof: Proof::Hits,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

const LAZY: Variant = Variant {
    name: "probe-lazy",
    does: "USDT by the crate probe with a semaphore: a load and a branch",
    kernels: Compiled::of::<Lazy>(),
    count: || uprobe::attach("peers", "lazy"),
    ..EAGER
};

/// Off and on.
pub const VARIANTS: &[Variant] = &[
    EAGER,
    LAZY,
    Variant {
        name: "probe-uprobe",
        mode: Mode::On,
        counts_losses: true,
        hold: Hold::Pass,
        does: uprobe::DOES,
        arm: EAGER.count,
        ..EAGER
    },
    Variant {
        name: "probe-lazy-uprobe",
        mode: Mode::On,
        counts_losses: true,
        hold: Hold::Pass,
        does: uprobe::DOES,
        arm: LAZY.count,
        ..LAZY
    },
];
