//! The order of the messages of a session in the legacy layout.
//!
//! The original server writes the number of a packet as a 16-bit swap into 32 bits: bytes 0 and 1 have the number modulo 65536, bytes 2 and 3
//! are zero. Its marks have all 32 bits. Once such a packet has arrived, the numbers of all messages are taken modulo 65536: a loss of
//! exactly a multiple of 65536 messages then remains undetected.

use super::session_core::SessionCore;
use crate::udp::order::{Arrival, Order};
use crate::udp::report::LegacyEvent;
use std::time::Duration;
use tracepoint_wire::udp::{FromServer, MarkKind, ToClient};

/// A message in the legacy layout.
#[derive(Debug)]
pub(super) enum LegacyMessage {
    Mark(MarkKind),
    Event(LegacyEvent),
}

/// The server's encoding of packet numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberEncoding {
    /// No packet has shown it yet.
    Unknown,
    /// All 32 bits.
    Whole,
    /// The lower 16 bits, in the upper half.
    Swapped,
}

#[derive(Debug)]
pub(super) struct LegacyOrder {
    pub(super) messages: Order<LegacyMessage>,
    numbering: NumberEncoding,
    /// The number after the highest one so far.
    expected: u32,
}

impl LegacyOrder {
    /// The first message of the session may have a lower number than this one, which arrived first.
    pub(super) fn unopened(core: &SessionCore, message: &FromServer<'_>) -> Self {
        let half = message.seq >> 16;
        let swapped = matches!(message.message, ToClient::Packet(_)) && is_swapped(message.seq) && half != 0;
        let (number, numbering) =
            if swapped { (half, NumberEncoding::Swapped) } else { (message.seq, NumberEncoding::Unknown) };
        Self { messages: Order::unopened(number, core.legacy_limits()), numbering, expected: number }
    }

    /// Queues a message by its number, if it has this layout.
    pub(super) fn put(&mut self, core: &mut SessionCore, message: &FromServer<'_>, now: Duration) {
        let seq = self.number(message);
        let (kept, size, events) = match &message.message {
            ToClient::Mark(mark) => (LegacyMessage::Mark(mark.kind), 0, 0),
            ToClient::Packet(packet) => {
                let event = LegacyEvent { seq, time_ns: packet.time_ns, content: packet.content.to_vec() };
                let size = event.content.len();
                (LegacyMessage::Event(event), size, 1)
            }
            _ => {
                core.counts.foreign += 1;
                return;
            }
        };
        match self.messages.put(seq, kept, size, now) {
            Arrival::Taken { overtaken } => {
                core.counts.reordered += u64::from(overtaken);
                if !overtaken {
                    self.expected = seq.wrapping_add(1);
                }
            }
            Arrival::Duplicate => core.counts.duplicates += 1,
            Arrival::Late => core.late(events),
            Arrival::Implausible => core.counts.foreign += 1,
            // It is reported as missing later.
            Arrival::Full => {}
        }
    }

    /// The number of a message, in the numbering of the server.
    fn number(&mut self, message: &FromServer<'_>) -> u32 {
        let seq = message.seq;
        let expected = self.expected;
        // The number nearest to the expected one with these lower 16 bits.
        let near = |half: u16| expected.wrapping_add_signed(half.wrapping_sub(expected as u16).cast_signed().into());
        let distance = |number: u32| number.wrapping_sub(expected).cast_signed().unsigned_abs();
        if let ToClient::Packet(_) = message.message {
            let swapped = near((seq >> 16) as u16);
            self.numbering = match self.numbering {
                _ if !is_swapped(seq) => NumberEncoding::Whole,
                NumberEncoding::Unknown if distance(swapped) < distance(seq) => NumberEncoding::Swapped,
                known => known,
            };
            if self.numbering == NumberEncoding::Swapped { swapped } else { seq }
        } else if self.numbering == NumberEncoding::Swapped {
            near(seq as u16)
        } else {
            seq
        }
    }
}

/// True if a packet of the original server can have this number.
const fn is_swapped(seq: u32) -> bool {
    seq as u16 == 0
}
