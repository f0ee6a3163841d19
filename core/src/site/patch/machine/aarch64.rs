//! aarch64: `nop` and `b`.
//!
//! ```text
//!   off   D503201F                        nop
//!   on    000101dd dddddddd dddddddd dddddddd    b, with the distance to the cold path in words
//! ```
//!
//! Both are on the architecture's list of instructions that may be replaced by one another while other processors execute them (Arm ARM,
//! B2.2.5): such a processor executes the old or the new instruction. An aligned word is written by one store, which does not tear.
//!
//! Instructions are fetched through caches that stores do not update. Where the kernel writes the word (`/proc/self/mem`), it cleans and
//! invalidates them; after a store of the program [`make_visible`] does, as far as `CTR_EL0` says that it is necessary. That register is read
//! each time, because the kernel emulates it where a processor's own value is wrong (Neoverse-N1 erratum 1542419). After a batch,
//! `membarrier(SYNC_CORE)` makes each processor discard the instructions that it has fetched already.
//!
//! Code is always written word by word: a copy of a longer run may store a word in several parts.

use super::Form;
use std::arch::asm;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering};

/// Calls `register_object` or `unregister_object` with the object's description.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_call_with_object {
    ($function:literal) => {
        ::core::concat!(
            "adrp x0, __tracepoint_object_v2\nadd x0, x0, :lo12:__tracepoint_object_v2\nb {",
            $function,
            "}"
        )
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
            // SAFETY: the instruction is `nop` or, while patched, a jump to the label. The rest only adds to sections.
            unsafe {
                ::core::arch::asm!(
                    "771: nop",
                    ".reloc 771b, R_AARCH64_NONE, 772f",
                    $crate::__tracepoint_entry!(),
                    key = sym $key,
                    register = sym $crate::__macro_support::register_object,
                    unregister = sym $crate::__macro_support::unregister_object,
                    cold = label { break 'site true },
                    options(nomem, nostack, preserves_flags),
                )
            }
            false
        }
    };
}

/// One word, all of which is switched.
pub(in super::super) const LENGTH: usize = 4;
pub(in super::super) const SWITCHED_AT: usize = 0;
pub(in super::super) type Switched = u32;

const NOP: u32 = 0xD503_201F;
const B: u32 = 0x1400_0000;
/// The bits of a distance in `b`, and the distances that they can hold, in bytes.
const DISTANCE: u32 = 0x03FF_FFFF;
const DISTANCES: std::ops::Range<isize> = -(1 << 27)..1 << 27;

/// No code is written back, so that no breakpoint in it can be lost.
pub(in super::super) const BREAKPOINT: Option<u8> = None;

/// A site's instruction while it is on, a branch to the cold path.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Instruction {
    branch: u32,
}

impl Instruction {
    /// The instruction at a site, if it has one of the two forms with the right distance to the cold path.
    pub(in super::super) fn verified(word: [u8; LENGTH], site: usize, cold: usize) -> Option<Self> {
        let instruction = Self { branch: branch(cold.wrapping_sub(site).cast_signed())? };
        instruction.form(u32::from_le_bytes(word)).filter(|_| site.is_multiple_of(LENGTH)).map(|_| instruction)
    }

    /// The form that has this word.
    pub(in super::super) fn form(self, word: Switched) -> Option<Form> {
        match word {
            NOP => Some(Form::Off),
            word if word == self.branch => Some(Form::On),
            _ => None,
        }
    }

    /// The word of this form.
    pub(in super::super) const fn switched(self, form: Form) -> Switched {
        match form {
            Form::Off => NOP,
            Form::On => self.branch,
        }
    }
}

/// A branch over this distance in bytes, if there is one.
fn branch(distance: isize) -> Option<u32> {
    let reachable = distance % 4 == 0 && DISTANCES.contains(&distance);
    reachable.then_some(B | ((distance / 4) as u32 & DISTANCE))
}

/// The architecture has no jump through a word of data, and permits the change of a `nop` into a branch under running threads.
pub(in super::super) const fn indirect(_: usize, _: usize) -> Option<[u8; LENGTH]> {
    None
}

