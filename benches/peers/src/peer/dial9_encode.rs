//! `dial9-trace-format` by itself: its encoder, into memory of the thread, without `dial9-core`'s recorder around it.

use crate::kernel::Compiled;
use crate::peer::dial9::{Named, Small, add_to_tally};
use crate::peer::workload;
use crate::site::Site;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Recording, Variant};
use dial9_core::clock::clock_monotonic_ns;
use dial9_trace_format::TraceEvent;
use dial9_trace_format::encoder::Encoder;
use std::cell::RefCell;

/// The size at which the encoder starts again, which equals the size of the other libraries' rings.
const FULL: usize = crate::peer::plain_ring::SIZE;

thread_local! {
    static ENCODER: RefCell<Option<Encoder>> = const { RefCell::new(None) };
}

fn write(event: &impl TraceEvent) {
    ENCODER.with_borrow_mut(|encoder| {
        let Some(encoder) = encoder else { return };
        if encoder.as_inner().len() > FULL - 128 {
            let mut memory = encoder.reset_to(Vec::new()).expect("a Vec accepts all writes");
            memory.clear();
            encoder.reset_to(memory).expect("a Vec accepts all writes");
        }
        encoder.write(event).expect("a Vec accepts all writes");
    });
}

/// `Encoder::write` with numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbers;

impl Site for Numbers {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        write(&Small { timestamp_ns: clock_monotonic_ns(), a: a.into(), b: b.into(), c });
    }
}

/// `Encoder::write` with text.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Site for Text {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        write(&Named { timestamp_ns: clock_monotonic_ns(), name: workload::name(), n: workload::sum(a, b, c) });
    }
}

fn encoding(counts_losses: bool) -> Armed {
    let encoder = Encoder::new_to(Vec::with_capacity(FULL)).expect("a Vec accepts all writes");
    ENCODER.set(Some(encoder));
    Armed::until(move || {
        let encoder = ENCODER.take().expect("there since this thread began");
        if counts_losses {
            add_to_tally(&encoder.into_inner());
        }
    })
}

const SILENT: Arm = || Ok(encoding(false));

const NUMBERS: Variant = Variant {
    name: "dial9-encode",
    mode: Mode::Recorded,
    does: "dial9-trace-format's encoder into 256 KiB of memory, with dial9's clock (clock_gettime)",
    kernels: Compiled::of::<Numbers>(),
    arm: AS_IT_IS,
    count: || Ok(encoding(true)),
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: Some(Recording { floor: "floor", warm: 12_000, thread: SILENT, sustained: false }),
};

/// Both workloads.
pub const VARIANTS: &[Variant] = &[
    NUMBERS,
    Variant {
        name: "dial9-encode-text",
        does: "as dial9-encode",
        kernels: Compiled::of::<Text>(),
        recording: Some(Recording { floor: "floor-text", warm: 6_000, thread: SILENT, sustained: false }),
        ..NUMBERS
    },
];
