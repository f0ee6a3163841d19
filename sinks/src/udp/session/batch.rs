//! The batch layout: the metadata until it is acknowledged, batches, and the totals until they are acknowledged.
//!
//! ```text
//!   WELCOME until an ACK ─▶ metadata, batches ──LEAVE─────────────────────────────▶ END until an ACK, 3 s at most ─▶ over
//!                                  └── trace at its end ─▶ account until its ACK ─▶ END …
//! ```

mod ending;

use super::offer::Offer;
use super::texts::{RETRANSMIT, TextFlow};
use super::{Context, NextStep, earlier};
use crate::udp::outbox::{FlushResult, Outbox};
use crate::udp::rate_limit::RateLimit;
use crate::udp::split::DatagramSizes;
use std::ops::Range;
use std::time::{Duration, Instant};
use tracepoint_wire::udp::batch::{TEXT_HEADER, seal_batch};
use tracepoint_wire::udp::{Accept, Ack, Batch, Ping, Text, TextKind, Welcome};

/// Time without a message after which a PING is sent.
const SILENCE: Duration = Duration::from_millis(500);
/// Timeout of a closed window, after which sending continues even if nothing was acknowledged.
const STALL: Duration = Duration::from_millis(200);
/// Maximum size of a piece of text, in bytes.
const PIECE: u32 = 1200;

/// The parameters of a new session.
pub(in crate::udp) struct Opening {
    pub(in crate::udp) accept: Accept,
    pub(in crate::udp) session: u32,
    pub(in crate::udp) uuid: [u8; 16],
    pub(in crate::udp) first: bool,
    pub(in crate::udp) earlier: u64,
    /// Events sent by this session in the legacy layout.
    pub(in crate::udp) legacy_events: u64,
}

#[derive(Debug)]
pub(in crate::udp) struct BatchSession {
    pub(in crate::udp) outbox: Outbox,
    /// The offer made since the session began. Accepting it begins another session.
    pub(in crate::udp) offered_again: Option<Offer>,
    accept: Accept,
    session: u32,
    welcome: Welcome,
    legacy_events: u64,
    room: DatagramSizes,
    rate_limit: RateLimit,
    last_received: Instant,
    last_sent: Instant,
    acknowledged: bool,
    /// Set when an ICMP error has reported the client's port as closed, and nothing was received since. ICMP can be forged, so events wait until the
    /// client sends something or times out.
    refused: bool,
    welcome_at: Instant,
    /// The highest acknowledged message number, and when the window last moved.
    seen: u32,
    moved: Instant,
    metadata: TextFlow,
    account: TextFlow,
    events: u64,
    /// Number of events acknowledged by the client.
    delivered: u64,
    number: u32,
    ending: Option<EndState>,
}

#[derive(Clone, Copy, Debug)]
struct EndState {
    trace: bool,
    /// Number of acknowledged bytes of the texts, and when it last increased.
    texts: (u64, Instant),
    /// When END was first sent.
    since: Option<Instant>,
    next: Instant,
    acknowledged: bool,
}

impl BatchSession {
    pub(in crate::udp) fn begin(outbox: Outbox, opening: &Opening, context: &Context<'_>) -> Self {
        let (accept, now) = (opening.accept, context.now);
        let mtu = accept.mtu;
        let timeout_ms = u32::try_from(context.options.client_timeout.as_millis()).unwrap_or(u32::MAX);
        let welcome = Welcome { first: opening.first, mtu, timeout_ms, uuid: opening.uuid, earlier: opening.earlier };
        Self {
            outbox,
            offered_again: None,
            accept,
            session: opening.session,
            welcome,
            legacy_events: opening.legacy_events,
            room: DatagramSizes { mtu: usize::from(mtu), largest: usize::from(accept.largest) },
            rate_limit: RateLimit::new(context.options.rate, None, now),
            last_received: now,
            last_sent: now,
            acknowledged: false,
            refused: false,
            welcome_at: now,
            seen: context.seq.wrapping_sub(1),
            moved: now,
            metadata: TextFlow::new(now),
            account: TextFlow::new(now),
            events: 0,
            delivered: 0,
            number: 0,
            ending: None,
        }
    }

