//! What all phases of a session share: what goes out, what is told, what is counted.

use super::Options;
use crate::udp::order::Limits;
use crate::udp::report::{Counts, Lost, Report};
use crate::udp::wire::ToServer;
use std::collections::VecDeque;

/// How many bytes of messages wait at most for one that is missing.
const HELD_BYTES: usize = 64 << 20;
/// How far a number may be from the one that is expected without another one that bears it out, where nothing guards it.
const MAX_JUMP: u64 = 1 << 16;

#[derive(Debug)]
pub(super) struct SessionCore {
    pub(super) options: Options,
    pub(super) out: VecDeque<Vec<u8>>,
    pub(super) reports: VecDeque<Report>,
    pub(super) counts: Counts,
    /// Whether the user has had enough.
    pub(super) stop_wanted: bool,
}

impl SessionCore {
    pub(super) fn new(options: Options) -> Self {
        Self { options, out: VecDeque::new(), reports: VecDeque::new(), counts: Counts::default(), stop_wanted: false }
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &ToServer) {
        let mut datagram = Vec::new();
        message.encode(&mut datagram);
        self.out.push_back(datagram);
    }

    pub(super) fn report(&mut self, report: Report) {
        self.reports.push_back(report);
    }

    /// Tells of a loss, and counts it.
    pub(super) fn lose(&mut self, lost: Lost) {
        let counts = &mut self.counts;
        match lost {
            Lost::Messages { count, .. } => counts.lost_messages = counts.lost_messages.saturating_add(count),
            Lost::Beginning => counts.lost_messages += 1,
            Lost::Events(count) | Lost::BeforeOffer(count) => {
                counts.lost_events = counts.lost_events.saturating_add(count);
            }
            Lost::Metadata(bytes) => counts.lost_metadata = u64::from(bytes),
            Lost::Unsent(losses) => counts.unsent_events = losses.total(),
        }
        self.report(Report::Lost(lost));
    }

    /// Tells of a message that came too late, with so many events in it.
    pub(super) fn late(&mut self, events: u64) {
        self.counts.late_messages += 1;
        self.counts.late_events = self.counts.late_events.saturating_add(events);
        self.report(Report::Late(events));
    }

    /// Counts events that were given out; with the last one that is wanted the user has had enough.
    pub(super) fn deliver(&mut self, events: u64) {
        self.counts.events = self.counts.events.saturating_add(events);
        let limit = self.options.events_limit;
        self.stop_wanted |= limit.is_some_and(|limit| self.counts.events >= limit.get());
    }

    /// How messages wait whose numbers nothing guards.
    pub(super) fn legacy_limits(&self) -> Limits {
        Limits { max_jump: MAX_JUMP, ..self.batch_limits() }
    }

    /// How messages wait whose checksums were right.
    pub(super) fn batch_limits(&self) -> Limits {
        let Options { max_held, gap_timeout, .. } = self.options;
        Limits { messages: max_held, bytes: HELD_BYTES, gap_timeout, max_jump: u64::MAX }
    }
}
