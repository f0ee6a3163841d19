//! A session in the batch layout: delivered and lost events add up to the sent events.

use super::Transition;
use super::retry::Retry;
use super::session_core::SessionCore;
use super::text_assembly::TextAssembly;
use super::totals::Totals;
use crate::udp::order::{Arrival, Delivery, Order};
use crate::udp::report::{EventBatch, Layout, LossReport, Report, SessionEnd};
use std::time::Duration;
use tracepoint_wire::udp::{Ack, Batch, End, FromServer, TextKind, ToClient, ToServer, Welcome};

/// The delay before an acknowledgement.
const ACK_AFTER: Duration = Duration::from_millis(20);
/// The interval of acknowledgements if nothing arrives.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// The silence after which the server times out.
const SILENCE: Duration = Duration::from_secs(5);
/// The interval of LEAVE, and for how long it is repeated.
const LEAVE_EVERY: Duration = Duration::from_millis(100);
const LEAVE_FOR: Duration = Duration::from_secs(10);
/// How long the client answers repetitions of END.
const LINGER: Duration = Duration::from_millis(500);
/// The longest wait for messages that were sent before END. It is shorter than SILENCE, which would end the session first.
const LONGEST_LINGER: Duration = Duration::from_secs(4);

fn linger(core: &SessionCore) -> Duration {
    core.options.gap_timeout.saturating_mul(2).clamp(LINGER, LONGEST_LINGER)
}

#[derive(Debug)]
pub(super) struct BatchSession {
    session: u32,
    welcome: Welcome,
    welcome_seq: u32,
    /// The latest `seq`.
    seq: u32,
    order: Order<EventBatch>,
    /// Number of events that were delivered or reported as lost.
    accounted: u64,
    /// Number of events that arrived, including late ones.
    received: u64,
    totals: Totals,
    metadata: TextAssembly,
    account: TextAssembly,
    end: Option<(End, Duration)>,
    /// True once the end was reported.
    concluded: bool,
    heard: Duration,
    acked: Duration,
    /// Number of messages since the last acknowledgement; then true if one of them needs an immediate answer.
    unacked: u32,
    urgent: bool,
    leave: Option<Retry>,
}

impl BatchSession {
    pub(super) fn new(core: &mut SessionCore, session: u32, seq: u32, welcome: Welcome, now: Duration) -> Self {
        core.report(Report::SessionBegin(Layout::Batch(welcome)));
        if welcome.first {
            core.report(Report::TraceBegin);
        }
        Self {
            session,
            welcome,
            welcome_seq: seq,
            seq,
            order: Order::new(0, core.batch_limits()),
            accounted: 0,
            received: 0,
            totals: Totals::default(),
            metadata: TextAssembly::default(),
            account: TextAssembly::default(),
            end: None,
            concluded: false,
            heard: now,
            acked: now,
            unacked: 1,
            urgent: true,
            leave: None,
        }
    }

    pub(super) fn receive(
        &mut self,
        core: &mut SessionCore,
        message: &FromServer<'_>,
        now: Duration,
    ) -> Option<Transition> {
        let later = |than: u32| message.seq.wrapping_sub(than).cast_signed() > 0;
        if message.session != Some(self.session) {
            return match (&message.message, message.session) {
                // Two ACCEPTs were under way, and the server has opened a session for each.
                (ToClient::Welcome(welcome), Some(session)) if later(self.welcome_seq) && !self.concluded => {
                    self.abandon(core, welcome);
                    Some(Transition::Batch { session, seq: message.seq, welcome: *welcome })
                }
                _ => {
                    core.counts.foreign += 1;
                    None
                }
            };
        }
        if later(self.seq) {
            self.seq = message.seq;
        }
        self.heard = now;
        self.unacked += 1;
        match &message.message {
            ToClient::Text(text) => {
                let joined = match text.kind {
                    TextKind::Metadata => &mut self.metadata,
                    TextKind::Account => &mut self.account,
                };
                joined.add(text);
                self.urgent = true;
                if let Some(fresh) = self.metadata.take() {
                    core.report(Report::Metadata(fresh));
                }
            }
            ToClient::Batch(batch) => self.batch(core, batch, now),
            ToClient::Ping(ping) => self.totals.learn(ping.batches, ping.events, now),
            ToClient::End(end) => {
                self.totals.learn(end.batches, end.events, now);
                self.end.get_or_insert((*end, now));
                self.urgent = true;
            }
            // A repeated WELCOME: the acknowledgement was lost.
            _ => self.urgent = true,
        }
        self.advance(core, now);
        None
    }

    fn batch(&mut self, core: &mut SessionCore, batch: &Batch<'_>, now: Duration) {
        let Batch { events_before, events, number, packets } = *batch;
        let kept = EventBatch { events_before, events, packets: packets.to_vec() };
        match self.order.put(number, kept, packets.len(), now) {
            Arrival::Taken { overtaken } => {
                self.received = self.received.saturating_add(u64::from(events));
                core.counts.reordered += u64::from(overtaken);
            }
            Arrival::Late => {
                self.received = self.received.saturating_add(u64::from(events));
                core.late(u64::from(events));
            }
            Arrival::Duplicate => core.counts.duplicates += 1,
            Arrival::Implausible | Arrival::Full => core.counts.foreign += 1,
        }
    }

    /// Delivers the batches that are due, and reports losses.
    fn advance(&mut self, core: &mut SessionCore, now: Duration) {
        while let Some(turn) = self.order.next(now) {
            let Delivery::Message(_, batch) = turn else { continue };
            if batch.events_before < self.accounted {
                // The count of a correct server never decreases.
                core.counts.foreign += 1;
                continue;
            }
            self.lost_up_to(core, batch.events_before);
            self.accounted = batch.events_before.saturating_add(u64::from(batch.events));
            core.deliver(u64::from(batch.events));
            core.report(Report::Batch(batch));
        }
        if self.lacks_tail() && now >= self.totals.since.saturating_add(core.options.gap_timeout) {
            self.lose_tail(core);
        }
    }

