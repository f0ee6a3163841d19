//! The reference for the protection of lists: a list of probes that is never freed, so that readers need no protection. The
//! difference from a library's own list is the cost of being able to disconnect a probe.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{Arm, Armed, Hold, Mode, Proof, Variant};
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

type Probe = fn(i32, i32, i64);

static ON: AtomicBool = AtomicBool::new(false);
static PROBES: AtomicPtr<&'static [Probe]> = AtomicPtr::new(ptr::null_mut());

/// A flag and a list of functions.
#[derive(Clone, Copy, Debug)]
pub struct Leak;

impl Site for Leak {
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
    // SAFETY: whatever is stored here was leaked.
    let Some(probes) = (unsafe { PROBES.load(Ordering::Acquire).as_ref() }) else { return };
    for probe in *probes {
        probe(a, b, c);
    }
}

const COUNT: Arm = || {
    // One list for the life of the program, so that repeated switching does not leak more.
    static LIST: LazyLock<usize> = LazyLock::new(|| {
        let probes: &'static [Probe] = Box::leak(vec![tally::add as Probe].into_boxed_slice());
        ptr::from_mut(Box::leak(Box::new(probes))).expose_provenance()
    });
    PROBES.store(ptr::with_exposed_provenance_mut(*LIST), Ordering::Release);
    ON.store(true, Ordering::Relaxed);
    Ok(Armed::until(|| ON.store(false, Ordering::Relaxed)))
};

/// On with one probe. Off, it is the same as the flag.
pub const VARIANTS: &[Variant] = &[Variant {
    name: "leak-forever",
    mode: Mode::On,
    counts_losses: true,
    does: "one probe that counts and sums up, called from a list that is never freed: a yardstick",
    kernels: Compiled::of::<Leak>(),
    arm: COUNT,
    count: COUNT,
    proof: Proof::Values,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
}];
