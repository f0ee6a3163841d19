//! The legacy layout: marks, and one event per message.
//!
//! ```text
//!   OFFERED ──100 ms──▶ SERVING ──STOP, idle, too long──▶ over
//!                          └────── trace at its end ────▶ over
//! ```

use super::offer::Offer;
use super::{Context, NextStep, earlier};
use crate::udp::event_merge::EventMerge;
use crate::udp::losses::LossReason;
use crate::udp::outbox::{FlushResult, Outbox};
use crate::udp::rate_limit::RateLimit;
use std::time::{Duration, Instant};
use tracepoint_wire::udp::legacy::{LONGEST_CONTENT, MARK_SIZE};
use tracepoint_wire::udp::{Accept, LegacyPacket, Mark, MarkKind};

/// Time in which a client may accept the offer, before events are sent.
const OFFER: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(in crate::udp) struct LegacySession {
    pub(in crate::udp) outbox: Outbox,
    pub(in crate::udp) sent: u64,
    /// True once it has sent the mark of the beginning of the trace.
    pub(in crate::udp) first: bool,
    offer: Option<Offer>,
    serves_from: Option<Instant>,
    events: EventMerge,
    rate_limit: RateLimit,
    begun: Instant,
    active: Instant,
    over: Option<bool>,
}

impl LegacySession {
    /// Begins a session. With a nonce, the batch layout is offered.
    pub(in crate::udp) fn begin(
        outbox: Outbox,
        nonce: Option<u16>,
        rate: Option<u64>,
        context: &mut Context<'_>,
    ) -> Self {
        let now = context.now;
        let mut session = Self {
            outbox,
            sent: 0,
            first: false,
            offer: nonce.map(|nonce| Offer::new(nonce, now)),
            serves_from: Some(if nonce.is_some() { now + OFFER } else { now }),
            events: EventMerge::default(),
            rate_limit: RateLimit::new(rate, Some(context.options.legacy_pace), now),
            begun: now,
            active: now,
            over: None,
        };
        session.mark(Mark { kind: MarkKind::SessionBegin, offer: nonce }, context);
        session
    }

    /// Returns whether this message accepts the offer with which the session began.
    pub(in crate::udp) fn takes_offer(&mut self, accept: Accept, now: Instant) -> bool {
        self.offer.as_mut().is_some_and(|offer| offer.is_taken_by(accept.nonce, now))
    }

    pub(in crate::udp) const fn is_limited(&self) -> bool {
        self.rate_limit.is_limited()
    }

    /// Returns the remaining events to the queue.
    pub(in crate::udp) fn requeue(&mut self, context: &Context<'_>) {
        self.events.requeue(context.queue);
    }

    /// Handles STOP of the client.
    pub(in crate::udp) fn stop(&mut self, context: &mut Context<'_>) {
        if self.over.is_none() {
            self.mark(Mark::new(MarkKind::SessionEnd), context);
            self.over = Some(false);
        }
    }

    /// Ends the session because the server ends.
    pub(in crate::udp) fn send_end(&mut self, context: &mut Context<'_>) {
        self.stop(context);
        // Messages that the socket does not accept now are lost.
        self.outbox.flush();
    }

    fn mark(&mut self, mark: Mark, context: &mut Context<'_>) {
        if self.outbox.room().is_none() && self.outbox.flush() != FlushResult::All {
            // The socket accepts nothing: the mark is lost, as it might be in transit.
            return;
        }
        if let Some(room) = self.outbox.room() {
            room.extend_from_slice(&mark.encode(context.number(MARK_SIZE)));
            self.rate_limit.spend(self.outbox.add());
        }
    }

    /// Sends as much as possible without waiting.
    pub(in crate::udp) fn pump(&mut self, context: &mut Context<'_>) -> NextStep {
        loop {
            match self.outbox.flush() {
                FlushResult::All => {}
                FlushResult::Blocked => {
                    let deadline = self.deadline(context);
                    if deadline.is_some_and(|deadline| context.now >= deadline) {
                        // SESSION_END is lost, as it might be in transit.
                        return NextStep::Over { trace: false };
                    }
                    return NextStep::Blocked(deadline);
                }
                FlushResult::Gone => return NextStep::Over { trace: false },
            }
            if let Some(trace) = self.over {
                return NextStep::Over { trace };
            }
            if let Some(time) = self.serves_from {
                if context.now < time {
                    return NextStep::At(Some(time));
                }
                self.serves_from = None;
                if !std::mem::replace(context.read, true) {
                    self.first = true;
                    self.mark(Mark::new(MarkKind::TraceBegin), context);
                }
            }
            if self.deadline(context).is_some_and(|deadline| context.now >= deadline) {
                self.stop(context);
                continue;
            }
            if let Some(next) = self.fill(context) {
                return next;
            }
        }
    }

    /// Fills the outbox. Returns `None` if there is something to flush.
    fn fill(&mut self, context: &mut Context<'_>) -> Option<NextStep> {
        while self.outbox.room().is_some() {
            let Some((time_ns, bytes)) = self.events.peek(context.queue, context.options.content) else {
                return self.nothing_to_send(context);
            };
            if bytes.len() > LONGEST_CONTENT {
                self.events.pass(context.queue, Some(LossReason::TooLarge));
                continue;
            }
            if !self.rate_limit.may_send(context.now) {
                let at = earlier(Some(context.now + self.rate_limit.wait()), self.deadline(context));
                return if self.outbox.is_empty() { Some(NextStep::At(at)) } else { None };
            }
            let Some(room) = self.outbox.room() else { break };
            let seq = *context.seq;
            if (LegacyPacket { time_ns, content: bytes }).encode(seq, room).is_ok() {
                let size = self.outbox.add();
                context.number(size);
                self.rate_limit.spend(size);
                self.sent += 1;
                context.counters.legacy.add(1);
            }
            self.events.pass(context.queue, None);
            self.active = context.now;
        }
        None
    }

    fn nothing_to_send(&mut self, context: &mut Context<'_>) -> Option<NextStep> {
        if !self.outbox.is_empty() {
            return None;
        }
        let ended = {
            let state = context.queue.lock();
            state.ended && state.queued() == 0
        };
        if ended {
            self.mark(Mark::new(MarkKind::TraceEnd), context);
            self.mark(Mark::new(MarkKind::SessionEnd), context);
            self.over = Some(true);
            return None;
        }
        Some(NextStep::At(self.deadline(context)))
    }

    /// Returns when the session ends if nothing is sent until then.
    fn deadline(&self, context: &Context<'_>) -> Option<Instant> {
        let idle = context.options.idle.and_then(|idle| self.active.checked_add(idle));
        let longest = context.options.max_session.and_then(|longest| self.begun.checked_add(longest));
        earlier(idle, longest)
    }
}