    fn lost_up_to(&mut self, core: &mut SessionCore, events: u64) {
        if events > self.accounted {
            core.lose(LossReport::Events(events - self.accounted));
            self.accounted = events;
            core.limit(events);
        }
    }

    /// True if the server has sent events after the last batch that arrived.
    fn lacks_tail(&self) -> bool {
        self.order.is_empty() && self.totals.events > self.accounted
    }

    /// Reports these events as lost. Their batches are late if they still arrive.
    fn lose_tail(&mut self, core: &mut SessionCore) {
        let next = self.order.next_number();
        let ahead = self.totals.batches.wrapping_sub(next as u32);
        if ahead.cast_signed() > 0 {
            self.order.skip_to(next + u64::from(ahead));
        }
        self.lost_up_to(core, self.totals.events);
    }

    pub(super) fn wake(&mut self, core: &mut SessionCore, now: Duration) -> Option<Transition> {
        self.advance(core, now);
        if self.finish(core, now) {
            return Some(Transition::Over(SessionEnd::Ended));
        }
        if now >= self.heard + SILENCE {
            let ending = if self.leave.is_some() { SessionEnd::Unconfirmed } else { SessionEnd::Silent };
            return Some(Transition::Over(self.give_up(core, ending)));
        }
        if core.stop_wanted && self.end.is_none() {
            let first = self.leave.is_none();
            let leave = self.leave.get_or_insert_with(|| Retry::new(now, LEAVE_EVERY));
            if now >= leave.since() + LEAVE_FOR {
                return Some(Transition::Over(self.give_up(core, SessionEnd::Unconfirmed)));
            }
            if leave.due(now) {
                core.send(&ToServer::Leave(self.session));
            }
            if first {
                core.report(Report::StopSent);
            }
        }
        if now >= self.ack_at(core) {
            self.acknowledge(core, now);
        }
        None
    }

    /// When the next acknowledgement is due.
    fn ack_at(&self, core: &SessionCore) -> Duration {
        let half = u32::from(core.options.window / 2);
        if self.urgent || half > 0 && self.unacked >= half {
            return Duration::ZERO;
        }
        if self.concluded {
            return Duration::MAX;
        }
        self.acked + if self.unacked > 0 { ACK_AFTER } else { ALIVE_EVERY }
    }

    fn acknowledge(&mut self, core: &mut SessionCore, now: Duration) {
        self.acked = now;
        self.unacked = 0;
        self.urgent = false;
        core.send(&ToServer::Ack(Ack {
            session: self.session,
            metadata: self.metadata.length(),
            account: self.account.length(),
            events: self.received,
            seq: self.seq,
            ended: self.end.is_some(),
        }));
    }

    /// After END: reports the end, and waits for repetitions of END. Returns true when that is over.
    fn finish(&mut self, core: &mut SessionCore, now: Duration) -> bool {
        let Some((end, since)) = self.end else { return false };
        let over = now >= since + linger(core);
        if over && !self.concluded {
            // No further wait for messages from before END.
            self.flush(core);
        }
        let described = self.metadata.length() >= end.metadata;
        let whole = described && self.account.length() >= end.account;
        if !self.concluded && self.order.is_empty() && !self.lacks_tail() && (whole || over) {
            self.concluded = true;
            self.conclude(core, &end);
        }
        over && self.concluded && !self.urgent
    }

    fn conclude(&mut self, core: &mut SessionCore, end: &End) {
        if end.legacy > 0 {
            core.lose(LossReport::BeforeOffer(end.legacy));
        }
        if end.lost.total() > 0 {
            core.lose(LossReport::Unsent(end.lost));
        }
        if self.metadata.length() < end.metadata {
            core.lose(LossReport::Metadata(end.metadata - self.metadata.length()));
        }
        let whole = self.account.length() >= end.account;
        if let Some(account) = self.account.take().filter(|_| whole) {
            core.report(Report::Account(account));
        }
        if end.trace {
            core.report(Report::TraceEnd);
        }
        core.report(Report::SessionEnd);
    }

    /// Delivers all batches, and reports the known losses.
    fn flush(&mut self, core: &mut SessionCore) {
        self.order.close();
        self.advance(core, self.heard);
        self.lose_tail(core);
    }

    pub(super) fn give_up(&mut self, core: &mut SessionCore, ending: SessionEnd) -> SessionEnd {
        if self.concluded {
            return SessionEnd::Ended;
        }
        self.flush(core);
        ending
    }

    /// The server has opened another session instead, where it reports how many events it sent in this one.
    fn abandon(&mut self, core: &mut SessionCore, welcome: &Welcome) {
        self.flush(core);
        let sent = welcome.earlier.saturating_sub(self.welcome.earlier);
        self.lost_up_to(core, sent);
    }

    pub(super) fn deadline(&self, core: &SessionCore) -> Duration {
        let mut next = self.ack_at(core).min(self.heard + SILENCE);
        if let Some(turn) = self.order.deadline() {
            next = next.min(turn);
        }
        if self.lacks_tail() {
            next = next.min(self.totals.since.saturating_add(core.options.gap_timeout));
        }
        if let Some((_, since)) = self.end {
            next = next.min(since + linger(core));
        } else if core.stop_wanted {
            next = next.min(self.leave.map_or(Duration::ZERO, |leave| leave.next()));
        }
        next
    }
}