    /// Returns the number of events sent in both layouts.
    pub(in crate::udp) const fn sent(&self) -> u64 {
        self.events + self.legacy_events
    }

    pub(in crate::udp) const fn is_acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// If the client has acknowledged nothing, perhaps because no WELCOME has reached it, returns the number of events sent before in the legacy
    /// layout, and whether the client was to be notified that the trace begins. Both pass to the session that replaces this one.
    pub(in crate::udp) const fn unanswered(&self) -> (u64, bool) {
        if self.acknowledged { (0, false) } else { (self.legacy_events, self.welcome.first) }
    }

    pub(in crate::udp) const fn is_limited(&self) -> bool {
        self.rate_limit.is_limited()
    }

    pub(in crate::udp) const fn id(&self) -> u32 {
        self.session
    }

    /// Returns whether this message accepts the offer made since the session began.
    pub(in crate::udp) fn takes_offer(&mut self, accept: Accept, now: Instant) -> bool {
        // A retransmission is not a guess.
        let other = accept != self.accept;
        other && self.offered_again.as_mut().is_some_and(|offer| offer.is_taken_by(accept.nonce, now))
    }

    /// Handles a retransmission of the ACCEPT that began this session: its answer may be lost.
    pub(in crate::udp) fn accepted_again(&mut self, accept: Accept, now: Instant) {
        if accept == self.accept && !self.acknowledged {
            // This does not prolong the session; otherwise a client that never acknowledges anything could keep it.
            self.welcome_at = now;
        }
    }

    pub(in crate::udp) fn acknowledge(&mut self, ack: Ack, context: &Context<'_>) {
        let now = context.now;
        self.last_received = now;
        self.refused = false;
        self.acknowledged = true;
        self.metadata.acknowledge(ack.metadata, now);
        self.account.acknowledge(ack.account, now);
        // Only numbers after the last acknowledged one, up to the last sent one, are valid.
        let sent = context.seq.wrapping_sub(1).wrapping_sub(self.seen);
        if (1..=sent).contains(&ack.seq.wrapping_sub(self.seen)) {
            self.seen = ack.seq;
            self.moved = now;
        }
        self.delivered = self.delivered.max(ack.events);
        context.counters.acknowledged(ack.events);
        if let Some(ending) = &mut self.ending {
            ending.acknowledged |= ack.ended && ending.since.is_some();
        }
    }

    /// Handles an ICMP error that has reported the client's port as closed.
    pub(in crate::udp) fn refused(&mut self) {
        self.refused = true;
    }

    /// Sends as much as possible without waiting.
    pub(in crate::udp) fn pump(&mut self, context: &mut Context<'_>) -> NextStep {
        let silent = self.last_received.checked_add(context.options.client_timeout);
        if silent.is_some_and(|silent| context.now >= silent) {
            return NextStep::Over { trace: false };
        }
        loop {
            match self.outbox.flush() {
                FlushResult::All => {}
                FlushResult::Blocked => return NextStep::Blocked(earlier(Some(context.now + STALL), silent)),
                FlushResult::Gone => {
                    self.refused = true;
                    continue;
                }
            }
            let before = *context.seq;
            let next = match self.ending {
                Some(ending) => match self.totals(ending, context) {
                    Some(over) => return over,
                    None => self.ending.map(|ending| ending.next),
                },
                None => self.data(context),
            };
            if *context.seq == before {
                let ping = self.ending.is_none().then_some(self.last_sent + SILENCE);
                return NextStep::At(earlier(earlier(next, ping), silent));
            }
            self.last_sent = context.now;
        }
    }

