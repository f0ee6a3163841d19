//! The first kilobyte of a ring file: where its parts are.

use super::page::Page;
use super::{HEADER_AND_IDENTITY, Side};
use crate::account::Policy;

/// What a ring file begins with, once it is a ring.
pub(super) const MAGIC: [u8; 8] = *b"tp-ring\n";
/// The only version so far.
const VERSION: u32 = 1;
/// Most events of a channel: their ids have 16 bits.
const MAX_EVENTS: u64 = 1 << 16;
/// Size of an event's entry in the account.
pub(super) const ENTRY_SIZE: u64 = 128;
/// Largest place of a packet, as channels have them.
const MAX_PLACE: u64 = 1 << 30;
/// Smallest place: a packet's header.
const MIN_PLACE: u64 = super::head::SIZE as u64;

/// Where the packets of one stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) count: u64,
}

/// What does not change once the file is a ring.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) uuid: [u8; 16],
    pub(super) class: u32,
    pub(super) policy: Policy,
    pub(super) instance: u64,
    pub(super) events: u64,
    pub(super) account_offset: u64,
    pub(super) opened: u64,
    main: Places,
    nested: Places,
}

/// Where a header is wrong, and why.
pub(super) type Flaw = (u64, String);

impl Header {
    /// Reads the header; `length` is that of the file.
    pub(super) fn parse(page: Page<'_>, length: u64) -> Result<Self, Flaw> {
        let version = page.u32(8);
        if version != VERSION {
            return Err((8, format!("version {version} of the ring format is not understood; use a newer reader")));
        }
        let own = page.u32(12);
        if own as usize != HEADER_AND_IDENTITY {
            return Err((12, format!("header and identity should take {HEADER_AND_IDENTITY} bytes, not {own}")));
        }
        let size = page.u64(16);
        if length < size {
            let reason = format!(
                "the file ends here, and its header describes {size} bytes: it was cut short; read it where the process \
                 made it, or copy it again"
            );
            return Err((length, reason));
        }
        let policy = match page.u32(44) {
            0 => Policy::Discard,
            1 => Policy::Overwrite,
            2 => Policy::Wait,
            other => return Err((44, format!("{other} is no policy: 0 is discard, 1 is overwrite, 2 is wait"))),
        };
        let instance = page.u64(48);
        // The nested stream is one more, and the largest number means none to viewers.
        if instance >= u64::MAX - 1 {
            return Err((48, format!("{instance} is no stream instance id")));
        }
        let (events, account_offset, entry) = (page.u64(56), page.u64(64), page.u64(72));
        if events > MAX_EVENTS {
            return Err((56, format!("the account has {events} events; {MAX_EVENTS} is the most")));
        }
        if entry != ENTRY_SIZE {
            return Err((72, format!("an entry of the account should take {ENTRY_SIZE} bytes, not {entry}")));
        }
        inside("the account", 64, account_offset, events * ENTRY_SIZE, size)?;
        let network = page.u64(80);
        if network != 0 {
            let reason =
                format!("packets have fields for the network, at byte {network}, which this reader does not know");
            return Err((80, reason));
        }
        Ok(Self {
            uuid: page.array(24),
            class: page.u32(40),
            policy,
            instance,
            events,
            account_offset,
            opened: page.u64(88),
            main: places("main", page, 96, size)?,
            nested: places("nested", page, 120, size)?,
        })
    }

    pub(super) fn places(&self, side: Side) -> Places {
        match side {
            Side::Main => self.main,
            Side::Nested => self.nested,
        }
    }
}

fn places(name: &str, page: Page<'_>, at: usize, file: u64) -> Result<Places, Flaw> {
    let [offset, size, count] = [page.u64(at), page.u64(at + 8), page.u64(at + 16)];
    let places = Places { offset, size, count };
    let field = at as u64;
    if count == 0 {
        return Ok(places);
    }
    if !(MIN_PLACE..=MAX_PLACE).contains(&size) || !size.is_multiple_of(8) {
        let reason = format!(
            "a packet's place in the {name} stream has {size} bytes; it should have {MIN_PLACE} to {MAX_PLACE}, a multiple of 8"
        );
        return Err((field + 8, reason));
    }
    let Some(all) = size.checked_mul(count) else {
        return Err((
            field + 16,
            format!("{count} places of {size} bytes in the {name} stream are more than a file holds"),
        ));
    };
    inside(&format!("the {name} stream's packets"), field, offset, all, file)?;
    Ok(places)
}

/// Checks that a part is behind the identity, inside the file, and aligned.
fn inside(what: &str, at: u64, offset: u64, size: u64, file: u64) -> Result<(), Flaw> {
    let end = offset.checked_add(size);
    if offset < HEADER_AND_IDENTITY as u64 || !offset.is_multiple_of(8) || end.is_none_or(|end| end > file) {
        let reason = format!("{what}: {size} bytes at {offset} are not inside the {file} bytes of the ring");
        return Err((at, reason));
    }
    Ok(())
}
