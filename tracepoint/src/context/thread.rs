//! What the system says of the calling thread.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// The longest name that the kernel keeps, with its NUL.
pub(super) const NAME_SIZE: usize = 16;

/// In the last byte of a name, where the kernel has the NUL: the name was asked for.
const KNOWN: u64 = 1 << 63;

thread_local! {
    // As `CURRENT` in the table of threads: no destructor, and atomic for the sake of handlers on the same thread.
    static NAME: [AtomicU64; 2] = const { [const { AtomicU64::new(0) }; 2] };
}

/// The name of the calling thread when this was called for the first time, NULs behind it.
pub(super) fn name() -> [u8; NAME_SIZE] {
    NAME.with(|[front, back]| {
        if back.load(Ordering::Relaxed) & KNOWN == 0 {
            let name = u128::from_le_bytes(ask_name());
            front.store(name as u64, Ordering::Relaxed);
            // A handler that comes in between asks by itself.
            compiler_fence(Ordering::Release);
            back.store((name >> 64) as u64 | KNOWN, Ordering::Relaxed);
        }
        let (front, back) = (front.load(Ordering::Relaxed), back.load(Ordering::Relaxed) & !KNOWN);
        (u128::from(back) << 64 | u128::from(front)).to_le_bytes()
    })
}

#[cfg(linux_kernel)]
fn ask_name() -> [u8; NAME_SIZE] {
    let mut name = [0; NAME_SIZE];
    // SAFETY: the kernel writes 16 bytes at most.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The processor that the calling thread runs on, or did a moment ago.
#[cfg(linux_kernel)]
pub(super) fn cpu() -> u32 {
    // SAFETY: takes nothing. -1, which is all ones, if the kernel does not know it.
    unsafe { libc::sched_getcpu() }.cast_unsigned()
}

#[cfg(not(linux_kernel))]
fn ask_name() -> [u8; NAME_SIZE] {
    [0; NAME_SIZE]
}

#[cfg(not(linux_kernel))]
pub(super) fn cpu() -> u32 {
    u32::MAX
}
