//! The position of a stream's packets in its ring, and the packets that wait to be taken: arithmetic shared by all accesses to a ring.
//!
//! ```text
//!   packet n of a stream is in slot n mod count, and its `packet_seq_num` is n + 1
//!
//!   released          closed        (packets counted since the beginning)
//!      ▼                 ▼
//!   ───┬────────┬────────┬────────┬─────────
//!      │ closed │ closed │  open  │  free …
//!   ───┴────────┴────────┴────────┴─────────
//!        consumer takes these  ▲ the owner writes here
//! ```
//!
//! A ring has one consumer, of one of two kinds:
//!
//! | | in this process (`consumer`) | in another one (`RemoteConsumer` of `tracepoint-reader`) |
//! |---|---|---|
//! | numbers of the packets to take | [`PacketSlots::waiting`] | the same |
//! | place of a packet | [`PacketSlots::offset_of`] in mapped memory | the same, in a file |
//! | the packet | its bytes are copied | read by system calls; header, records and position in the stream are checked |
//! | its number of records | counted by the owner when it closed the packet, not in the ring | counted by walking the records |
//! | release | one store | the bytes of the number one by one, from the lowest on |
//!
//! The parts above the line "the packet", and the header ([`PacketHeader`](super::PacketHeader)), are defined once, here. The others stay separate.
//! The memory of this process is as trustworthy as the code that reads it, and checking each record would cost more than the event that wrote it. A
//! file may contain anything, may become shorter at any time, and must be neither mapped nor trusted.

use std::ops::Range;

/// The slots of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketSlots {
    /// The size of a slot, in bytes.
    pub size: u64,
    /// The number of slots.
    pub count: u64,
}

impl PacketSlots {
    /// The slot of packet `number`.
    pub const fn index_of(self, number: u64) -> u64 {
        if self.count == 0 { 0 } else { number % self.count }
    }

    /// The offset of packet `number` from the first slot, in bytes.
    pub const fn offset_of(self, number: u64) -> u64 {
        self.index_of(number) * self.size
    }

    /// The number of the oldest packet that may still be present after `closed` packets were closed.
    pub const fn oldest(self, closed: u64) -> u64 {
        closed.saturating_sub(self.count)
    }

    /// Number of packets that must have been released before packet `number` may be written.
    pub const fn released_for(self, number: u64) -> u64 {
        self.oldest(number.saturating_add(1))
    }

    /// The numbers of the packets that are closed and not released. `released` may come from another process, and have any value.
    pub fn waiting(self, released: u64, closed: u64) -> Range<u64> {
        released.clamp(self.oldest(closed), closed)..closed
    }

    /// The part of the stream that the [`waiting`](Self::waiting) packets fill, in percent.
    pub fn percent(self, waiting: &Range<u64>) -> u32 {
        let waiting = waiting.end.saturating_sub(waiting.start).min(self.count);
        // At most 100.
        (waiting * 100 / self.count.max(1)) as u32
    }
}

/// The `packet_seq_num` of packet `number`. 0 belongs to the empty packet that begins the stream.
pub const fn sequence_of(number: u64) -> u64 {
    number.wrapping_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_position_from_elsewhere_never_names_a_packet_that_is_not_there() {
        let slots = PacketSlots { size: 512, count: 8 };
        assert_eq!(slots.waiting(3, 5), 3..5);
        assert_eq!(slots.waiting(0, 20), 12..20, "the others were overwritten");
        assert_eq!(slots.waiting(u64::MAX, 20), 20..20);
        assert_eq!((slots.percent(&(12..20)), slots.percent(&(0..u64::MAX)), slots.percent(&(5..5))), (100, 100, 0));
        assert_eq!((slots.offset_of(17), slots.released_for(17), slots.released_for(7)), (512, 10, 0));
        let none = PacketSlots::default();
        assert_eq!((none.offset_of(3), none.waiting(0, 5), none.percent(&(0..0))), (0, 5..5, 0));
    }
}
