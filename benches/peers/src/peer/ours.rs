//! This library, in the form that the build selected.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Variant};

tracepoint::define_trace! {
    provider = "peers";

    /// The event of the benches.
    pub small(a: i32, b: i32, c: i64) { a: i32 = a, b: i32 = b, c: i64 = c }
}

/// `trace!(small(…))`.
#[derive(Clone, Copy, Debug)]
pub struct Lazy;

impl Site for Lazy {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        tracepoint::trace!(small(a, b, c));
    }
}

/// `trace_small(…)`.
#[derive(Clone, Copy, Debug)]
pub struct Function;

impl Site for Function {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        trace_small(a, b, c);
    }
}

fn probes<const N: usize>() -> Armed {
    let first = register_trace_small(tally::add);
    // Probes beyond the first do the same work on a tally of their own, so that the first one counts events, not calls.
    let others: Vec<_> = (1..N).map(|_| register_trace_small(others::add)).collect();
    Armed::until(move || drop((first, others)))
}

/// The tally of the probes beyond the first.
mod others {
    use std::sync::atomic::{AtomicU64, Ordering};

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static SUM: AtomicU64 = AtomicU64::new(0);

    pub(super) fn add(a: i32, b: i32, c: i64) {
        COUNT.store(COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let values = i64::from(a).wrapping_add(i64::from(b)).wrapping_add(c).cast_unsigned();
        SUM.store(SUM.load(Ordering::Relaxed).wrapping_add(values), Ordering::Relaxed);
    }
}

const COUNT: Arm = || Ok(probes::<1>());

const LAZY: Variant = Variant {
    name: "ours-lazy",
    mode: Mode::Off,
    does: "trace!(small(…)), no probe connected",
    kernels: Compiled::of::<Lazy>(),
    arm: AS_IT_IS,
    count: COUNT,
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

/// Off in both forms, on with probes.
pub const VARIANTS: &[Variant] = &[
    LAZY,
    Variant {
        name: "ours-function",
        does: "trace_small(…), no probe connected",
        kernels: Compiled::of::<Function>(),
        ..LAZY
    },
    Variant {
        name: "ours-empty-probe",
        mode: Mode::On,
        does: "one probe that does nothing",
        arm: || {
            let probe = register_trace_small(|_, _, _| {});
            Ok(Armed::until(move || drop(probe)))
        },
        // The check looks for losses with a probe that tallies.
        ..LAZY
    },
    Variant {
        name: "ours-1-probe",
        mode: Mode::On,
        counts_losses: true,
        does: "one probe that counts and sums up",
        arm: || Ok(probes::<1>()),
        ..LAZY
    },
    Variant {
        name: "ours-2-probes",
        mode: Mode::On,
        counts_losses: true,
        does: "two probes that count and sum up",
        arm: || Ok(probes::<2>()),
        count: || Ok(probes::<2>()),
        ..LAZY
    },
    Variant {
        name: "ours-8-probes",
        mode: Mode::On,
        counts_losses: true,
        does: "eight probes that count and sum up",
        arm: || Ok(probes::<8>()),
        count: || Ok(probes::<8>()),
        ..LAZY
    },
];
