//! The floor: the bytes of an event, stored inline behind a bare time stamp, into a ring without the metadata to decode it.

use crate::kernel::Compiled;
use crate::peer::plain_ring::{SILENT, read_at_end, reserve};
use crate::peer::workload::{NAME, name_of_known_length, sum, tally_numbers, tally_text};
use crate::site::Site;
use crate::variant::{AS_IT_IS, Hold, Mode, Proof, Recording, Variant};
use std::arch::x86_64::_rdtsc;

/// The header word with the time, or without.
const HEADER: usize = 8;
/// A record of the first workload.
const NUMBERS: usize = HEADER + 16;
/// A record of the second: the text, a NUL, the number.
const TEXT: usize = HEADER + NAME.len() + 1 + 8;

#[inline(always)]
fn stamp<const TIMED: bool>() -> u64 {
    // SAFETY: reads a counter.
    if TIMED { unsafe { _rdtsc() << 16 } } else { 0 }
}

/// Four stores.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<const TIMED: bool>;

impl<const TIMED: bool> Site for Numbers<TIMED> {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if let Some(to) = reserve(NUMBERS) {
            // SAFETY: `reserve` gives as many bytes, for this thread alone.
            unsafe {
                to.cast::<u64>().write_unaligned(stamp::<TIMED>());
                to.add(HEADER).cast::<i32>().write_unaligned(a);
                to.add(HEADER + 4).cast::<i32>().write_unaligned(b);
                to.add(HEADER + 8).cast::<i64>().write_unaligned(c);
            }
        }
    }
}

/// The header word, 32 bytes (a constant length), a NUL, and a number.
#[derive(Clone, Copy, Debug)]
pub struct Text<const TIMED: bool>;

impl<const TIMED: bool> Site for Text<TIMED> {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        if let Some(to) = reserve(TEXT) {
            let after = HEADER + NAME.len();
            // SAFETY: `reserve` gives as many bytes, for this thread alone.
            unsafe {
                to.cast::<u64>().write_unaligned(stamp::<TIMED>());
                to.add(HEADER).cast::<[u8; NAME.len()]>().write_unaligned(*name_of_known_length());
                to.add(after).write(0);
                to.add(after + 1).cast::<u64>().write_unaligned(sum(a, b, c));
            }
        }
    }
}

const FLOOR: Variant = Variant {
    name: "floor",
    mode: Mode::Recorded,
    does: "rdtsc and stores inline: 24 bytes, nothing else",
    kernels: Compiled::of::<Numbers<true>>(),
    arm: AS_IT_IS,
    count: || Ok(read_at_end(NUMBERS, |record| tally_numbers(&record[HEADER..]))),
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: Some(Recording { floor: "floor", warm: 12_000, thread: SILENT, sustained: false }),
};

/// Both workloads, with and without a time.
pub const VARIANTS: &[Variant] = &[
    FLOOR,
    Variant {
        name: "floor-untimed",
        does: "stores inline: 24 bytes, nothing else",
        kernels: Compiled::of::<Numbers<false>>(),
        ..FLOOR
    },
    Variant {
        name: "floor-text",
        does: "rdtsc and stores inline: 49 bytes, 32 of text, whose length the compiler knows",
        kernels: Compiled::of::<Text<true>>(),
        count: || Ok(read_at_end(TEXT, |record| tally_text(&record[HEADER..]))),
        recording: Some(Recording { floor: "floor-text", warm: 6_000, thread: SILENT, sustained: false }),
        ..FLOOR
    },
    Variant {
        name: "floor-text-untimed",
        does: "stores inline: 49 bytes, 32 of text, whose length the compiler knows",
        kernels: Compiled::of::<Text<false>>(),
        count: || Ok(read_at_end(TEXT, |record| tally_text(&record[HEADER..]))),
        recording: Some(Recording { floor: "floor-text", warm: 6_000, thread: SILENT, sustained: false }),
        ..FLOOR
    },
];
