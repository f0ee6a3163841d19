//! The patched form: one instruction, which is overwritten by another one to switch it. [`machine`] describes both.
//!
//! # Linker sections
//!
//! Each site has an [`Entry`] in the section `tracepoint_sites` of the linked object that contains it: an executable or a shared
//! object. A constructor (the linker keeps one per object) registers the object with the core ([`register_object`]); a
//! destructor unregisters it when the object is unloaded. The object's tables of tracepoints and markers are the sections
//! `tracepoint_TRACEPOINTS` and `tracepoint_MARKERS` (`__tracepoint_list!`).
//!
//! # Switching
//!
//! With `TRACEPOINT_SITES=indirect`, code is written only while objects are registered: see [`indirect`]. Otherwise:
//!
//! [`switch`] runs under the update lock. It collects the entries of the keys, *verifies* that the bytes at each site are one of the two
//! forms with the distance from its entry, writes, and verifies again. A site with other bytes (a debugger's breakpoint, a corrupted
//! entry) is foreign: it is not written, and counted. [`text`] does the writing. (A uprobe on a site that is on is noticed only when the
//! site is switched off. Until the uprobe is detached, the kernel executes the file's copy of the instruction, so that the site is off.)
//!
//! ```text
//!   OFF ──key on──▶ verified ──part written──▶ ON ──key off──▶ verified ──part written──▶ OFF
//!                      └── foreign bytes: counted, left alone
//! ```

mod entry;
mod indirect;
mod machine;
mod object;
mod pin;
mod proc_mem;
mod segment;
mod split;
mod text;
mod writable;

use object::Object;
pub(crate) use object::{Table, object_generation, objects, own_object};
pub use object::{register_object, unregister_object};
pub(crate) use pin::pin_objects;

use super::{SiteReport, SiteSwitchError};
use crate::key::Key;
use entry::{Entry, Site};
use indirect::Words;
use machine::Form;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tracepoint_ring::update::UpdateGuard;

static FOREIGN: AtomicU64 = AtomicU64::new(0);
static STUCK: AtomicU64 = AtomicU64::new(0);

/// Set if a site does not have the form of its key, so that the next switch retries it. Changed under the update lock.
static RETRY_PENDING: AtomicBool = AtomicBool::new(false);

/// The description, the constructor and the destructor of a linked object. Sites and entries of the tables share this definition, so that section
/// names and symbols are spelled once.
///
/// It is emitted once per object file (`.ifndef`), and the linker keeps one copy per linked object (a COMDAT group). The section flag
/// `R` retains sections without references, which linkers otherwise discard.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_object {
    () => {
        ::core::concat!(
            ".ifndef __tracepoint_object_v2
        .pushsection .data.__tracepoint_object_v2,\"awG\",@progbits,__tracepoint_object_v2,comdat
        .balign 8
        .weak __tracepoint_object_v2
        .hidden __tracepoint_object_v2
        .weak __start_tracepoint_sites
        .hidden __start_tracepoint_sites
        .weak __stop_tracepoint_sites
        .hidden __stop_tracepoint_sites
        .weak __start_tracepoint_TRACEPOINTS
        .hidden __start_tracepoint_TRACEPOINTS
        .weak __stop_tracepoint_TRACEPOINTS
        .hidden __stop_tracepoint_TRACEPOINTS
        .weak __start_tracepoint_MARKERS
        .hidden __start_tracepoint_MARKERS
        .weak __stop_tracepoint_MARKERS
        .hidden __stop_tracepoint_MARKERS
        __tracepoint_object_v2:
        .quad 0
        .quad __start_tracepoint_sites
        .quad __stop_tracepoint_sites
        .quad __start_tracepoint_TRACEPOINTS
        .quad __stop_tracepoint_TRACEPOINTS
        .quad __start_tracepoint_MARKERS
        .quad __stop_tracepoint_MARKERS
        .fill 12, 8, 0
        .popsection
        .pushsection .text.__tracepoint_object_v2,\"axG\",@progbits,__tracepoint_object_v2,comdat
        .balign 4
        .weak __tracepoint_ctor_v2
        .hidden __tracepoint_ctor_v2
        __tracepoint_ctor_v2:
        ",
            $crate::__tracepoint_call_with_object!("register"),
            "
        .weak __tracepoint_dtor_v2
        .hidden __tracepoint_dtor_v2
        __tracepoint_dtor_v2:
        ",
            $crate::__tracepoint_call_with_object!("unregister"),
            "
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
        )
    };
}

/// The entry of the site at `771`, at `772`, in the layout of [`Entry`]; and the description of the object.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_entry {
    () => {
        ::core::concat!(
            ".pushsection tracepoint_sites,\"awR\",@progbits
        .balign 8
        772:
        .long 771b - .
        .long {cold} - .
        .quad {key}
        .popsection
        ",
            $crate::__tracepoint_object!()
        )
    };
}

