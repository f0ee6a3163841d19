//! The state shared by all phases of a session: outgoing datagrams, reports, counts.

use super::Options;
use crate::udp::order::Limits;
use crate::udp::report::{Counts, LossReport, Report};
use std::collections::VecDeque;
use tracepoint_wire::udp::ToServer;

/// Maximum size of messages that wait for a missing one, in bytes.
const HELD_BYTES: usize = 64 << 20;
/// Maximum jump of a message number that is accepted without a second message near it, if no checksum protects the number.
const MAX_JUMP: u64 = 1 << 16;

#[derive(Debug)]
pub(super) struct SessionCore {
    pub(super) options: Options,
    pub(super) out: VecDeque<Vec<u8>>,
    pub(super) reports: VecDeque<Report>,
    pub(super) counts: Counts,
    /// True if the session should stop.
    pub(super) stop_wanted: bool,
}

impl SessionCore {
    pub(super) fn new(options: Options) -> Self {
        Self { options, out: VecDeque::new(), reports: VecDeque::new(), counts: Counts::default(), stop_wanted: false }
    }

    /// Queues a message to the server.
    pub(super) fn send(&mut self, message: &ToServer) {
        let mut datagram = Vec::new();
        message.encode(&mut datagram);
        self.out.push_back(datagram);
    }

    pub(super) fn report(&mut self, report: Report) {
        self.reports.push_back(report);
    }

    /// Reports and counts a loss.
    pub(super) fn lose(&mut self, lost: LossReport) {
        let counts = &mut self.counts;
        match lost {
            LossReport::Messages { count, .. } => counts.lost_messages = counts.lost_messages.saturating_add(count),
            LossReport::Beginning => counts.lost_messages += 1,
            LossReport::Events(count) | LossReport::BeforeOffer(count) => {
                counts.lost_events = counts.lost_events.saturating_add(count);
            }
            LossReport::Metadata(bytes) => counts.lost_metadata = u64::from(bytes),
            LossReport::Unsent(losses) => counts.unsent_events = losses.total(),
        }
        self.report(Report::Lost(lost));
    }

    /// Reports and counts a late message with `events` events.
    pub(super) fn late(&mut self, events: u64) {
        self.counts.late_messages += 1;
        self.counts.late_events = self.counts.late_events.saturating_add(events);
        self.report(Report::Late(events));
    }

    /// Counts delivered events.
    pub(super) fn deliver(&mut self, events: u64) {
        self.counts.events = self.counts.events.saturating_add(events);
        self.limit(self.counts.events);
    }

    /// Called when the server has sent `events` events in total: stops the session if the limit is reached.
    pub(super) fn limit(&mut self, events: u64) {
        self.stop_wanted |= self.options.events_limit.is_some_and(|limit| events >= limit.get());
    }

    /// The limits for messages without a checksum.
    pub(super) fn legacy_limits(&self) -> Limits {
        Limits { max_jump: MAX_JUMP, ..self.batch_limits() }
    }

    /// The limits for messages with a checksum.
    pub(super) fn batch_limits(&self) -> Limits {
        let Options { max_held, gap_timeout, .. } = self.options;
        Limits { messages: max_held, bytes: HELD_BYTES, gap_timeout, max_jump: u64::MAX }
    }
}
