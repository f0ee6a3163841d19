//! A site's entry in the table, and the instruction at the site.

use super::segment::{Segment, Segments};
use crate::key::Key;

/// The two forms of a site's opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Form {
    /// `mov r11d, imm32`.
    Off = 0xBB,
    /// `jmp rel32`.
    On = 0xE9,
}

impl Form {
    pub(super) const fn of(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }

    pub(super) const fn byte(self) -> u8 {
        self as u8
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0xBB => Some(Self::Off),
            0xE9 => Some(Self::On),
            _ => None,
        }
    }
}

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

/// The instruction: a prefix, one byte of opcode, four bytes of distance.
const PREFIX: u8 = 0x41;
const OPCODE_AT: usize = 1;
const LENGTH: usize = 6;

impl Entry {
    pub(super) const fn key(&self) -> *const Key {
        self.key
    }

    /// The form for the current state of the key.
    pub(super) fn form_of_key(&self) -> Form {
        // SAFETY: entries point to keys, which are statics of the entry's object or of one that it depends on.
        Form::of(unsafe { &*self.key }.is_on())
    }

    /// The site, if it lies in the object's code and its bytes are one of the two forms with the right distance to the cold path.
    pub(super) fn site<'o>(&self, code: &'o Segments) -> Option<Site<'o>> {
        let address = (&raw const self.site).addr().checked_add_signed(self.site as isize)?;
        let cold = (&raw const self.cold).addr().checked_add_signed(self.cold as isize)?;
        code.around(address, LENGTH)?;
        let site = Site { address, code };
        let [prefix, opcode, distance @ ..] = site.instruction();
        Form::from_byte(opcode)?;
        let right = (cold.wrapping_sub(address + LENGTH) as u32).to_le_bytes();
        (prefix == PREFIX && distance == right).then_some(site)
    }
}

/// A verified site: an instruction in the code of a loaded object. Two words, because batches of thousands are collected, copied and
/// sorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'o> {
    address: usize,
    /// The segments of its object.
    code: &'o Segments,
}

impl Site<'_> {
    /// The address of the byte that is switched.
    pub(super) const fn opcode(self) -> usize {
        self.address + OPCODE_AT
    }

    /// The addresses of the first byte of the instruction and of the first byte after it.
    pub(super) const fn bounds(self) -> (usize, usize) {
        (self.address, self.address + LENGTH)
    }

    /// The segment that contains it.
    pub(super) fn segment(self) -> Option<Segment> {
        self.code.around(self.address, LENGTH)
    }

    /// The present form; `None` if the byte has become foreign since the site was verified.
    pub(super) fn form(self) -> Option<Form> {
        // SAFETY: the whole instruction lies within a readable executable segment of a loaded object (`Segments::around` checked that
        // before this `Site` was made). Volatile, because code changes by other means than this program's stores.
        Form::from_byte(unsafe { std::ptr::with_exposed_provenance::<u8>(self.opcode()).read_volatile() })
    }

    fn instruction(self) -> [u8; LENGTH] {
        // SAFETY: as in `form`.
        unsafe { std::ptr::with_exposed_provenance::<[u8; LENGTH]>(self.address).read_volatile() }
    }
}
