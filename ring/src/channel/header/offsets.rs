//! Offsets in bytes of the fields of a ring's memory, for readers of ring files: see `docs/format-ring.md`. All fields are little-endian.

use super::{EventCounters, Header, StreamCounters, StreamLayout};
use std::mem::offset_of;

/// The first eight bytes of a ring file, stored last.
pub const MAGIC: [u8; 8] = super::MAGIC.to_le_bytes();
/// The version of the format.
pub const VERSION: u32 = super::VERSION;
/// The size of the header and the identity that follows it, which is the offset of the account.
pub const HEADER_AND_IDENTITY: usize = super::HEADER_PAGE;
/// The size of an event's entry in the account.
pub const ENTRY_SIZE: usize = size_of::<EventCounters>();
/// The size of the counters of a stream.
pub const COUNTERS_SIZE: usize = size_of::<StreamCounters>();

macro_rules! offsets {
    ($type:ident: $($name:ident = $field:ident: $doc:literal)*) => {
        use super::{$type, offset_of};
        $(#[doc = $doc] pub const $name: usize = offset_of!($type, $field);)*
    };
}

/// Offsets in the header.
pub mod header {
    offsets! { Header:
        VERSION = version: "The version, u32."
        OWN_SIZE = page_size: "The size of header and identity, u32."
        FILE_SIZE = file_size: "The size of the file, u64."
        UUID = uuid: "The uuid of the trace, 16 bytes."
        CLASS = class: "The stream class, u32."
        POLICY = policy: "The policy, u32."
        INSTANCE = instance: "The instance of the main stream, u64."
        EVENTS = events: "The number of events in the account, u64."
        ACCOUNT = account_offset: "The offset of the account, u64."
        ENTRY_SIZE = account_entry_size: "The size of an event's entry in the account, u64."
        NETWORK = network_offset: "The offset of the fields for the network in packets, u64."
        OPENED = start: "When the channel was opened, u64."
        MAIN = main: "The packets of the main stream: offset, size and number of the slots, u64 each."
        NESTED = nested: "The same of the nested stream."
        MAIN_COUNTERS = main_counters: "The counters of the main stream."
        NESTED_COUNTERS = nested_counters: "The same of the nested stream."
        RELEASED = main_released: "The numbers of released packets, of the main and of the nested stream, u64 each."
    }
    const _: () = assert!(offset_of!(Header, nested_released) == RELEASED + 8);
}

/// Offsets in the location of a stream's packets, u64 each.
pub mod stream {
    offsets! { StreamLayout:
        FIRST_SLOT = offset: "The offset of the first slot."
        SLOT_SIZE = packet_size: "The size of a slot."
        SLOTS = packets: "The number of slots."
    }
}

/// Offsets in the counters of a stream, u64 each.
pub mod counters {
    offsets! { StreamCounters:
        RECORDS = records: "Records."
        CLOSED = closed: "Closed packets."
        DISCARDED = discarded: "Events that were lost on their way to the stream."
        CLAMPED = clamped: "Times that were raised."
        ALTERED = altered: "Texts in which a NUL was replaced."
        WAITED = waited: "Events that waited."
        WAITED_NS = waited_ns: "For how long, in ns."
    }
}

/// Offsets in an event's entry of the account, u64 each.
pub mod entry {
    offsets! { EventCounters:
        FIRED = fired: "How often it fired."
        RECORDED = recorded: "How often it was recorded."
        FILTERED = filtered: "How often a filter rejected it."
        SUPPRESSED = suppressed: "How often a limit suppressed it."
        LOST = lost: "How often it was lost, for each [`Loss`](crate::channel::Loss) in order."
    }
}
