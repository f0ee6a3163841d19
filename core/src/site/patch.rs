//! The patched form: one instruction, switched by its first byte.
//!
//! # The instruction
//!
//! ```text
//!   off   41 BB rr rr rr rr     mov r11d, imm32     into a register that nobody reads
//!   on    41 E9 rr rr rr rr     jmp rel32           to the cold path; the prefix means nothing here
//! ```
//!
//! The four bytes at the end are the same in both: the distance to the cold path. Switching writes one byte. A byte is written in
//! one piece wherever it lies, so that a thread that runs into the site meets one of the two instructions, never a mixture. Other
//! processors may hold the old one decoded already: after a batch, `membarrier(SYNC_CORE)` makes each of them forget it. (Five-byte
//! forms, a `nop` to be overwritten, are torn when they straddle a cache line.)
//!
//! Why this one: it reads nothing. `A9`, `test eax, imm32`, is a byte shorter and needs no register, but it reads one: it becomes
//! ready together with the instruction that waits for the same value, takes an execution unit from it now and then, and costs a
//! chain of dependent operations in `eax` 3 %. The constant is ready as soon as it is decoded. `r11` is the register that is missed
//! least: no arguments, no results, no static chain, and no call keeps it; flags keep their values as well.
//!
//! # What the linker gathers
//!
//! Each site has an [`Entry`] in the section `tracepoint_sites` of the linked object that it is in: an executable, a
//! shared object. A constructor, of which the linker keeps one for each object, makes the object known to the core
//! ([`register_object`]); a destructor takes it back when the object is unloaded. `linkme`'s slices see one object only, that of
//! the core; the constructor also brings the object's own tables of tracepoints and markers.
//!
//! # Switching
//!
//! Under the control lock, in [`switch`]: collect the entries of the keys; *verify* that the bytes at each site are one of the two
//! forms, with the distance that its entry says; write; verify again. A site whose bytes are neither (a debugger's breakpoint, a
//! corrupted entry) is left alone and counted. Writing is in [`text`]. (A uprobe on a site that is on goes unnoticed until it is to be
//! switched off; the kernel runs the file's copy of the instruction, `41 BB`, so that the site is off as long as the uprobe is there.)
//!
//! ```text
//!   OFF ──key on──▶ verified ──byte written──▶ ON ──key off──▶ verified ──byte written──▶ OFF
//!                      └── foreign bytes: counted, left alone
//! ```

mod entry;
mod keep;
mod object;
mod segment;
mod text;
mod writable;

pub(crate) use keep::keep_loaded;
pub(crate) use object::{Object, changes, objects};
pub use object::{register_object, unregister_object};

use super::{SiteReport, SwitchError};
use crate::key::Key;
use entry::{Entry, Form, Site};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tracepoint_ring::update::UpdateGuard;

static FOREIGN: AtomicU64 = AtomicU64::new(0);
static STUCK: AtomicU64 = AtomicU64::new(0);

/// A site was left that is not as its key is. Changed under the control lock.
static UNSETTLED: AtomicBool = AtomicBool::new(false);

