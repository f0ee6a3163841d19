//! The system counter of aarch64 (`CNTVCT_EL0`), under Linux.
//!
//! Its frequency is between 1 MHz and some GHz, and is the same on all processors. The rest of the clock expects ticks that are shorter than a
//! nanosecond: a tick here is a fraction of the counter's, its value shifted to the left, so that there are 1.5 to 3 ticks in a nanosecond.

use super::{Ticks, counter_name};
use std::arch::asm;
use std::sync::atomic::{AtomicU32, Ordering};

/// The name of the kernel's clock source that is this counter.
pub const NAME: &str = "arch_sys_counter";

/// The lowest number of ticks in a second.
const TICKS_PER_SECOND: u64 = 1_500_000_000;

/// The number of bits by which the value is shifted, plus 64, which the instruction ignores; 0 until it is known. All threads that find it 0
/// compute the same.
static SHIFT: AtomicU32 = AtomicU32::new(0);

/// The frequency of the counter, which the firmware has stored.
fn frequency() -> u64 {
    let frequency: u64;
    // SAFETY: only writes its result. Linux lets programs read the register.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack, preserves_flags)) };
    frequency
}

#[cold]
#[inline(never)]
fn find_shift() -> u32 {
    let shift = u64::BITS + TICKS_PER_SECOND.div_ceil(frequency().max(1)).next_power_of_two().trailing_zeros();
    SHIFT.store(shift, Ordering::Relaxed);
    shift
}

#[inline(always)]
fn ticks(value: u64) -> u64 {
    let shift = match SHIFT.load(Ordering::Relaxed) {
        0 => find_shift(),
        shift => shift,
    };
    value.wrapping_shl(shift)
}

/// Reads the counter. Not ordered with the surrounding instructions: the processor may read it early.
#[inline(always)]
pub(in crate::clock) fn counter() -> u64 {
    let value: u64;
    // SAFETY: the instruction only writes its result. It does not fault: the counter is in use only after `usable` has found that the
    // process may read it.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack, preserves_flags)) };
    ticks(value)
}

/// The same in two halves, each below 2³².
#[inline(always)]
pub(in crate::clock) fn counter_halves() -> Ticks {
    let ticks = counter();
    Ticks { low: ticks & u64::from(u32::MAX), high: ticks >> 32 }
}

/// Reads the counter, ordered after all instructions before the call and before all that follow it.
#[inline]
pub(in crate::clock) fn ordered_counter() -> u64 {
    let value: u64;
    // SAFETY: as in `counter`. Each barrier waits for all instructions before it.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) value, options(nostack, preserves_flags)) };
    ticks(value)
}

/// Checks that the firmware has declared the frequency, and that the counter may be read.
pub(in crate::clock) fn usable() -> Result<(), &'static str> {
    if frequency() == 0 {
        return Err(concat!("the firmware does not declare the frequency of the ", counter_name!()));
    }
    super::readable()
}