/// Sites that are written together.
#[derive(Debug)]
struct Batch<'o> {
    sites: Vec<Site<'o>>,
    /// The form to write.
    form: Form,
    /// Number of sites skipped because their bytes are foreign.
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

    fn write(&mut self) -> Result<(), SiteSwitchError> {
        self.sites.sort_unstable_by_key(|site| site.switched_at());
        text::write(&self.sites, self.form)
    }

    /// Drops the sites that have the form, and returns whether all have it. Otherwise the next switch retries the others.
    fn verify(&mut self) -> bool {
        self.sites.retain(|site| site.form() != Some(self.form));
        let remaining = self.sites.len();
        self.sites.retain(|site| site.form().is_some());
        self.foreign += remaining - self.sites.len();
        let complete = self.foreign == 0 && self.sites.is_empty();
        if !complete {
            RETRY_PENDING.store(true, Ordering::Relaxed);
        }
        complete
    }

    /// As `verify`, and counts the sites that do not have the form.
    fn verify_and_count(&mut self) {
        if !self.verify() {
            FOREIGN.fetch_add(self.foreign as u64, Ordering::Relaxed);
            STUCK.fetch_add(self.sites.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Switches the sites of all these keys, and retries the sites that earlier switches could not write.
///
/// # Errors
///
/// If a site cannot be switched on. Then all sites of the keys to be switched on are switched off again as far as possible. A site that cannot
/// be switched off is counted, and continues to enter the cold path, which finds nothing to do; this alone is not an error.
pub(crate) fn switch(changes: &[(&'static Key, bool)], locked: &UpdateGuard<'_>) -> Result<(), SiteSwitchError> {
    let mut wanted: Vec<(*const Key, Form)> =
        changes.iter().map(|(key, on)| (std::ptr::from_ref(*key), Form::of(*on))).collect();
    wanted.sort_unstable_by_key(|(key, _)| *key);
    let find = |key: *const Key| wanted.binary_search_by_key(&key, |(key, _)| *key).ok().map(|at| wanted[at].1);
    let retry = RETRY_PENDING.swap(false, Ordering::Relaxed);
    let (mut on, mut off) = (Batch::new(Form::On), Batch::new(Form::Off));
    let (mut earlier_on, mut earlier_off) = (Batch::new(Form::On), Batch::new(Form::Off));
    for object in objects(locked) {
        for entry in patched(object) {
            let batch = match find(entry.key()) {
                Some(Form::On) => &mut on,
                Some(Form::Off) => &mut off,
                None if !retry => continue,
                None => match entry.form_of_key() {
                    Form::On => &mut earlier_on,
                    Form::Off => &mut earlier_off,
                },
            };
            batch.add(object, entry);
        }
    }
    for earlier in [&mut earlier_off, &mut earlier_on] {
        // Failures were counted when these sites were first left out, and do not concern this caller.
        let _ = earlier.write();
        earlier.verify();
    }
    let _ = off.write();
    off.verify_and_count();
    let written = on.write();
    if written.is_err() {
        on.form = Form::Off;
        let _ = on.write();
    }
    on.verify_and_count();
    // What cannot be switched on together is not switched on at all.
    let permitted = |form: Form| if written.is_ok() { form } else { Form::Off };
    for object in objects(locked) {
        indirect::switch(object.entries(), |entry| find(entry.key()).map(permitted));
    }
    text::synchronize_cores();
    written
}

/// The entries of an object whose sites are patched.
fn patched(object: &Object) -> impl Iterator<Item = &Entry> {
    let words = Words::of(object.entries());
    let is_patched = move |number: usize| words.is_none_or(|words| !words.has(number));
    object.entries().iter().enumerate().filter(move |(number, _)| is_patched(*number)).map(|(_, entry)| entry)
}

/// Switches on those sites of a newly loaded object whose keys are on.
fn switch_loaded(object: &Object, _: &UpdateGuard<'_>) {
    let mut loaded = Batch::new(Form::On);
    for entry in patched(object) {
        if entry.form_of_key() == Form::On {
            loaded.add(object, entry);
        }
    }
    indirect::switch(object.entries(), |entry| Some(entry.form_of_key()));
    // There is no caller to return an error to; `platform` reports the count.
    let _ = loaded.write();
    loaded.verify_and_count();
    text::synchronize_cores();
}

pub(crate) fn report(locked: &UpdateGuard<'_>) -> SiteReport {
    let is_indirect =
        |object: &Object| Words::of(object.entries()).is_some_and(Words::is_complete) || object.entries().is_empty();
    SiteReport {
        form: if objects(locked).all(is_indirect) && objects(locked).next().is_some() { "indirect" } else { "patched" },
        sites: Some(objects(locked).map(|object| object.entries().len()).sum()),
        foreign: FOREIGN.load(Ordering::Relaxed),
        stuck: STUCK.load(Ordering::Relaxed),
        stayed_writable: writable::stayed_writable(),
        unknown_objects: objects(locked).filter(|object| !object.is_known()).count(),
    }
}
