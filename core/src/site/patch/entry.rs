//! A site's entry in the table, and the instruction at the site.

use super::machine::{Form, Instruction, LENGTH, SWITCHED_AT, Switched};
use super::segment::{Segment, Segments};
use crate::key::Key;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// The entry of a site in the section `tracepoint_sites`. It holds distances instead of addresses, so that only the key, which may be in
/// another object, needs a relocation.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry {
    /// The distance from this field to the site.
    site: i32,
    /// The distance from this field to the cold path.
    cold: i32,
    key: *const Key,
}

const _: () = assert!(size_of::<Entry>() == 16 && align_of::<Entry>() == 8);

impl Entry {
    pub(super) const fn key(&self) -> *const Key {
        self.key
    }

    /// The form for the current state of the key.
    pub(super) fn form_of_key(&self) -> Form {
        // SAFETY: entries point to keys, which are statics of the entry's object or of one that it depends on.
        Form::of(unsafe { &*self.key }.is_on())
    }

    /// The address at which a thread continues behind the site in this form.
    pub(super) fn target(&self, form: Form) -> usize {
        match form {
            Form::Off => (&raw const self.site).addr().wrapping_add_signed(self.site as isize) + LENGTH,
            Form::On => (&raw const self.cold).addr().wrapping_add_signed(self.cold as isize),
        }
    }

    /// The site, if it lies in the object's code and its bytes are one of the two forms with the right distance to the cold path.
    pub(super) fn site<'o>(&self, code: &'o Segments) -> Option<Site<'o>> {
        let address = (&raw const self.site).addr().checked_add_signed(self.site as isize)?;
        let cold = (&raw const self.cold).addr().checked_add_signed(self.cold as isize)?;
        code.around(address, LENGTH)?;
        // SAFETY: the whole instruction lies within a readable executable segment of a loaded object. Volatile, because code changes by other
        // means than this program's stores.
        let bytes = unsafe { with_exposed_provenance::<[u8; LENGTH]>(address).read_volatile() };
        Some(Site { address, code, instruction: Instruction::verified(bytes, address, cold)? })
    }
}

/// A verified site: an instruction in the code of a loaded object. Two or three words, because batches of thousands are collected, copied and
/// sorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'o> {
    address: usize,
    /// The segments of its object.
    code: &'o Segments,
    instruction: Instruction,
}

impl Site<'_> {
    /// The address of the part of the instruction that is switched.
    pub(super) const fn switched_at(self) -> usize {
        self.address + SWITCHED_AT
    }

    /// The addresses of the first byte of the instruction and of the first byte after it.
    pub(super) const fn bounds(self) -> (usize, usize) {
        (self.address, self.address + LENGTH)
    }

    /// The segment that contains it.
    pub(super) fn segment(self) -> Option<Segment> {
        self.code.around(self.address, LENGTH)
    }

    /// The present form; `None` if the instruction has become foreign since the site was verified.
    pub(super) fn form(self) -> Option<Form> {
        // SAFETY: `Segments::around` checked, before this `Site` was made, that the instruction lies within readable code, and the part is
        // aligned. Volatile, because code changes by other means than this program's stores.
        self.instruction.form(unsafe { with_exposed_provenance::<Switched>(self.switched_at()).read_volatile() })
    }

    /// The part that is switched, in this form.
    pub(super) const fn bytes(self, form: Form) -> [u8; size_of::<Switched>()] {
        self.instruction.switched(form).to_le_bytes()
    }

    /// Returns whether this instruction is at the site.
    pub(super) fn has(self, instruction: [u8; LENGTH]) -> bool {
        // SAFETY: as in `form`.
        unsafe { with_exposed_provenance::<[u8; LENGTH]>(self.address).read_volatile() == instruction }
    }

    /// Stores a whole instruction.
    ///
    /// # Safety
    ///
    /// The page is writable, and no thread executes the site.
    pub(super) unsafe fn replace(self, instruction: [u8; LENGTH]) {
        // SAFETY: the caller's promise.
        unsafe { with_exposed_provenance_mut::<[u8; LENGTH]>(self.address).write_volatile(instruction) };
    }

    /// Stores the form, by one atomic store.
    ///
    /// # Safety
    ///
    /// The page is writable.
    pub(super) unsafe fn store(self, form: Form) {
        let switched = self.instruction.switched(form);
        // SAFETY: the caller's promise; it is an aligned part of a verified site.
        unsafe { with_exposed_provenance_mut::<Switched>(self.switched_at()).write_volatile(switched) };
    }
}
