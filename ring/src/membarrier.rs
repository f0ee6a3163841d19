//! Asymmetric fences: Linux's `membarrier`.
//!
//! A reader would pay for a fence at every event, while a waiter is slow anyway. So the reader's fence ([`light_fence`]) is for the compiler
//! only, and the waiter ([`heavy_fence`]) makes the kernel run a full barrier on every processor that runs a thread of this process. Without
//! kernel support both are ordinary fences.
//!
//! The process registers once, before anything is switched on. A reader that has not seen the registration yet runs the full fence, which is
//! correct with either heavy half. If the kernel refuses later (because a seccomp filter was installed), readers have no fence and the
//! waiter cannot force one on them: [`heavy_fence`] returns `false`, and nothing is freed.

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

    /// Set if readers run the compiler fence only.
    static EXPEDITED: AtomicBool = AtomicBool::new(false);
    static SYNC_CORE: AtomicBool = AtomicBool::new(false);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes plain numbers and accesses no memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Registers the process once. A child inherits the registration over fork.
    pub fn register() {
        // Helgrind knows the fences of the program, but not those of the kernel.
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

    /// The waiter's half. Returns `false` if there was no fence, because the kernel now refuses the call that it allowed before.
    #[must_use]
    pub fn heavy_fence() -> bool {
        fence(Ordering::SeqCst);
        !EXPEDITED.load(Ordering::Relaxed) || membarrier(PRIVATE_EXPEDITED)
    }

    /// Makes other processors discard decoded instructions, if the kernel supports that.
    pub fn synchronize_cores() {
        if SYNC_CORE.load(Ordering::Relaxed) {
            membarrier(PRIVATE_EXPEDITED_SYNC_CORE);
        }
    }

    /// Returns whether the heavy half makes other threads run a fence.
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

    /// Does nothing.
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

    /// Returns whether the heavy half makes other threads run a fence. It does not.
    pub fn is_asymmetric() -> bool {
        false
    }

    /// The mechanism.
    pub fn name() -> &'static str {
        "fences"
    }
}
