//! Barriers on other processors, made by the kernel: Linux's `membarrier`.
//!
//! A reader pays for a fence at every event; a waiter waits anyway. So the reader's fence is one for the compiler alone, and the
//! waiter has the kernel run a real one on every processor that runs a thread of this process. Both halves are in
//! [`light_fence`] and [`heavy_fence`]; where the kernel refuses, both are ordinary fences.
//!
//! The choice is made once, before anything is switched on. A reader that has not seen it yet runs the full fence, which is
//! right in either case. If the kernel refuses later (a seccomp filter was installed meanwhile), readers have no fence and the
//! waiter cannot make one: [`heavy_fence`] says so, and what it was to free is not freed.

#[cfg(linux_kernel)]
use linux as system;
#[cfg(not(linux_kernel))]
use portable as system;

pub use system::{heavy_fence, is_asymmetric, light_fence, name, register, synchronize_cores};

#[cfg(linux_kernel)]
mod linux {
    use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

    /// Commands of linux/membarrier.h, which the C library does not name.
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    const PRIVATE_EXPEDITED_SYNC_CORE: libc::c_int = 1 << 5;
    const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: libc::c_int = 1 << 6;

    /// Readers run the compiler's fence only.
    static EXPEDITED: AtomicBool = AtomicBool::new(false);
    static SYNC_CORE: AtomicBool = AtomicBool::new(false);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes plain numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Registers the process, once. A child keeps the registration over fork.
    pub fn register() {
        // Helgrind knows fences of the program, not those of the kernel.
        if cfg!(tp_helgrind) {
            return;
        }
        EXPEDITED.store(membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED), Ordering::Relaxed);
        SYNC_CORE.store(membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE), Ordering::Relaxed);
    }

    /// The reader's half.
    #[inline(always)]
    pub fn light_fence() {
        if EXPEDITED.load(Ordering::Relaxed) {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// The waiter's half; `false` if there was no fence, because the kernel refuses by now what it allowed before.
    #[must_use]
    pub fn heavy_fence() -> bool {
        fence(Ordering::SeqCst);
        !EXPEDITED.load(Ordering::Relaxed) || membarrier(PRIVATE_EXPEDITED)
    }

    /// Makes other processors forget instructions that they have decoded, as far as the kernel can.
    pub fn synchronize_cores() {
        if SYNC_CORE.load(Ordering::Relaxed) {
            membarrier(PRIVATE_EXPEDITED_SYNC_CORE);
        }
    }

    /// Whether the heavy half makes other threads run a fence.
    pub fn is_asymmetric() -> bool {
        EXPEDITED.load(Ordering::Relaxed)
    }

    /// The mechanism: `membarrier` or `fences`.
    pub fn name() -> &'static str {
        if EXPEDITED.load(Ordering::Relaxed) { "membarrier" } else { "fences" }
    }
}

#[cfg(not(linux_kernel))]
mod portable {
    use std::sync::atomic::{Ordering, fence};

    /// There is nothing to choose.
    pub fn register() {}

    /// The reader's half: a fence.
    #[inline(always)]
    pub fn light_fence() {
        fence(Ordering::SeqCst);
    }

    /// The waiter's half: a fence.
    #[must_use]
    pub fn heavy_fence() -> bool {
        fence(Ordering::SeqCst);
        true
    }

    /// Does nothing: the kernel has no such command.
    pub fn synchronize_cores() {}

    /// Whether the heavy half makes other threads run a fence: it does not.
    pub fn is_asymmetric() -> bool {
        false
    }

    /// The mechanism.
    pub fn name() -> &'static str {
        "fences"
    }
}
