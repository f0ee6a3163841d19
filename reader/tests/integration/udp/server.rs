//! A server written only from the tables of `docs/format-udp.md`, without a socket: the reference for the client.
//!
//! Its events are numbered from 0, and each carries its number, so that a reader can determine which are missing.

use super::link::Random;
use super::trace;
use std::collections::VecDeque;
use std::time::Duration;
use tracepoint_wire::udp::{
    Accept, Ack, Batch, Challenge, End, LegacyPacket, Losses, Mark, MarkKind, Ping, Text, TextKind, ToServer, Welcome,
};

const HOLD: Duration = Duration::from_millis(100);
const REPEAT: Duration = Duration::from_millis(100);
const PING_AFTER: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);
const ENDING: Duration = Duration::from_secs(3);
const STUCK: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// True if the client's address is trusted.
    pub trusted: bool,
    /// True if the batch layout is offered.
    pub offers: bool,
    /// The total number of events.
    pub events: u64,
    /// The number of events made per millisecond.
    pub rate: u64,
    /// True if the trace ends with the last event.
    pub ends: bool,
    /// After this number of events, the metadata grows by more than one piece, which later events need; 0: never.
    pub grows: u64,
}

#[derive(Debug)]
struct Session {
    id: u32,
    accept: Accept,
    earlier: u64,
    legacy: u64,
    batches: u32,
    events: u64,
    welcomed: Duration,
    acknowledged: bool,
    ack: Ack,
    heard: Duration,
    sent_last: Duration,
    text_at: Duration,
    opened_until: u32,
    ending: Option<(Duration, Duration)>,
    leaving: bool,
}

#[derive(Debug)]
enum State {
    Idle,
    Offered(Duration),
    Legacy,
    Batch(Box<Session>),
    Over,
}

#[derive(Debug)]
pub struct Server {
    plan: Plan,
    random: Random,
    state: State,
    seq: u32,
    nonce: u16,
    token: [u8; 16],
    metadata: Vec<u8>,
    /// The number of times that it has grown.
    grown: u16,
    account: Vec<u8>,
    out: VecDeque<Vec<u8>>,
    /// The number of sent events.
    pub sent: u64,
    /// How many of them were sent in the legacy layout, in the current session.
    legacy: u64,
    /// The number of packets and of events of each stream.
    streams: [(u64, u64); 2],
    /// The number of the first event that was not sent in the legacy layout, for each session that was welcomed.
    pub bases: Vec<(u64, u64)>,
    /// For each message in the legacy layout, its number, and true if it was an event.
    pub legacy_log: Vec<(u32, bool)>,
    read_before: bool,
    pub sessions: u64,
}

impl Server {
    pub fn new(seed: u64, plan: Plan) -> Self {
        let mut random = Random::new(seed);
        Self {
            plan,
            state: State::Idle,
            seq: random.next() as u32,
            nonce: random.next() as u16,
            token: [random.next() as u8 | 1; 16],
            metadata: trace::METADATA.as_bytes().to_vec(),
            grown: 0,
            account: Vec::new(),
            random,
            out: VecDeque::new(),
            sent: 0,
            legacy: 0,
            streams: [(0, 0); 2],
            bases: Vec::new(),
            legacy_log: Vec::new(),
            read_before: false,
            sessions: 0,
        }
    }

    fn next_seq(&mut self) -> u32 {
        let seq = self.seq;
        self.seq = seq.wrapping_add(1);
        seq
    }

    fn mark(&mut self, kind: MarkKind) {
        let seq = self.next_seq();
        let offers = self.plan.offers && kind == MarkKind::SessionBegin;
        let mark = Mark { offer: offers.then_some(self.nonce), ..Mark::new(kind) };
        self.out.push_back(mark.encode(seq).to_vec());
        self.legacy_log.push((seq, false));
    }

