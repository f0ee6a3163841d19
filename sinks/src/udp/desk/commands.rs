//! What clients ask for, by the state in which they do.

use super::{Desk, Session};
use std::net::SocketAddr;
use std::time::Instant;
use tracepoint_reader::udp::wire::batch::CHALLENGE_SIZE;
use tracepoint_reader::udp::wire::stock::MARK_SIZE;
use tracepoint_reader::udp::wire::{Accept, Challenge, Mark, MarkKind, ToServer};

impl Desk {
    /// Does what a client asks for.
    pub(super) fn datagram(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) {
        self.counters.received();
        let Ok(message) = ToServer::decode(bytes) else {
            self.counters.ignored();
            return;
        };
        let client = self.session.as_ref().map(|session| session.outbox().client());
        if self.over {
            self.counters.refused();
            return;
        }
        match (message, client) {
            (_, Some(client)) if client != from => self.counters.ignored(),
            (ToServer::Start, Some(_)) => self.start_again(from, now),
            (ToServer::Start, None) => self.start(from, now),
            (ToServer::Accept(accept), Some(_)) => self.accept_again(accept, from, now),
            (ToServer::Accept(accept), None) => self.accept(accept, from, now),
            (message, _) => self.word(message, now),
        }
    }

    fn start(&mut self, from: SocketAddr, now: Instant) {
        if self.proof.is_trusted(from) {
            self.open_stock(from, now);
        } else if !self.offers() {
            self.counters.refused();
        } else if self.proof.earn(from, 1, MARK_SIZE) {
            let offer = Some(self.proof.nonce(from, now));
            let seq = self.number(MARK_SIZE);
            let _ = self.listener.send_to(&Mark { kind: MarkKind::SessionBegin, offer }.encode(seq), from);
        }
    }

    fn start_again(&mut self, from: SocketAddr, now: Instant) {
        let nonce = (self.proof.draw() & 0xffff) as u16;
        let (session, mut context) = self.parts(now);
        if let Some(Session::Batch(batches)) = session {
            let nonce = *batches.offered_again.get_or_insert(nonce);
            let mark = Mark { kind: MarkKind::SessionBegin, offer: Some(nonce) };
            batches.say(&mark.encode(context.number(MARK_SIZE)));
        } else {
            self.restart(from, now);
        }
    }

    /// A client in the stock layout begins anew, perhaps because it has seen nothing yet: should it take the offer, what it was sent so
    /// far is part of what came before.
    fn restart(&mut self, from: SocketAddr, now: Instant) {
        let before = match &self.session {
            Some(Session::Stock(stock)) => (stock.sent, stock.first),
            _ => (0, false),
        };
        self.close(now);
        self.open_stock(from, now);
        if let Some(Session::Stock(stock)) = &mut self.session {
            (stock.sent, stock.first) = before;
            self.earlier -= stock.sent;
        }
    }

    fn accept(&mut self, accept: Accept, from: SocketAddr, now: Instant) {
        // A trusted address is served from its START on; without a session there is no offer to take.
        if self.proof.is_trusted(from) || !self.proof.is_nonce(from, accept.nonce, now) || !self.offers() {
            self.counters.ignored();
        } else if self.proof.is_token(from, accept.token, now) {
            if let Some(outbox) = self.open(from) {
                self.counters.session();
                self.open_batches(outbox, accept, 0, false, now);
            }
        } else {
            let token = self.proof.token(from, now);
            let seq = self.number(CHALLENGE_SIZE);
            let _ = self.listener.send_to(&Challenge { token }.encode(seq), from);
        }
    }

    fn accept_again(&mut self, accept: Accept, from: SocketAddr, now: Instant) {
        let proven = self.proof.is_trusted(from) || self.proof.is_token(from, accept.token, now);
        let challenge = Challenge { token: self.proof.token(from, now) };
        let (session, mut context) = self.parts(now);
        match session {
            Some(Session::Stock(stock)) if stock.has_offered(accept.nonce) => {
                stock.give_back(&context);
                if let Some(Session::Stock(stock)) = self.session.take() {
                    self.open_batches(stock.outbox, accept, stock.sent, stock.first, now);
                }
            }
            Some(Session::Batch(batches)) if batches.offered_again == Some(accept.nonce) && proven => {
                self.close(now);
                if let Some(outbox) = self.open(from) {
                    self.counters.session();
                    self.open_batches(outbox, accept, 0, false, now);
                }
            }
            Some(Session::Batch(batches)) if batches.offered_again == Some(accept.nonce) => {
                batches.say(&challenge.encode(context.number(CHALLENGE_SIZE)));
            }
            Some(Session::Batch(batches)) => batches.accepted_again(accept, now),
            _ => self.counters.ignored(),
        }
    }

    /// STOP, ACK, LEAVE from the client, if there is one.
    fn word(&mut self, message: ToServer, now: Instant) {
        let (session, mut context) = self.parts(now);
        match (message, session) {
            (ToServer::Stop, Some(Session::Stock(stock))) => stock.stop(&mut context),
            (ToServer::Ack(ack), Some(Session::Batch(batches))) if ack.session == batches.id() => {
                batches.acknowledge(ack, &context);
            }
            (ToServer::Leave(number), Some(Session::Batch(batches))) if number == batches.id() => {
                batches.leave(now);
            }
            _ => self.counters.ignored(),
        }
    }
}
