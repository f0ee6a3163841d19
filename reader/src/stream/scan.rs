//! Skips over the records of a packet without decoding their values.

use std::sync::Arc;

use crate::decode::{State, extend};
use crate::event::Stream;
use crate::packet::{Body, Packet};
use crate::record::layout::{ClassLayouts, MAX_RECORD, TIME_BITS, WORD};
use crate::source::Source;
use crate::view::{EventView, Values};

/// Maximum size of a packet held in memory.
pub(crate) const MAX_HELD: u64 = 16 << 20;

/// Visits the records of a packet from its position on, up to the first that has no known layout, is incomplete, or has a time beyond 64 bits of
/// nanoseconds; returns their number. The decoder continues there: it finds the end of the packet, or the fault.
pub(crate) fn visit(
    source: &mut impl Source,
    (packet, body): (&Packet, &mut Body),
    state: &mut State,
    stream: &Arc<Stream>,
    layouts: &ClassLayouts,
    mut each: impl FnMut(&EventView<'_>),
) -> u64 {
    let Some((first, length)) = body.bytes().filter(|(_, length)| *length <= MAX_HELD) else { return 0 };
    let Ok(bytes) = source.bytes(packet.offset + first, length as usize) else { return 0 };
    let bytes = &bytes[..bytes.len().min(length as usize)];
    let times = Times::of(stream, state.clock);
    let (mut at, mut visited) = (0, 0);
    while let Some(word) = bytes.get(at..at + WORD).and_then(|word| word.first_chunk()) {
        let word = u64::from_le_bytes(*word);
        let rest = &bytes[at..];
        let Some((class, layout)) = layouts.get(word as u16) else { break };
        let size = layout.size(rest).filter(|size| *size <= rest.len().min(MAX_RECORD));
        let Some(size) = size else { break };
        let cycles = extend(state.clock, word >> 16, TIME_BITS);
        let Some(time_ns) = times.nanoseconds(cycles) else { break };
        state.clock = cycles;
        each(&EventView {
            time_ns,
            cycles,
            stream,
            class,
            packet_context: packet.context.as_deref(),
            values: Values::Record(layout, &rest[..size]),
        });
        at += size;
        visited += 1;
    }
    body.pass(at as u64);
    visited
}

/// Converts the times of a packet; a clock that counts nanoseconds needs no multiplication.
struct Times<'a> {
    stream: &'a Stream,
    begin: u64,
    begin_ns: Option<i64>,
}

impl<'a> Times<'a> {
    fn of(stream: &'a Stream, begin: u64) -> Self {
        let counts_nanoseconds = stream.clock().is_some_and(|clock| clock.frequency == 1_000_000_000);
        let begin_ns = stream.checked_nanoseconds(begin).filter(|_| counts_nanoseconds);
        Self { stream, begin, begin_ns }
    }

    #[inline]
    fn nanoseconds(&self, cycles: u64) -> Option<i64> {
        match (self.begin_ns, cycles.checked_sub(self.begin)) {
            (Some(begin), Some(since)) => begin.checked_add_unsigned(since),
            _ => self.stream.checked_nanoseconds(cycles),
        }
    }
}
