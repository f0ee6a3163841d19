//! A session in the legacy layout.
//!
//! Losses show only as gaps in `seq`, which counts messages. The layout has no keep-alive and no checksum.

use super::Transition;
use super::legacy_order::{LegacyMessage, LegacyOrder};
use super::retry::Retry;
use super::session_core::SessionCore;
use crate::udp::order::Delivery;
use crate::udp::report::{Layout, LossReport, Report, SessionEnd};
use std::time::Duration;
use tracepoint_wire::udp::{FromServer, MarkKind, ToClient, ToServer};

/// The interval of STOP.
const STOP_EVERY: Duration = Duration::from_millis(100);
/// How long STOP is repeated.
const STOP_FOR: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct LegacySession {
    order: LegacyOrder,
    begun: bool,
    heard: Duration,
    stop: Option<Retry>,
}

impl LegacySession {
    pub(super) fn new(mut order: LegacyOrder, now: Duration) -> Self {
        order.messages.open();
        Self { order, begun: false, heard: now, stop: None }
    }

    pub(super) fn receive(
        &mut self,
        core: &mut SessionCore,
        message: &FromServer<'_>,
        now: Duration,
    ) -> Option<Transition> {
        if let (ToClient::Welcome(welcome), Some(session), false) =
            (&message.message, message.session, core.options.legacy)
        {
            // The late answer to an offer that has timed out.
            self.flush(core, now);
            return Some(Transition::Batch { session, seq: message.seq, welcome: *welcome });
        }
        self.heard = now;
        self.order.put(core, message, now);
        self.advance(core, now)
    }

    /// Delivers the messages that are due.
    fn advance(&mut self, core: &mut SessionCore, now: Duration) -> Option<Transition> {
        while let Some(turn) = self.order.messages.next(now) {
            if !self.begun {
                self.begin(core, &turn);
            }
            match turn {
                Delivery::Gap { first, count } => core.lose(LossReport::Messages { first: first as u32, count }),
                Delivery::Message(_, LegacyMessage::Event(event)) => {
                    core.report(Report::Event(event));
                    core.deliver(1);
                }
                Delivery::Message(_, LegacyMessage::Mark(MarkKind::SessionBegin)) => {}
                Delivery::Message(_, LegacyMessage::Mark(MarkKind::TraceBegin)) => core.report(Report::TraceBegin),
                Delivery::Message(_, LegacyMessage::Mark(MarkKind::TraceEnd)) => core.report(Report::TraceEnd),
                Delivery::Message(_, LegacyMessage::Mark(MarkKind::SessionEnd)) => {
                    core.report(Report::SessionEnd);
                    return Some(Transition::Over(SessionEnd::Ended));
                }
            }
        }
        None
    }

    fn begin(&mut self, core: &mut SessionCore, first: &Delivery<LegacyMessage>) {
        self.begun = true;
        core.report(Report::SessionBegin(Layout::Legacy));
        if !matches!(first, Delivery::Message(_, LegacyMessage::Mark(MarkKind::SessionBegin))) {
            core.lose(LossReport::Beginning);
        }
    }

    pub(super) fn wake(&mut self, core: &mut SessionCore, now: Duration) -> Option<Transition> {
        if let Some(next) = self.advance(core, now) {
            return Some(next);
        }
        if now >= self.heard.saturating_add(core.options.idle) {
            core.stop_wanted = true;
        }
        if !core.stop_wanted {
            return None;
        }
        let first = self.stop.is_none();
        let stop = self.stop.get_or_insert_with(|| Retry::new(now, STOP_EVERY));
        if now >= stop.since() + STOP_FOR {
            let ending = self.give_up(core, SessionEnd::Unconfirmed);
            return Some(Transition::Over(ending));
        }
        if stop.due(now) {
            core.send(&ToServer::Stop);
        }
        if first {
            core.report(Report::StopSent);
        }
        None
    }

    /// Delivers all messages, and reports the missing ones.
    fn flush(&mut self, core: &mut SessionCore, now: Duration) -> Option<Transition> {
        self.order.messages.close();
        self.advance(core, now)
    }

    /// Delivers all messages, and returns how the session ended.
    pub(super) fn give_up(&mut self, core: &mut SessionCore, ending: SessionEnd) -> SessionEnd {
        match self.flush(core, self.heard) {
            Some(Transition::Over(ended)) => ended,
            _ => ending,
        }
    }

    pub(super) fn deadline(&self, core: &SessionCore) -> Duration {
        let stop = match &self.stop {
            Some(stop) => stop.next().min(stop.since() + STOP_FOR),
            None if core.stop_wanted => Duration::ZERO,
            None => self.heard.saturating_add(core.options.idle),
        };
        self.order.messages.deadline().map_or(stop, |turn| turn.min(stop))
    }
}