    pub fn receive(&mut self, datagram: &[u8], now: Duration) {
        let Ok(message) = ToServer::decode(datagram) else { return };
        match message {
            ToServer::Start => self.start(now),
            ToServer::Stop => {
                if matches!(self.state, State::Offered(_) | State::Legacy) {
                    self.mark(MarkKind::SessionEnd);
                    self.state = State::Idle;
                }
            }
            ToServer::Accept(accept) => self.accept(accept, now),
            ToServer::Ack(ack) => self.acknowledge(ack, now),
            ToServer::Leave(id) => {
                if let State::Batch(session) = &mut self.state
                    && session.id == id
                {
                    session.heard = now;
                    session.leaving = true;
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, now: Duration) {
        match &self.state {
            State::Over => {}
            State::Batch(session) if self.plan.trusted && now >= session.heard + PATIENCE => self.offer(now),
            State::Batch(_) => {
                self.nonce = self.nonce.wrapping_add(1);
                self.mark(MarkKind::SessionBegin);
            }
            _ if self.plan.trusted => self.offer(now),
            _ => self.mark(MarkKind::SessionBegin),
        }
    }

    fn offer(&mut self, now: Duration) {
        self.nonce = self.nonce.wrapping_add(1);
        if !matches!(self.state, State::Offered(_) | State::Legacy) {
            self.legacy = 0;
        }
        self.mark(MarkKind::SessionBegin);
        self.state = State::Offered(now);
        self.sessions += 1;
    }

    fn accept(&mut self, accept: Accept, now: Duration) {
        if accept.nonce != self.nonce || !self.plan.offers {
            return;
        }
        match &mut self.state {
            State::Over => return,
            State::Batch(session) if session.accept.nonce == accept.nonce => {
                if !session.acknowledged {
                    session.welcomed = Duration::ZERO;
                }
                return;
            }
            State::Idle if self.plan.trusted => return,
            _ => {}
        }
        if !self.plan.trusted && accept.token != self.token {
            let seq = self.next_seq();
            self.out.push_back(Challenge { token: self.token }.encode(seq).to_vec());
            return;
        }
        let earlier = self.sent - self.legacy;
        self.bases.push((earlier, self.sent));
        let id = self.random.next() as u32 | 1;
        self.state = State::Batch(Box::new(Session {
            id,
            accept,
            earlier,
            legacy: std::mem::take(&mut self.legacy),
            batches: 0,
            events: 0,
            welcomed: Duration::ZERO,
            acknowledged: false,
            ack: Ack::default(),
            heard: now,
            sent_last: now,
            text_at: Duration::ZERO,
            opened_until: self.seq,
            ending: None,
            leaving: false,
        }));
    }

    fn acknowledge(&mut self, ack: Ack, now: Duration) {
        let State::Batch(session) = &mut self.state else { return };
        if ack.session != session.id {
            return;
        }
        session.heard = now;
        session.acknowledged = true;
        session.ack.metadata = session.ack.metadata.max(ack.metadata);
        session.ack.account = session.ack.account.max(ack.account);
        session.opened_until = ack.seq;
        if ack.ended && session.ending.is_some() {
            self.close();
        }
    }

    fn close(&mut self) {
        self.read_before = true;
        let over = self.plan.ends && self.sent == self.plan.events;
        self.state = if over { State::Over } else { State::Idle };
    }

    /// The number of events made by now.
    fn made(&self, now: Duration) -> u64 {
        self.plan.events.min(self.plan.rate * now.as_millis() as u64)
    }

    pub fn wake(&mut self, now: Duration) {
        while self.sent.checked_div(self.plan.grows).is_some_and(|times| u64::from(self.grown) < times) {
            self.grown += 1;
            self.metadata.extend_from_slice(trace::declaration(self.grown).as_bytes());
        }
        match &self.state {
            State::Offered(since) if now >= *since + HOLD && self.plan.trusted => {
                if !self.read_before {
                    self.mark(MarkKind::TraceBegin);
                    self.read_before = true;
                }
                self.state = State::Legacy;
            }
            State::Legacy => self.serve_legacy(now),
            State::Batch(_) => self.serve_batch(now),
            _ => {}
        }
    }

    fn serve_legacy(&mut self, now: Duration) {
        while self.sent < self.made(now) {
            let seq = self.next_seq();
            let content = format!("test:numbered: {{ n = {} }}", self.sent);
            let packet = LegacyPacket { time_ns: trace::time_of(self.sent), content: content.as_bytes() };
            let mut out = Vec::new();
            packet.encode(seq, &mut out).unwrap();
            self.out.push_back(out);
            self.legacy_log.push((seq, true));
            self.sent += 1;
            self.legacy += 1;
        }
        if self.sent == self.plan.events && self.plan.ends {
            self.mark(MarkKind::TraceEnd);
            self.mark(MarkKind::SessionEnd);
            self.state = State::Over;
        }
    }

    fn serve_batch(&mut self, now: Duration) {
        let State::Batch(mut session) = std::mem::replace(&mut self.state, State::Idle) else { return };
        if now >= session.heard + PATIENCE {
            return self.close();
        }
        if !session.acknowledged {
            if now >= session.welcomed + REPEAT {
                session.welcomed = now;
                let welcome = Welcome {
                    first: !self.read_before,
                    mtu: session.accept.mtu,
                    timeout_ms: PATIENCE.as_millis() as u32,
                    uuid: trace::UUID,
                    earlier: session.earlier,
                };
                let seq = self.next_seq();
                self.out.push_back(welcome.encode(seq, session.id).to_vec());
            }
        } else if (session.ack.metadata as usize) < self.metadata.len() {
            self.text(&mut session, TextKind::Metadata, now);
        } else {
            self.batches(&mut session, now);
            if session.leaving || self.plan.ends && self.sent == self.plan.events {
                self.end(&mut session, now);
                if session.ending.is_some_and(|(since, _)| now >= since + ENDING) {
                    return self.close();
                }
            } else if now >= session.sent_last + PING_AFTER {
                session.sent_last = now;
                let ping = Ping { events: session.events, batches: session.batches };
                let seq = self.next_seq();
                self.out.push_back(ping.encode(seq, session.id).to_vec());
            }
        }
        self.state = State::Batch(session);
    }

    fn text(&mut self, session: &mut Session, kind: TextKind, now: Duration) {
        if now < session.text_at + REPEAT {
            return;
        }
        session.text_at = now;
        let (text, from) = match kind {
            TextKind::Metadata => (&self.metadata, session.ack.metadata),
            TextKind::Account => (&self.account, session.ack.account),
        };
        let (text, piece) = (text.clone(), usize::from(session.accept.mtu) - 28);
        for (index, bytes) in text[from as usize..].chunks(piece).enumerate() {
            let mut out = Vec::new();
            let (offset, total) = (from + (index * piece) as u32, text.len() as u32);
            let seq = self.next_seq();
            Text { kind, offset, total, bytes }.encode(seq, session.id, &mut out);
            self.out.push_back(out);
        }
    }

    fn batches(&mut self, session: &mut Session, now: Duration) {
        let window = u32::from(session.accept.window);
        if window > 0 && now >= session.sent_last + STUCK {
            session.opened_until = self.seq;
        }
        let made = self.made(now);
        while self.sent < made && !session.leaving {
            if window > 0 && self.seq.wrapping_sub(session.opened_until).cast_signed() >= window.cast_signed() {
                return;
            }
            session.sent_last = now;
            let before = session.events;
            let mut packets = Vec::new();
            for _ in 0..=self.random.below(2) {
                let count = (self.random.below(30) + 1).min(made - self.sent);
                let stream = self.random.below(2) as usize;
                if count > 0 {
                    let (number, before) = &mut self.streams[stream];
                    let events = self.sent..self.sent + count;
                    trace::packet(&mut packets, stream as u64, *number, *before, self.grown, events);
                    *number += 1;
                    *before += count;
                    self.sent += count;
                    session.events += count;
                }
            }
            let batch = Batch {
                events_before: before,
                events: (session.events - before) as u32,
                number: session.batches,
                packets: &packets,
            };
            let mut out = Vec::new();
            let seq = self.next_seq();
            batch.encode(seq, session.id, &mut out);
            session.batches += 1;
            self.out.push_back(out);
        }
    }

    fn end(&mut self, session: &mut Session, now: Duration) {
        let trace = self.plan.ends && self.sent == self.plan.events;
        if trace && self.account.is_empty() {
            self.account = trace::account(self.streams.map(|(_, events)| events));
        }
        if trace && (session.ack.account as usize) < self.account.len() && session.ending.is_none() {
            return self.text(session, TextKind::Account, now);
        }
        let (since, at) = session.ending.unwrap_or((now, Duration::ZERO));
        session.ending = Some((since, at));
        if now < at + REPEAT {
            return;
        }
        session.ending = Some((since, now));
        let end = End {
            trace,
            batches: session.batches,
            events: session.events,
            legacy: session.legacy,
            metadata: self.metadata.len() as u32,
            account: if trace { self.account.len() as u32 } else { 0 },
            lost: Losses::default(),
        };
        let seq = self.next_seq();
        self.out.push_back(end.encode(seq, session.id).to_vec());
    }

    pub fn outgoing(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// True if no client is served, and none will be.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle | State::Over)
    }
}
