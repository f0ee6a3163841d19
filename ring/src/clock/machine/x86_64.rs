//! The time stamp counter of x86-64, under Linux.

use super::Ticks;
use std::arch::asm;
use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

/// The name of the kernel's clock source that is this counter.
pub const NAME: &str = "tsc";

/// Reads the counter. Not ordered with the surrounding instructions: the processor may read it early.
#[inline(always)]
pub(in crate::clock) fn counter() -> u64 {
    // SAFETY: the instruction only writes its result. It does not fault: the counter is in use only after `usable` has found that the
    // process may read it.
    unsafe { _rdtsc() }
}

/// The same in two halves, each below 2³².
#[inline(always)]
pub(in crate::clock) fn counter_halves() -> Ticks {
    let (low, high): (u64, u64);
    // SAFETY: as above. The instruction clears the upper halves of both registers, which are declared as overwritten.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags)) };
    Ticks { low, high }
}

/// Reads the counter, ordered after all instructions before the call and before all that follow it.
#[inline]
pub(in crate::clock) fn ordered_counter() -> u64 {
    // SAFETY: `lfence` is part of SSE2, which every x86-64 has. It waits for all instructions before it.
    unsafe { _mm_lfence() };
    let ticks = counter();
    // SAFETY: as above.
    unsafe { _mm_lfence() };
    ticks
}

/// Checks that the counter has a constant frequency, independent of the processor's frequency and sleep states, and may be read.
pub(in crate::clock) fn usable() -> Result<(), &'static str> {
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    if cpuid(0x8000_0000).0 < POWER_MANAGEMENT || cpuid(POWER_MANAGEMENT).1 & INVARIANT_TSC == 0 {
        return Err("the processor does not declare its time stamp counter invariant");
    }
    super::readable()
}

/// EAX and EDX of a CPUID leaf.
fn cpuid(leaf: u32) -> (u32, u32) {
    #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
    // SAFETY: every x86-64 has the instruction.
    let answer = unsafe { __cpuid(leaf) };
    (answer.eax, answer.edx)
}