    /// Sends metadata and events. Returns when to continue; `None` means when there is new data.
    fn data(&mut self, context: &mut Context<'_>) -> Option<Instant> {
        if !self.acknowledged {
            if context.now >= self.welcome_at {
                let (welcome, session) = (self.welcome, self.session);
                self.queue_message(context, |seq| welcome.encode(seq, session));
                self.welcome_at = context.now + RETRANSMIT;
            }
            return Some(self.welcome_at);
        }
        let (metadata, layout, ended) = {
            let state = context.queue.lock();
            (state.metadata.len() as u32, state.layout.clone(), state.ended && state.queued() == 0)
        };
        let mut flow = self.metadata;
        self.text(TextKind::Metadata, &mut flow, metadata, context);
        self.metadata = flow;
        if self.metadata.acknowledged() < metadata {
            // Metadata that ends in the middle of a declaration cannot be parsed.
            if ended && context.splitter.is_idle() {
                self.end(true, context.now);
                return Some(context.now);
            }
            return self.metadata.deadline();
        }
        let sizes = layout.as_ref().and_then(|layout| layout.sizes.as_ref())?;
        while self.outbox.room().is_some() {
            if !self.window_is_open(context) {
                return Some(self.moved + STALL);
            }
            if !self.rate_limit.may_send(context.now) {
                return Some(context.now + self.rate_limit.wait());
            }
            let Some(room) = self.outbox.room() else { break };
            let held = self.metadata.acknowledged();
            let most = match self.accept.most_events {
                0 => u64::MAX,
                most => most.saturating_sub(self.events),
            };
            let most = if self.refused { 0 } else { most };
            let filled = context.splitter.fill(context.queue, sizes, held, self.room, most, room);
            let Some(events) = filled else {
                if ended && context.splitter.is_idle() {
                    self.end(true, context.now);
                    return Some(context.now);
                }
                if context.now >= self.last_sent + SILENCE {
                    let ping = Ping { events: self.events, batches: self.number };
                    let session = self.session;
                    self.queue_message(context, |seq| ping.encode(seq, session));
                }
                return None;
            };
            let batch = Batch { events_before: self.events, events, number: self.number, packets: &[] };
            let size = room.len();
            let seq = context.number(size);
            seal_batch(room, seq, self.session, &batch);
            self.events += u64::from(events);
            self.number = self.number.wrapping_add(1);
            context.counters.batch.add(u64::from(events));
            self.rate_limit.spend(self.outbox.add());
        }
        Some(context.now)
    }

    /// Returns whether more may be sent before the client acknowledges more.
    fn window_is_open(&mut self, context: &Context<'_>) -> bool {
        let ahead = context.seq.wrapping_sub(1).wrapping_sub(self.seen);
        if self.accept.window == 0 || ahead < u32::from(self.accept.window) {
            return true;
        }
        if context.now < self.moved + STALL {
            return false;
        }
        self.seen = context.seq.wrapping_sub(1);
        self.moved = context.now;
        true
    }

    /// Sends as many pieces as the window and the outbox allow.
    fn text(&mut self, kind: TextKind, flow: &mut TextFlow, total: u32, context: &mut Context<'_>) {
        let piece = PIECE.min(u32::try_from(self.room.mtu - TEXT_HEADER).unwrap_or(PIECE));
        while self.outbox.room().is_some() {
            let Some(range) = flow.next(total, piece, context.now) else { break };
            let bytes = piece_of(kind, &range, context);
            let text = Text { kind, offset: range.start, total, bytes: &bytes };
            let seq = context.number(TEXT_HEADER + bytes.len());
            let session = self.session;
            if let Some(room) = self.outbox.room() {
                text.encode(seq, session, room);
                self.rate_limit.spend(self.outbox.add());
            }
        }
    }

    /// Puts a message into the outbox. Returns `false` if the outbox is full: the message is then not sent, and takes no number.
    pub(in crate::udp) fn queue_message<const SIZE: usize>(
        &mut self,
        context: &mut Context<'_>,
        encode: impl FnOnce(u32) -> [u8; SIZE],
    ) -> bool {
        let Some(room) = self.outbox.room() else { return false };
        room.extend_from_slice(&encode(context.number(SIZE)));
        self.rate_limit.spend(self.outbox.add());
        true
    }
}

/// Returns a piece of one of the texts.
fn piece_of(kind: TextKind, range: &Range<u32>, context: &Context<'_>) -> Vec<u8> {
    let state = context.queue.lock();
    let text = match kind {
        TextKind::Metadata => Some(&state.metadata),
        TextKind::Account => state.account.as_ref(),
    };
    let range = range.start as usize..range.end as usize;
    text.and_then(|text| text.get(range)).map(<[u8]>::to_vec).unwrap_or_default()
}
