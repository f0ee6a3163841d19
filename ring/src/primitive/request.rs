//! Requests of a program to the helgrind that runs it.

use std::arch::asm;

/// What helgrind is told of a tag or a lock, both named by an address. The numbers are part of valgrind's stable interface
/// (`valgrind/helgrind.h`).
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    /// The calling thread is about to release the lock.
    LockReleasing = 0x4847_0105,
    /// The calling thread has just got the lock.
    LockAcquired = 0x4847_0108,
    /// All that the calling thread did so far comes before what others do after their next `HappensAfter` of the tag.
    HappensBefore = 0x4847_0121,
    /// See `HappensBefore`.
    HappensAfter = 0x4847_0122,
    /// What was announced for the tag no longer counts.
    Forget = 0x4847_0123,
}

impl Request {
    /// Makes the request. Does nothing if the program does not run under valgrind.
    #[inline(always)]
    pub(super) fn make(self, address: usize) {
        let arguments: [usize; 6] = [self as usize, address, 0, 0, 0, 0];
        // SAFETY: on a processor these instructions do nothing: the rotations add up to 128 bits, so that rdi is at the end what
        // it was before (but for the flags, which `asm!` takes to be changed), and rbx is exchanged with itself. Valgrind, which
        // knows the sequence, reads the six words that rax points to, live for the whole of the block, and writes its answer to
        // rdx, declared as overwritten. Nothing else is touched; `address` is not accessed, it is a name to helgrind.
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