/// The size of a page of code, as the kernel is configured.
pub(in super::super) fn page_size() -> usize {
    // SAFETY: takes a plain number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The address of the description of the object that contains the core. The linker makes it null if no site and no entry has emitted the
/// description.
#[inline(always)]
pub(in super::super) fn own_description() -> *const () {
    let own: *const ();
    // SAFETY: loads an address from the object's global offset table.
    unsafe {
        asm!(
            ".weak __tracepoint_object_v2",
            ".hidden __tracepoint_object_v2",
            "adrp {own}, :got:__tracepoint_object_v2",
            "ldr {own}, [{own}, :got_lo12:__tracepoint_object_v2]",
            own = out(reg) own,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    own
}

/// Makes stores to the words at these addresses visible to the fetch of instructions by all processors.
pub(in super::super) fn make_visible(words: impl Iterator<Item = usize> + Clone) {
    let types: u64;
    // SAFETY: reads a register that the kernel lets programs read, or emulates.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack, preserves_flags)) };
    let (is_clean, is_invalid) = (types & 1 << 28 != 0, types & 1 << 29 != 0);
    if !is_clean {
        for word in words.clone() {
            // SAFETY: an address in readable code of this program, whose cache line is written back.
            unsafe { asm!("dc cvau, {}", in(reg) word, options(nostack, preserves_flags)) };
        }
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    if !is_invalid {
        for word in words {
            // SAFETY: as above; the line is dropped from caches of instructions.
            unsafe { asm!("ic ivau, {}", in(reg) word, options(nostack, preserves_flags)) };
        }
        // SAFETY: a barrier.
        unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { asm!("isb", options(nostack, preserves_flags)) };
}

/// Returns whether the process executes what is written to its code by `/proc/self/mem`, by means of `write`. A translator (qemu-user) executes
/// its translation of the code, which it renews after stores of the program, but not after such writes. Found out once: a page that belongs to
/// nothing else has a site, which is switched and executed.
pub(in super::super) fn executes_writes(mut write: impl FnMut(&[u8], usize)) -> bool {
    const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    const YES: u8 = 2;
    /// Under the update lock.
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    if ANSWER.load(Ordering::Relaxed) == UNKNOWN {
        let answer = trial(&mut write);
        ANSWER.store(if answer { YES } else { NO }, Ordering::Relaxed);
    }
    ANSWER.load(Ordering::Relaxed) == YES
}

fn trial(write: &mut impl FnMut(&[u8], usize)) -> bool {
    const MOV_W0_0: u32 = 0x5280_0000;
    const MOV_W0_1: u32 = 0x5280_0020;
    const RET: u32 = 0xD65F_03C0;
    /// A site, and the two paths behind it.
    const CODE: [u32; 5] = [NOP, MOV_W0_0, RET, MOV_W0_1, RET];
    const TO_COLD: isize = 12;

    // SAFETY: takes plain numbers.
    if unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } > 0 {
        // A filter may kill the process for the mapping. qemu-user knows no filters, and refuses the question.
        return true;
    }
    let (length, protection) = (page_size(), libc::PROT_READ | libc::PROT_EXEC);
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let page = unsafe { libc::mmap(null_mut(), length, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
    if page == libc::MAP_FAILED {
        // A kernel that refuses this (`execmem`) refuses translators as well.
        return true;
    }
    let mut switched_to = |code: [u32; 5]| {
        for (at, word) in code.iter().enumerate() {
            write(&word.to_le_bytes(), page.addr() + 4 * at);
        }
        // SAFETY: the page is readable. Volatile, because it is not this code that writes it.
        let written = unsafe { page.cast::<[u32; 5]>().read_volatile() };
        // SAFETY: the page is executable, and holds a function of this type.
        (written == code).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> u32>(page) }())
    };
    let off = switched_to(CODE);
    let on = branch(TO_COLD).and_then(|branch| switched_to([branch, MOV_W0_0, RET, MOV_W0_1, RET]));
    // SAFETY: the mapping that was made above, to which nothing refers any more.
    unsafe { libc::munmap(page, length) };
    (off, on) == (Some(0), Some(1))
}

/// Tells valgrind to discard its translation of code that has changed. Natively these are five instructions without effect.
pub(in super::super) fn discard_translations(start: usize, length: usize) {
    /// `VALGRIND_DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD_TRANSLATIONS: usize = 0x1002;
    let request = [DISCARD_TRANSLATIONS, start, length, 0, 0, 0];
    // SAFETY: the marker sequence of valgrind.h: rotations of x12 that add up to 128 bits, and x10 or x10. Under valgrind the six words at x4
    // are read, and x3 is the result.
    unsafe {
        asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") request.as_ptr(),
            inout("x3") 0usize => _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_has_a_range() {
        assert_eq!(branch(8), Some(0x1400_0002));
        assert_eq!(branch(-4), Some(0x17FF_FFFF));
        assert_eq!(branch((1 << 27) - 4), Some(0x15FF_FFFF));
        assert_eq!(branch(-(1 << 27)), Some(0x1600_0000));
        for refused in [2, -1, 1 << 27, -(1 << 27) - 4] {
            assert_eq!(branch(refused), None, "{refused}");
        }
    }

    #[test]
    fn an_instruction_is_verified() {
        let site = |word: u32, cold| Instruction::verified(word.to_le_bytes(), 0x1000, cold);
        assert!(site(NOP, 0x1010).is_some_and(|site| site.form(NOP) == Some(Form::Off)));
        assert!(site(0x1400_0004, 0x1010).is_some_and(|site| site.form(0x1400_0004) == Some(Form::On)));
        assert!(site(0x1400_0005, 0x1010).is_none(), "another target");
        assert!(site(0xD420_0000, 0x1010).is_none(), "brk");
        assert!(site(NOP, 0x1012).is_none(), "a target between two instructions");
        assert!(Instruction::verified(NOP.to_le_bytes(), 0x1002, 0x1012).is_none(), "a site between two instructions");
    }

    /// Stores the bytes into code that is writable meanwhile, as translators notice.
    fn store(bytes: &[u8], address: usize) {
        let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(address / page_size() * page_size());
        let protect = |protection| {
            // SAFETY: the page of the trial, which no other thread uses.
            assert_eq!(unsafe { libc::mprotect(page, page_size(), protection) }, 0);
        };
        protect(libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a word of that page, which is writable.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::with_exposed_provenance_mut(address), bytes.len())
        };
        protect(libc::PROT_READ | libc::PROT_EXEC);
        make_visible(std::iter::once(address));
    }

    #[test]
    fn stores_are_executed_and_lost_writes_are_noticed() {
        assert!(trial(&mut store));
        assert!(!trial(&mut |_, _| ()));
    }

    /// qemu-user refuses the question for filters, and executes its translation of the code as it was before.
    #[test]
    fn a_translator_is_told_from_a_kernel() {
        // SAFETY: takes plain numbers.
        let is_translated = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } < 0;
        let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem").expect("not restricted");
        let mut write = |bytes: &[u8], address: usize| {
            std::os::unix::fs::FileExt::write_all_at(&memory, bytes, address as u64).expect("written");
        };
        assert_eq!(trial(&mut write), !is_translated);
    }
}
