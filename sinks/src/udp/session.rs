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

/// What a session uses of the server's.
pub(super) struct Context<'a> {
    pub(super) queue: &'a PacketQueue,
    pub(super) options: &'a UdpOptions,
    pub(super) counters: &'a Counters,
    pub(super) splitter: &'a mut Splitter,
    /// The number of the next message.
    pub(super) seq: &'a mut u32,
    /// Whether somebody reads this trace already, or has.
    pub(super) read: &'a mut bool,
    pub(super) now: Instant,
}

impl Context<'_> {
    /// The number of a message that is sent now.
    pub(super) fn number(&mut self, bytes: usize) -> u32 {
        let seq = *self.seq;
        *self.seq = seq.wrapping_add(1);
        self.counters.sent(bytes);
        seq
    }
}

/// How a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// At this time, or when there is something new.
    At(Option<Instant>),
    /// When its socket takes more, or at this time.
    Blocked(Option<Instant>),
    /// It is over. `trace`: its client knows that the trace has ended.
    Over { trace: bool },
}

/// The earlier of two times, of which there may be none.
pub(super) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
