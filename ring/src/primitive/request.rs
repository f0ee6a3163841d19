//! Valgrind client requests to helgrind.

use std::arch::asm;

/// A request about a tag or a lock, identified by an address. The numbers are part of valgrind's stable interface
/// (`valgrind/helgrind.h`).
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    /// The calling thread is about to release the lock.
    LockReleasing = 0x4847_0105,
    /// The calling thread has just acquired the lock.
    LockAcquired = 0x4847_0108,
    /// The calling thread's past actions happen before the actions of another thread that follow its next `HappensAfter` of the tag.
    HappensBefore = 0x4847_0121,
    /// See `HappensBefore`.
    HappensAfter = 0x4847_0122,
    /// Removes all `HappensBefore` of the tag.
    Forget = 0x4847_0123,
}

impl Request {
    /// Makes the request. Does nothing outside valgrind.
    #[inline(always)]
    pub(super) fn make(self, address: usize) {
        let arguments: [usize; 6] = [self as usize, address, 0, 0, 0, 0];
        // SAFETY: on a real processor the sequence has no effect: the rotations add up to 128 bits, so rdi is unchanged (only the flags
        // change, which `asm!` assumes), and rbx is exchanged with itself. Valgrind recognises the sequence, reads the six words that rax
        // points to, which live for the whole block, and writes its result to rdx, which is declared as overwritten. `address` is an
        // identifier and is not dereferenced.
        unsafe {
            asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") arguments.as_ptr(),
                inout("rdx") 0_usize => _,
                options(nostack),
            );
        }
    }
}
