//! x86-64: `mov r11d, imm32` and `jmp rel32`.
//!
//! ```text
//!   off   41 BB rr rr rr rr     mov r11d, imm32     into a register that no code reads
//!   on    41 E9 rr rr rr rr     jmp rel32           to the cold path; the prefix has no effect
//! ```
//!
//! The last four bytes are the same in both forms: the distance to the cold path. Switching writes one byte. A store of one byte is
//! atomic at any address, so a thread that executes the site sees one of the two instructions, never a mixture. Another
//! processor may have decoded the old instruction already: after a batch, `membarrier(SYNC_CORE)` makes each processor discard it.
//! (The stores of five-byte forms, which overwrite a `nop`, tear when they straddle a cache line.)
//!
//! The instruction was chosen because it reads no register. `A9`, `test eax, imm32`, is a byte shorter and writes no register, but it
//! depends on `eax`: it becomes ready together with other instructions that wait for `eax`, competes with them for execution units,
//! and slows down a dependency chain through `eax` by 3 %. A `mov` of a constant has no dependency. `r11` is the cheapest register to
//! clobber: it carries no arguments, results or static chain, and calls do not preserve it. The flags keep their values.

use super::Form;

/// Calls `register_object` or `unregister_object` with the object's description.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_call_with_object {
    ($function:literal) => {
        ::core::concat!("lea rdi, [rip + __tracepoint_object_v2]\njmp qword ptr [rip + {", $function, "}@GOTPCREL]")
    };
}

/// True while the key is on: one instruction, which jumps to the cold path while it is patched.
///
/// The `.reloc`, which occupies no bytes, makes the site refer to its own entry: a linker that folds identical functions (`--icf=all`)
/// then distinguishes functions that differ only in their keys.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_site {
    ($key:path) => {
        'site: {
            // SAFETY: the instruction is `mov r11d, imm32`, which writes the declared output register, or, while patched, a jump to the
            // label, whose distance is its operand. The rest only adds to sections.
            unsafe {
                ::core::arch::asm!(
                    "771:",
                    ".byte 0x41, 0xbb",
                    ".long {cold} - (771b + 6)",
                    ".reloc 771b, R_X86_64_NONE, 772f",
                    $crate::__tracepoint_entry!(),
                    key = sym $key,
                    register = sym $crate::__macro_support::register_object,
                    unregister = sym $crate::__macro_support::unregister_object,
                    cold = label { break 'site true },
                    out("r11") _,
                    options(nomem, nostack, preserves_flags),
                )
            }
            false
        }
    };
}

/// A prefix, one byte of opcode, four bytes of distance.
pub(in super::super) const LENGTH: usize = 6;
/// The opcode is switched.
pub(in super::super) const SWITCHED_AT: usize = 1;
pub(in super::super) type Switched = u8;

const PREFIX: u8 = 0x41;
const OFF: u8 = 0xBB;
const ON: u8 = 0xE9;

/// The breakpoint instruction, `int3`. A run of code with several sites, and without breakpoints, may be written as a whole, because each byte
/// is written atomically.
pub(in super::super) const BREAKPOINT: Option<u8> = Some(0xCC);

/// A site's instruction: equal at all sites, except for the distance, which is not switched.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Instruction;

impl Instruction {
    /// The instruction at a site, if it has one of the two forms with the right distance to the cold path.
    pub(in super::super) fn verified(
        [prefix, opcode, distance @ ..]: [u8; LENGTH],
        site: usize,
        cold: usize,
    ) -> Option<Self> {
        Self.form(opcode)?;
        let right = (cold.wrapping_sub(site + LENGTH) as u32).to_le_bytes();
        (prefix == PREFIX && distance == right).then_some(Self)
    }

    /// The form that has this opcode.
    #[expect(clippy::unused_self, reason = "on other architectures sites differ")]
    pub(in super::super) const fn form(self, opcode: Switched) -> Option<Form> {
        match opcode {
            OFF => Some(Form::Off),
            ON => Some(Form::On),
            _ => None,
        }
    }

    /// The opcode of this form.
    #[expect(clippy::unused_self, reason = "on other architectures sites differ")]
    pub(in super::super) const fn switched(self, form: Form) -> Switched {
        match form {
            Form::Off => OFF,
            Form::On => ON,
        }
    }
}

/// The jump at `site` through the word at `word`; `None` if that is too far away.
pub(in super::super) fn indirect(site: usize, word: usize) -> Option<[u8; LENGTH]> {
    let distance = i32::try_from(word.wrapping_sub(site + LENGTH).cast_signed()).ok()?;
    let [a, b, c, d] = distance.to_le_bytes();
    Some([0xFF, 0x25, a, b, c, d])
}

/// The size of a page of code.
pub(in super::super) const fn page_size() -> usize {
    4096
}

/// The address of the description of the object that contains the core. The linker makes it null if no site and no entry has emitted the
/// description.
#[inline(always)]
pub(in super::super) fn own_description() -> *const () {
    let own: *const ();
    // SAFETY: loads an address from the object's global offset table.
    unsafe {
        std::arch::asm!(
            ".weak __tracepoint_object_v2",
            ".hidden __tracepoint_object_v2",
            "mov {own}, qword ptr [rip + __tracepoint_object_v2@GOTPCREL]",
            own = out(reg) own,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    own
}

/// Does nothing: the fetch of instructions sees all stores to code.
pub(in super::super) fn make_visible(_: impl Iterator<Item = usize> + Clone) {}

/// Returns whether the process executes what is written to its code by `/proc/self/mem`: it is assumed.
pub(in super::super) fn executes_writes(_: impl FnMut(&[u8], usize)) -> bool {
    true
}

/// Tells valgrind to discard its translation of code that has changed. Natively these are five instructions without effect.
pub(in super::super) fn discard_translations(start: usize, length: usize) {
    /// `VALGRIND_DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD_TRANSLATIONS: usize = 0x1002;
    let request = [DISCARD_TRANSLATIONS, start, length, 0, 0, 0];
    // SAFETY: the marker sequence of valgrind.h: rotations of rdi that add up to 128 bits, and an exchange of rbx with itself. Under
    // valgrind the six words at rax are read, and rdx is the result.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0usize => _,
            options(nostack),
        );
    }
}
