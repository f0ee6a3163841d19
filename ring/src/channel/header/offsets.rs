//! Where the fields of a ring's memory are, in bytes, for readers of ring files: see `docs/format-ring.md`. All are little-endian.

use super::{EventCounters, Header, StreamCounters, StreamLayout};
use std::mem::offset_of;

/// The first eight bytes of a ring file, stored last.
pub const MAGIC: [u8; 8] = super::MAGIC.to_le_bytes();
/// The version of the format.
pub const VERSION: u32 = super::VERSION;
/// The size of the header and the identity behind it, which is the offset of the account.
pub const HEADER_AND_IDENTITY: usize = super::HEADER_PAGE;
/// The size of an event's entry in the account.
pub const ENTRY_SIZE: usize = size_of::<EventCounters>();
/// The size of the counters of a stream.
pub const COUNTERS_SIZE: usize = size_of::<StreamCounters>();

/// In the header.
pub mod header {
    use super::{Header, offset_of};

    macro_rules! fields {
        ($($name:ident = $field:ident: $doc:literal)*) => {
            $(#[doc = $doc] pub const $name: usize = offset_of!(Header, $field);)*
        };
    }

    fields! {
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

/// In the location of a stream's packets.
pub mod stream {
    use super::{StreamLayout, offset_of};
    const _: () = assert!(offset_of!(StreamLayout, offset) == 0);

    /// The size of a slot, u64, behind the offset of the first one.
    pub const SLOT_SIZE: usize = offset_of!(StreamLayout, packet_size);
    /// The number of slots, u64.
    pub const SLOTS: usize = offset_of!(StreamLayout, packets);
}

/// In the counters of a stream, u64 each.
pub mod counters {
    use super::{StreamCounters, offset_of};

    /// Records.
    pub const RECORDS: usize = offset_of!(StreamCounters, records);
    /// Closed packets.
    pub const CLOSED: usize = offset_of!(StreamCounters, closed);
    /// Events that were lost on their way to the stream.
    pub const DISCARDED: usize = offset_of!(StreamCounters, discarded);
    /// Times that were raised.
    pub const CLAMPED: usize = offset_of!(StreamCounters, clamped);
    /// Texts in which a NUL was replaced.
    pub const ALTERED: usize = offset_of!(StreamCounters, altered);
    /// Events that waited.
    pub const WAITED: usize = offset_of!(StreamCounters, waited);
    /// For how long, in ns.
    pub const WAITED_NS: usize = offset_of!(StreamCounters, waited_ns);
}

/// In an event's entry of the account, u64 each.
pub mod entry {
    use super::{EventCounters, offset_of};

    /// How often it fired.
    pub const FIRED: usize = offset_of!(EventCounters, fired);
    /// How often it was recorded.
    pub const RECORDED: usize = offset_of!(EventCounters, recorded);
    /// How often a filter rejected it.
    pub const FILTERED: usize = offset_of!(EventCounters, filtered);
    /// How often a limit suppressed it.
    pub const SUPPRESSED: usize = offset_of!(EventCounters, suppressed);
    /// How often it was lost, for each [`Loss`](crate::channel::Loss) in order.
    pub const LOST: usize = offset_of!(EventCounters, lost);
}
