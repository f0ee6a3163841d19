//! The name and the processor of the calling thread.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// The size of the kernel's buffer for a name, including the NUL.
const SIZE: usize = 16;

/// Set in the last byte of a name that has been looked up. The other bits of that byte, where the kernel has a NUL, are the length.
const KNOWN: u8 = 0x80;

/// The name of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name([u8; SIZE]);

impl Name {
    pub(super) const NONE: Self = Self([0; SIZE]);

    /// UTF-8, without a NUL.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        let length = usize::from(self.0[SIZE - 1] & !KNOWN);
        &self.0[..length.min(SIZE - 1)]
    }

    /// Looks up the name.
    #[cold]
    fn ask() -> Self {
        let mut name = ask_name();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(SIZE).min(SIZE - 1);
        // The kernel truncates names at a byte, possibly inside a character.
        let length = std::str::from_utf8(&name[..end]).map_or_else(|error| error.valid_up_to(), str::len);
        name[SIZE - 1] = KNOWN | length as u8;
        Self(name)
    }
}

thread_local! {
    // Like `CURRENT` in `thread/slot.rs`: without a destructor, and atomic because handlers on the thread access it.
    static NAME: [AtomicU64; 2] = const { [const { AtomicU64::new(0) }; 2] };
}

/// The name that the calling thread had when it first called this.
pub(super) fn name() -> Name {
    NAME.with(|[front, back]| {
        if back.load(Ordering::Relaxed) == 0 {
            let name = u128::from_le_bytes(Name::ask().0);
            front.store(name as u64, Ordering::Relaxed);
            // X1: pairs with the load of `back`. A handler that runs in between looks the name up itself.
            compiler_fence(Ordering::Release);
            back.store((name >> 64) as u64, Ordering::Relaxed);
        }
        let (front, back) = (front.load(Ordering::Relaxed), back.load(Ordering::Relaxed));
        Name((u128::from(back) << 64 | u128::from(front)).to_le_bytes())
    })
}

#[cfg(linux_kernel)]
fn ask_name() -> [u8; SIZE] {
    let mut name = [0; SIZE];
    // SAFETY: the kernel writes 16 bytes at most.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The processor on which the calling thread runs, or has just run.
#[cfg(linux_kernel)]
pub(super) fn cpu() -> u32 {
    // SAFETY: takes no arguments. Returns -1, which is all ones, on failure.
    unsafe { libc::sched_getcpu() }.cast_unsigned()
}

#[cfg(not(linux_kernel))]
fn ask_name() -> [u8; SIZE] {
    [0; SIZE]
}

#[cfg(not(linux_kernel))]
pub(super) fn cpu() -> u32 {
    u32::MAX
}
