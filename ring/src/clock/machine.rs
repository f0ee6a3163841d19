//! The counter of the processor that can be the clock, if there is one: on x86-64 the time stamp counter (TSC), on aarch64 the system counter.

#[cfg(all(tsc, target_arch = "aarch64"))]
mod aarch64;
#[cfg(not(tsc))]
mod none;
#[cfg(all(tsc, target_arch = "x86_64"))]
mod x86_64;

#[cfg(all(tsc, target_arch = "aarch64"))]
use aarch64 as architecture;
#[cfg(not(tsc))]
use none as architecture;
#[cfg(all(tsc, target_arch = "x86_64"))]
use x86_64 as architecture;

pub use architecture::NAME;
pub(super) use architecture::{counter, counter_halves, ordered_counter, usable};

/// What the counter is called in messages.
#[cfg(target_arch = "aarch64")]
macro_rules! counter_name {
    () => {
        "system counter"
    };
}
#[cfg(not(target_arch = "aarch64"))]
macro_rules! counter_name {
    () => {
        "time stamp counter"
    };
}
pub(super) use counter_name;

/// The counter's value in two halves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    /// Below 2³².
    pub(super) low: u64,
    /// Below 2³².
    pub(super) high: u64,
}

/// Checks that the kernel lets this thread read the counter.
#[cfg(tsc)]
fn readable() -> Result<(), &'static str> {
    let mut allowed: libc::c_int = 0;
    // SAFETY: PR_GET_TSC stores an int at the address, which is valid for it.
    let status = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut allowed) };
    // A kernel without PR_GET_TSC cannot forbid it.
    if status == 0 && allowed != libc::PR_TSC_ENABLE {
        return Err(concat!("this thread may not read the ", counter_name!(), " (PR_SET_TSC)"));
    }
    Ok(())
}
