//! A session with one client, in one of the two layouts.

pub(super) mod batch;
pub(super) mod legacy;
pub(super) mod offer;
mod texts;

use super::options::UdpOptions;
use super::queue::PacketQueue;
use super::split::Splitter;
use super::stats::Counters;
use std::time::Instant;

/// The parts of the server that a session uses.
pub(super) struct Context<'a> {
    pub(super) queue: &'a PacketQueue,
    pub(super) options: &'a UdpOptions,
    pub(super) counters: &'a Counters,
    pub(super) splitter: &'a mut Splitter,
    /// The number of the next message.
    pub(super) seq: &'a mut u32,
    /// True once a client has begun to read this trace.
    pub(super) read: &'a mut bool,
    pub(super) now: Instant,
}

impl Context<'_> {
    /// Takes the number of a message, and counts it as sent.
    pub(super) fn number(&mut self, bytes: usize) -> u32 {
        let seq = *self.seq;
        *self.seq = seq.wrapping_add(1);
        self.counters.sent(bytes);
        seq
    }
}

/// When a session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// At this time, or when there is new data to send.
    At(Option<Instant>),
    /// When its socket accepts more, or at this time.
    Blocked(Option<Instant>),
    /// It is over. `trace` is true if its client was notified of the end of the trace.
    Over { trace: bool },
}

/// Returns the earlier of two optional times.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
