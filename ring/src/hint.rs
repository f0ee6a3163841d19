//! What the compiler is told of the path of an event.

/// Called where a branch is rare: what follows is put out of the way.
#[cold]
pub const fn unlikely() {}

/// The same value, of which the compiler knows no longer what it is made of.
macro_rules! same {
    ($value:expr $(, $pure:ident)?) => {{
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
        let same = $value;
        #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
        let same = {
            let mut same = $value;
            // SAFETY: no instruction.
            unsafe {
                std::arch::asm!("/* {} */", inout(reg) same, options($($pure,)? nomem, nostack, preserves_flags));
            }
            same
        };
        same
    }};
}

/// The same number, which the compiler does not know: a loop that counts with it is not unrolled, and a branch that sets it stays one.
/// Otherwise what is seldom run would take the registers of all that is around it.
#[inline(always)]
pub(crate) fn opaque(number: usize) -> usize {
    same!(number, pure)
}

/// The same number, which is worked out here and not where it is used: what it is made of needs no register from here on.
#[inline(always)]
pub(crate) fn settled(number: u64) -> u64 {
    same!(number)
}

/// The same place, of which the compiler does not know how it was found: it does not do so anew for each distance from it.
#[inline(always)]
#[cfg_attr(
    all(target_arch = "x86_64", not(miri), not(tp_portable)),
    expect(clippy::pointers_in_nomem_asm_block, reason = "no instruction, so nothing is read or written")
)]
pub(crate) fn settled_place<T>(place: *mut T) -> *mut T {
    same!(place, pure)
}

/// The same reference, which is one for the compiler: of a choice between two structures it would make one for each of their fields.
#[inline(always)]
pub(crate) fn chosen<T>(chosen: &T) -> &T {
    // SAFETY: the same place, for as long.
    unsafe { &*settled_place(std::ptr::from_ref(chosen).cast_mut()) }
}

/// The function that this is in begins where a line of the processor's caches does. Where it happens to begin otherwise, an event takes up
/// to 0.5 ns more, and an isolated one 2.8.
///
/// The assembler aligns the section for the sake of the directive, whether it has to skip anything here or not, and each function has a
/// section of its own.
#[inline(always)]
pub fn align_function() {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(tp_portable)))]
    // SAFETY: at most one byte, of an instruction that does nothing.
    unsafe {
        std::arch::asm!(".p2align 6,,1", options(nomem, nostack, preserves_flags));
    }
}