/// The section names and symbols are spelt once: here, for sites and anchors.
///
/// Once for each object file (`.ifndef`), kept once for each linked object (a COMDAT group): the object's description, its
/// constructor and its destructor. `R` retains sections that nothing refers to, which linkers otherwise drop.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_object {
    () => {
        ".ifndef __tracepoint_object_v2
        .pushsection .data.__tracepoint_object_v2,\"awG\",@progbits,__tracepoint_object_v2,comdat
        .balign 8
        .weak __tracepoint_object_v2
        .hidden __tracepoint_object_v2
        .weak __start_tracepoint_sites
        .hidden __start_tracepoint_sites
        .weak __stop_tracepoint_sites
        .hidden __stop_tracepoint_sites
        .weak __start_linkme_TRACEPOINTS
        .weak __stop_linkme_TRACEPOINTS
        .weak __start_linkme_MARKERS
        .weak __stop_linkme_MARKERS
        .hidden __start_linkme_TRACEPOINTS
        .hidden __stop_linkme_TRACEPOINTS
        .hidden __start_linkme_MARKERS
        .hidden __stop_linkme_MARKERS
        __tracepoint_object_v2:
        .quad 0
        .quad __start_tracepoint_sites
        .quad __stop_tracepoint_sites
        .quad __start_linkme_TRACEPOINTS
        .quad __stop_linkme_TRACEPOINTS
        .quad __start_linkme_MARKERS
        .quad __stop_linkme_MARKERS
        .fill 12, 8, 0
        .popsection
        .pushsection .text.__tracepoint_object_v2,\"axG\",@progbits,__tracepoint_object_v2,comdat
        .weak __tracepoint_ctor_v2
        .hidden __tracepoint_ctor_v2
        __tracepoint_ctor_v2:
        lea rdi, [rip + __tracepoint_object_v2]
        jmp qword ptr [rip + {register}@GOTPCREL]
        .weak __tracepoint_dtor_v2
        .hidden __tracepoint_dtor_v2
        __tracepoint_dtor_v2:
        lea rdi, [rip + __tracepoint_object_v2]
        jmp qword ptr [rip + {unregister}@GOTPCREL]
        .popsection
        .pushsection .init_array,\"awG\",@init_array,__tracepoint_object_v2,comdat
        .balign 8
        .quad __tracepoint_ctor_v2
        .popsection
        .pushsection .fini_array,\"awG\",@fini_array,__tracepoint_object_v2,comdat
        .balign 8
        .quad __tracepoint_dtor_v2
        .popsection
        .endif"
    };
}

/// Whether the key is on: one instruction, and the cold path at the end of its jump.
///
/// The `.reloc`, of no bytes, ties the site to its own entry: a linker that folds identical functions (`--icf=all`) then sees that two
/// that differ in nothing but their keys are not identical.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_site {
    ($key:path) => {
        'site: {
            // SAFETY: the instruction is `mov r11d, imm32`, which changes the register that is given up here, or, once it is
            // patched, a jump to the label, whose distance from here stands in its operand. The rest adds to sections.
            unsafe {
                ::core::arch::asm!(
                    "771:",
                    ".byte 0x41, 0xbb",
                    ".long {cold} - (771b + 6)",
                    ".reloc 771b, R_X86_64_NONE, 772f",
                    ".pushsection tracepoint_sites,\"awR\",@progbits",
                    ".balign 8",
                    "772:",
                    ".long 771b - .",
                    ".long {cold} - .",
                    ".quad {key}",
                    ".popsection",
                    $crate::__tracepoint_object!(),
                    key = sym $key,
                    register = sym $crate::private::register_object,
                    unregister = sym $crate::private::unregister_object,
                    cold = label { break 'site true },
                    out("r11") _,
                    options(nomem, nostack, preserves_flags),
                )
            }
            false
        }
    };
}

/// Makes the object that it stands in known, without a site. To be put in a function that the object keeps.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_anchor {
    () => {
        // SAFETY: no instruction at all; adds to sections.
        unsafe {
            ::core::arch::asm!(
                $crate::__tracepoint_object!(),
                register = sym $crate::private::register_object,
                unregister = sym $crate::private::unregister_object,
                options(nomem, nostack, preserves_flags),
            )
        }
    };
}

/// Sites that are to be written together.
#[derive(Debug)]
struct Batch<'o> {
    sites: Vec<Site<'o>>,
    /// The form that all of them shall have.
    form: Form,
    /// How many had to be left out, because what stands there is foreign.
    foreign: usize,
}

impl<'o> Batch<'o> {
    fn new(form: Form) -> Self {
        Self { sites: Vec::new(), form, foreign: 0 }
    }

    fn add(&mut self, object: &'o Object, entry: &Entry) {
        match object.site(entry) {
            Some(site) if site.form() == Some(self.form) => {}
            Some(site) => self.sites.push(site),
            None => self.foreign += 1,
        }
    }

