//! The header of a ring file, its first kilobyte, which contains the offsets of its parts.

use super::Side;
use crate::account::Policy;
use crate::fields::Fields;
use tracepoint_ring::channel::ring_offsets::{ENTRY_SIZE, HEADER_AND_IDENTITY, VERSION, header as at, stream};
use tracepoint_ring::channel::{HEADER_SIZE, MAX_EVENTS, PacketSlots, RINGLESS_INSTANCE, StreamKey};

/// Maximum size of a sub-buffer.
const MAX_SUB_BUFFER: u64 = 1 << 30;
/// Minimum size of a sub-buffer: a packet's header.
const MIN_SUB_BUFFER: u64 = HEADER_SIZE as u64;

/// The sub-buffers of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) offset: u64,
    pub(super) slots: PacketSlots,
}

/// The fields that do not change once the file is completed.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// The main stream; the nested one has the next instance.
    pub(super) stream: StreamKey,
    pub(super) policy: Policy,
    pub(super) events: u64,
    pub(super) account_offset: u64,
    pub(super) opened: u64,
    main: Area,
    nested: Area,
}

/// The offset of an invalid field, and the reason.
pub(super) type InvalidField = (u64, String);

impl Area {
    /// Offset of the sub-buffer of packet `number`.
    pub(super) fn offset_of(self, number: u64) -> u64 {
        self.offset + self.slots.offset_of(number)
    }
}

impl Header {
    /// Reads the header; `length` is the length of the file.
    pub(super) fn parse(fields: Fields<'_>, length: u64) -> Result<Self, InvalidField> {
        let version = fields.u32(at::VERSION);
        if version != VERSION {
            return Err((
                at::VERSION as u64,
                format!("version {version} of the ring format is not understood; use a newer reader"),
            ));
        }
        let own = fields.u32(at::OWN_SIZE);
        if own as usize != HEADER_AND_IDENTITY {
            return Err((
                at::OWN_SIZE as u64,
                format!("header and identity should take {HEADER_AND_IDENTITY} bytes, not {own}"),
            ));
        }
        let size = fields.u64(at::FILE_SIZE);
        if length < size {
            let reason = format!(
                "the file ends here, and its header describes {size} bytes: it was cut short; read it where the process \
                 made it, or copy it again"
            );
            return Err((length, reason));
        }
        if length > size {
            let reason = format!(
                "its header describes {size} bytes, and the file has {length}: it is not the file that the process made"
            );
            return Err((at::FILE_SIZE as u64, reason));
        }
        let policy = match fields.u32(at::POLICY) {
            0 => Policy::Discard,
            1 => Policy::Overwrite,
            2 => Policy::Wait,
            other => {
                return Err((
                    at::POLICY as u64,
                    format!("{other} is not a policy; 0 is discard, 1 is overwrite, 2 is wait"),
                ));
            }
        };
        let instance = fields.u64(at::INSTANCE);
        // The nested stream has the next number, and viewers interpret the largest number as no number.
        if instance >= u64::MAX - 1 {
            return Err((at::INSTANCE as u64, format!("{instance} is not a stream instance id")));
        }
        let (events, account_offset, entry) =
            (fields.u64(at::EVENTS), fields.u64(at::ACCOUNT), fields.u64(at::ENTRY_SIZE));
        if events > MAX_EVENTS as u64 {
            return Err((at::EVENTS as u64, format!("the account has {events} events; {MAX_EVENTS} is the most")));
        }
        if entry != ENTRY_SIZE as u64 {
            return Err((
                at::ENTRY_SIZE as u64,
                format!("an entry of the account should take {ENTRY_SIZE} bytes, not {entry}"),
            ));
        }
        inside("the account", at::ACCOUNT, account_offset, events * entry, size)?;
        let network = fields.u64(at::NETWORK);
        if network != 0 {
            let reason =
                format!("packets have fields for the network, at byte {network}, which this reader does not know");
            return Err((at::NETWORK as u64, reason));
        }
        let main = area("main", fields, at::MAIN, size)?;
        if main.slots.count == 0 && instance != RINGLESS_INSTANCE {
            return Err((
                (at::MAIN + stream::SLOTS) as u64,
                "it has no sub-buffers, which only the file of threads without a ring has".to_owned(),
            ));
        }
        Ok(Self {
            stream: StreamKey { uuid: fields.array(at::UUID), class: fields.u32(at::CLASS), instance },
            policy,
            events,
            account_offset,
            opened: fields.u64(at::OPENED),
            main,
            nested: area("nested", fields, at::NESTED, size)?,
        })
    }

    pub(super) fn area(&self, side: Side) -> Area {
        match side {
            Side::Main => self.main,
            Side::Nested => self.nested,
        }
    }
}

fn area(name: &str, fields: Fields<'_>, at: usize, file: u64) -> Result<Area, InvalidField> {
    let [offset, size, count] =
        [fields.u64(at + stream::FIRST_SLOT), fields.u64(at + stream::SLOT_SIZE), fields.u64(at + stream::SLOTS)];
    let area = Area { offset, slots: PacketSlots { size, count } };
    if count == 0 {
        return Ok(area);
    }
    if !(MIN_SUB_BUFFER..=MAX_SUB_BUFFER).contains(&size) || !size.is_multiple_of(8) {
        let reason = format!(
            "a sub-buffer of the {name} stream has {size} bytes; it must have {MIN_SUB_BUFFER} to {MAX_SUB_BUFFER}, a multiple of 8"
        );
        return Err(((at + stream::SLOT_SIZE) as u64, reason));
    }
    let Some(all) = size.checked_mul(count) else {
        return Err((
            (at + stream::SLOTS) as u64,
            format!("{count} sub-buffers of {size} bytes in the {name} stream are more than a file holds"),
        ));
    };
    inside(&format!("the {name} stream's packets"), at, offset, all, file)?;
    Ok(area)
}

/// Checks that a part of the file is aligned, and lies between the identity and the end of the file.
fn inside(what: &str, at: usize, offset: u64, size: u64, file: u64) -> Result<(), InvalidField> {
    let end = offset.checked_add(size);
    if offset < HEADER_AND_IDENTITY as u64 || !offset.is_multiple_of(8) || end.is_none_or(|end| end > file) {
        let reason = format!("{what}: {size} bytes at {offset} are not inside the {file} bytes of the ring");
        return Err((at as u64, reason));
    }
    Ok(())
}
