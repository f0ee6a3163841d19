//! `static-keys`: a five-byte instruction that is rewritten.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Variant};
use std::sync::Once;

static_keys::define_static_key_false!(SMALL);

/// `static_branch_unlikely!`.
#[derive(Clone, Copy, Debug)]
pub struct StaticKeys;

impl Site for StaticKeys {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if static_keys::static_branch_unlikely!(SMALL) {
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
    static INIT: Once = Once::new();
    INIT.call_once(static_keys::global_init);
    // SAFETY: initialised, and the kernels, which hold the only sites of the key, run on this thread alone.
    unsafe { SMALL.enable() };
    Ok(Armed::until(|| {
        // SAFETY: as above.
        unsafe { SMALL.disable() }
    }))
};

const OFF: Variant = Variant {
    name: "static-keys",
    mode: Mode::Off,
    does: "a five-byte no-op",
    kernels: Compiled::of::<StaticKeys>(),
    arm: AS_IT_IS,
    count: COUNT,
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

/// Off and on.
pub const VARIANTS: &[Variant] = &[
    OFF,
    Variant {
        name: "static-keys-call",
        mode: Mode::On,
        counts_losses: true,
        does: "a direct call of a function that counts and sums up; must not be switched while other threads run",
        arm: COUNT,
        // The crate replaces pages of the program's file by anonymous ones, in which the operating system sets no breakpoints.
        hold: Hold::SampleAtTheEnd,
        ..OFF
    },
];