    fn write(&mut self) -> Result<(), SwitchError> {
        self.sites.sort_unstable_by_key(|site| site.opcode());
        text::write(&self.sites, self.form)
    }

    /// Whether nothing is left to do; otherwise the next switch will look at it.
    fn settle(&mut self) -> bool {
        self.sites.retain(|site| site.form() != Some(self.form));
        let not_done = self.sites.len();
        self.sites.retain(|site| site.form().is_some());
        self.foreign += not_done - self.sites.len();
        let settled = self.foreign == 0 && self.sites.is_empty();
        if !settled {
            UNSETTLED.store(true, Ordering::Relaxed);
        }
        settled
    }

    /// Counts what is left to do.
    fn settle_and_count(&mut self) {
        if !self.settle() {
            FOREIGN.fetch_add(self.foreign as u64, Ordering::Relaxed);
            STUCK.fetch_add(self.sites.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Switches the sites of all these keys, and takes along what earlier switches had to leave.
///
/// # Errors
///
/// If a site that is to be switched on cannot be written. All of them are switched off again then, as far as they can be: one that
/// cannot is counted, and goes on calling the cold path, which finds nothing to do. The same becomes of a site that cannot be
/// switched off, which is no error.
pub(crate) fn switch(changes: &[(&'static Key, bool)], locked: &UpdateGuard<'_>) -> Result<(), SwitchError> {
    let mut wanted: Vec<(*const Key, Form)> =
        changes.iter().map(|(key, on)| (std::ptr::from_ref(*key), Form::of(*on))).collect();
    wanted.sort_unstable_by_key(|(key, _)| *key);
    let find = |key: *const Key| wanted.binary_search_by_key(&key, |(key, _)| *key).ok().map(|at| wanted[at].1);
    let unsettled = UNSETTLED.swap(false, Ordering::Relaxed);
    let (mut on, mut off) = (Batch::new(Form::On), Batch::new(Form::Off));
    let (mut earlier_on, mut earlier_off) = (Batch::new(Form::On), Batch::new(Form::Off));
    for object in objects(locked) {
        for entry in object.entries() {
            let batch = match find(entry.key()) {
                Some(Form::On) => &mut on,
                Some(Form::Off) => &mut off,
                None if !unsettled => continue,
                None => match entry.form_of_key() {
                    Form::On => &mut earlier_on,
                    Form::Off => &mut earlier_off,
                },
            };
            batch.add(object, entry);
        }
    }
    for earlier in [&mut earlier_off, &mut earlier_on] {
        // What is still left of it has been counted, and concerns no caller.
        let _ = earlier.write();
        earlier.settle();
    }
    let _ = off.write();
    off.settle_and_count();
    let written = on.write();
    if written.is_err() {
        on.form = Form::Off;
        let _ = on.write();
    }
    on.settle_and_count();
    text::synchronize_cores();
    written
}

/// Switches the sites of an object that has just arrived on, as far as their keys are.
fn switch_arrived(object: &Object, _: &UpdateGuard<'_>) {
    let mut arrived = Batch::new(Form::On);
    for entry in object.entries() {
        if entry.form_of_key() == Form::On {
            arrived.add(object, entry);
        }
    }
    // Nobody waits for an answer here; `platform` says what became of it.
    let _ = arrived.write();
    arrived.settle_and_count();
    text::synchronize_cores();
}

pub(crate) fn report(locked: &UpdateGuard<'_>) -> SiteReport {
    SiteReport {
        form: "patched",
        sites: Some(objects(locked).map(|object| object.entries().len()).sum()),
        foreign: FOREIGN.load(Ordering::Relaxed),
        stuck: STUCK.load(Ordering::Relaxed),
        stayed_writable: writable::stayed_writable(),
        unknown_objects: objects(locked).filter(|object| !object.is_known()).count(),
    }
}
