//! START and ACCEPT: the handshake with a new client, and with the current client again.

use super::{Dispatcher, Session};
use crate::udp::session::offer::Offer;
use std::net::SocketAddr;
use std::time::Instant;
use tracepoint_wire::udp::batch::CHALLENGE_SIZE;
use tracepoint_wire::udp::legacy::MARK_SIZE;
use tracepoint_wire::udp::{Accept, Challenge, Mark, MarkKind};

impl Dispatcher {
    pub(super) fn start(&mut self, from: SocketAddr, now: Instant) {
        if self.validator.is_trusted(from) {
            self.open_legacy(from, now);
        } else if !self.offers() {
            self.counters.refused.add(1);
        } else if self.validator.credit(from, 1, MARK_SIZE) {
            let offer = Some(self.validator.nonce(from, now));
            let seq = self.number(MARK_SIZE);
            self.answer(&Mark { kind: MarkKind::SessionBegin, offer }.encode(seq), from);
        }
    }

    pub(super) fn start_again(&mut self, from: SocketAddr, now: Instant) {
        let nonce = (self.validator.draw() & 0xffff) as u16;
        let (session, mut context) = self.parts(now);
        if let Some(Session::Batch(batches)) = session {
            // While an offer is valid, no new one is made, so that guesses at its nonce are counted.
            let offer = batches.offered_again.filter(|offer| !offer.is_over(now));
            let mut offer = offer.unwrap_or(Offer::new(nonce, now));
            let mark = Mark { kind: MarkKind::SessionBegin, offer: Some(offer.nonce()) };
            if offer.is_due(now) && batches.queue_message(&mut context, |seq| mark.encode(seq)) {
                offer.made(now);
            }
            batches.offered_again = Some(offer);
        } else {
            self.restart(from, now);
        }
    }

    /// Handles another START of a client of the legacy layout, which may have received nothing yet. If it accepts the offer, messages sent so far
    /// count as sent in this session.
    fn restart(&mut self, from: SocketAddr, now: Instant) {
        let before = match &self.session {
            Some(Session::Legacy(legacy)) => (legacy.sent, legacy.first),
            _ => (0, false),
        };
        self.close(now);
        self.open_legacy(from, now);
        if let Some(Session::Legacy(legacy)) = &mut self.session {
            (legacy.sent, legacy.first) = before;
            self.earlier -= legacy.sent;
        }
    }

    pub(super) fn accept(&mut self, accept: Accept, from: SocketAddr, now: Instant) {
        // A trusted address is served from its START on: without a session it has no offer.
        if self.validator.is_trusted(from) || !self.validator.is_nonce(from, accept.nonce, now) || !self.offers() {
            self.counters.ignored.add(1);
        } else if self.validator.is_token(from, accept.token, now) {
            self.close(now);
            if let Some(outbox) = self.open(from) {
                self.counters.session();
                self.open_batches(outbox, accept, 0, false, now);
            }
        } else {
            let token = self.validator.token(from, now);
            let seq = self.number(CHALLENGE_SIZE);
            self.answer(&Challenge { token }.encode(seq), from);
        }
    }

    pub(super) fn accept_again(&mut self, accept: Accept, from: SocketAddr, now: Instant) {
        let proven = self.validator.is_trusted(from) || self.validator.is_token(from, accept.token, now);
        let challenge = Challenge { token: self.validator.token(from, now) };
        let taken = match &mut self.session {
            Some(Session::Legacy(legacy)) => legacy.takes_offer(accept, now),
            Some(Session::Batch(batches)) => batches.takes_offer(accept, now),
            None => false,
        };
        let (session, mut context) = self.parts(now);
        match session {
            Some(Session::Legacy(legacy)) if taken => {
                legacy.requeue(&context);
                if let Some(Session::Legacy(legacy)) = self.session.take() {
                    self.open_batches(legacy.outbox, accept, legacy.sent, legacy.first, now);
                }
            }
            Some(Session::Batch(batches)) if taken && proven => {
                let (legacy, first) = batches.unanswered();
                self.close(now);
                if let Some(outbox) = self.open(from) {
                    self.counters.session();
                    self.earlier -= legacy;
                    self.open_batches(outbox, accept, legacy, first, now);
                }
            }
            Some(Session::Batch(batches)) if taken => {
                batches.queue_message(&mut context, |seq| challenge.encode(seq));
            }
            Some(Session::Batch(batches)) => batches.accepted_again(accept, now),
            _ => self.counters.ignored.add(1),
        }
    }
}
