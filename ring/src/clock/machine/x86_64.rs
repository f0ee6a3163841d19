//! The time stamp counter of x86-64, under Linux.

use crate::clock::line::Ticks;
use std::arch::asm;
use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

/// The counter now. Not ordered with what stands before and after it: the processor may read it some instructions early.
#[inline(always)]
pub(in crate::clock) fn counter() -> u64 {
    // SAFETY: the instruction takes nothing and changes nothing but its result; `usable`, or whoever trusts the counter, has
    // made sure that the process is not killed for it.
    unsafe { _rdtsc() }
}

/// The same in halves: below 2³² each.
#[inline(always)]
pub(in crate::clock) fn counter_halves() -> Ticks {
    let (low, high): (u64, u64);
    // SAFETY: as above. The upper halves of both registers are cleared, of which the compiler need not know.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags)) };
    Ticks { low, high }
}

/// The counter now: after all that stands before the call, and before all that stands behind it.
#[inline]
pub(in crate::clock) fn ordered_counter() -> u64 {
    // SAFETY: SSE2, which has the fence, is part of every x86-64. It waits for what stands before it.
    unsafe { _mm_lfence() };
    let ticks = counter();
    // SAFETY: as above.
    unsafe { _mm_lfence() };
    ticks
}

/// Whether the counter ticks evenly, whatever the processor's frequency and sleep, and may be read at all; else why not.
pub(in crate::clock) fn usable() -> Result<(), &'static str> {
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    if cpuid(0x8000_0000).0 < POWER_MANAGEMENT || cpuid(POWER_MANAGEMENT).1 & INVARIANT_TSC == 0 {
        return Err("the processor does not say that its time stamp counter ticks evenly");
    }
    let mut allowed: libc::c_int = 0;
    // SAFETY: this request takes a place for an int, and writes it.
    let status = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut allowed) };
    // A kernel that does not know the request forbids nothing.
    if status == 0 && allowed != libc::PR_TSC_ENABLE {
        return Err("this thread is forbidden to read the time stamp counter (PR_SET_TSC)");
    }
    Ok(())
}

/// EAX and EDX of a leaf.
fn cpuid(leaf: u32) -> (u32, u32) {
    #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
    // SAFETY: every x86-64 has the instruction.
    let answer = unsafe { __cpuid(leaf) };
    (answer.eax, answer.edx)
}
