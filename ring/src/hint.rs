//! Hints to the compiler for the fast path (cold branches, opaque values, code alignment), none of which changes a result; and the stack pointer.

/// The stack pointer, if call stacks are cut there; otherwise 0.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    #[cfg(all(linux_kernel, target_arch = "x86_64", not(miri)))]
    {
        let stack: usize;
        // SAFETY: copies a register.
        unsafe {
            std::arch::asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack, preserves_flags));
        }
        stack
    }
    #[cfg(not(all(linux_kernel, target_arch = "x86_64", not(miri))))]
    0
}

/// Marks the branch that calls it as cold, so that its code is moved out of line.
#[cold]
pub const fn unlikely() {}

/// Passes a value through an empty `asm!` block: the optimizer loses track of how it was computed.
macro_rules! opaque {
    ($value:expr $(, $pure:ident)?) => {{
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
        let value = $value;
        #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
        let value = {
            let mut value = $value;
            // SAFETY: the block contains no instruction: it leaves the register, memory and flags as they are.
            unsafe {
                std::arch::asm!("/* {} */", inout(reg) value, options($($pure,)? nomem, nostack, preserves_flags));
            }
            value
        };
        value
    }};
}

/// Returns `number`, unknown to the optimizer: a loop whose counter passes through here is not unrolled, and a branch that assigns from
/// it is not turned into a conditional move. Both would take registers from the code around a path that rarely runs.
#[inline(always)]
pub(crate) fn opaque(number: usize) -> usize {
    opaque!(number, pure)
}

/// Returns `number`, computed at this point of the program rather than at its use, so that its operands need no registers from here on.
#[inline(always)]
pub(crate) fn materialize(number: u64) -> u64 {
    opaque!(number)
}

/// Returns `pointer`, unknown to the optimizer, which therefore does not recompute the address for each offset from it.
#[inline(always)]
#[cfg_attr(
    all(target_arch = "x86_64", not(miri), not(tp_portable)),
    expect(clippy::pointers_in_nomem_asm_block, reason = "no instruction, so nothing is read or written")
)]
pub(crate) fn opaque_ptr<T>(pointer: *mut T) -> *mut T {
    opaque!(pointer, pure)
}

/// Returns `reference`, unknown to the optimizer: a choice between two structures stays a single choice of a pointer, and is not repeated for
/// each of their fields.
#[inline(always)]
pub(crate) fn opaque_ref<T>(reference: &T) -> &T {
    // SAFETY: `opaque_ptr` returns its argument unchanged, here a pointer made from a reference that is valid for the same lifetime.
    unsafe { &*opaque_ptr(std::ptr::from_ref(reference).cast_mut()) }
}

/// Aligns the function that it is inlined into to a cache line. A misaligned function costs an event up to 0.5 ns more
/// in a loop, and 2.8 ns when isolated.
///
/// The directive makes the assembler align the section, even if no padding is needed here, and each function has a section of its own.
#[inline(always)]
pub fn align_function() {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(tp_portable)))]
    // SAFETY: inserts at most one byte, a no-op instruction.
    unsafe {
        std::arch::asm!(".p2align 6,,1", options(nomem, nostack, preserves_flags));
    }
}
