//! A site's entry in the table, and what stands at the site.

use crate::key::Key;

/// The two forms of a site's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Form {
    /// `test eax, imm32`.
    Off = 0xA9,
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
            0xA9 => Some(Self::Off),
            0xE9 => Some(Self::On),
            _ => None,
        }
    }
}

/// What a site leaves in the section `tracepoint_sites`. Distances, not addresses, so that only the key needs relocating: it may
/// be in another object.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry {
    /// From here to the site.
    site: i32,
    /// From here to the cold path.
    cold: i32,
    key: *const Key,
}

const _: () = assert!(size_of::<Entry>() == 16 && align_of::<Entry>() == 8);

/// The instruction: one byte of opcode, four of distance.
const DISTANCE_AT: usize = 1;
const LENGTH: usize = 5;

impl Entry {
    pub(super) const fn key(&self) -> *const Key {
        self.key
    }

    /// The site, if what stands there is one of the two forms, with the distance that belongs there.
    pub(super) fn site(&self) -> Option<Site> {
        let site = (&raw const self.site).addr().checked_add_signed(self.site as isize)?;
        let cold = (&raw const self.cold).addr().checked_add_signed(self.cold as isize)?;
        let site = Site(site);
        Form::from_byte(site.byte())?;
        (site.distance() == (cold.wrapping_sub(site.0 + LENGTH) as u32).cast_signed()).then_some(site)
    }
}

/// The address of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site(usize);

impl Site {
    pub(super) const fn address(self) -> usize {
        self.0
    }

    /// The first byte. Volatile: it changes by other means than this program's stores.
    pub(super) fn byte(self) -> u8 {
        // SAFETY: the address is an instruction of a loaded object (the linker worked it out), and code is readable.
        unsafe { std::ptr::with_exposed_provenance::<u8>(self.0).read_volatile() }
    }

    /// The form. Only `Entry::site` makes sites, of bytes that are one of the two; what is neither by now is not `On`.
    pub(super) fn form(self) -> Form {
        Form::from_byte(self.byte()).unwrap_or(Form::Off)
    }

    fn distance(self) -> i32 {
        // SAFETY: the four bytes after the first belong to the same instruction.
        let bytes = unsafe { std::ptr::with_exposed_provenance::<[u8; 4]>(self.0 + DISTANCE_AT).read_volatile() };
        i32::from_le_bytes(bytes)
    }
}
