//! A session in the stock layout.
//!
//! All that it can tell of losses are gaps in `seq`, which counts messages. There is no sign of life in it, and no proof that a
//! message is as it was sent.

use super::Next;
use super::desk::Desk;
use super::retry::Retry;
use crate::udp::order::{Arrival, Order, Turn};
use crate::udp::report::{Ending, Layout, Lost, Report, StockEvent};
use crate::udp::wire::{FromServer, MarkKind, ToClient, ToServer};
use std::time::Duration;

/// How often STOP is repeated.
const STOP_EVERY: Duration = Duration::from_millis(100);
/// For how long.
const STOP_FOR: Duration = Duration::from_secs(5);

/// A message in the stock layout.
#[derive(Debug)]
pub(super) enum StockMessage {
    Mark(MarkKind),
    Event(StockEvent),
}

pub(super) type StockOrder = Order<StockMessage>;

/// Puts a message where it belongs, if it is one of this layout.
pub(super) fn put(order: &mut StockOrder, desk: &mut Desk, message: &FromServer<'_>, now: Duration) {
    let (kept, size) = match &message.message {
        ToClient::Mark(mark) => (StockMessage::Mark(mark.kind), 0),
        ToClient::Packet(packet) => {
            let event = StockEvent { seq: message.seq, time_ns: packet.time_ns, content: packet.content.to_vec() };
            let size = event.content.len();
            (StockMessage::Event(event), size)
        }
        _ => {
            desk.counts.foreign += 1;
            return;
        }
    };
    let is_event = matches!(kept, StockMessage::Event(_));
    match order.put(message.seq, kept, size, now) {
        Arrival::Taken { overtaken } => desk.counts.reordered += u64::from(overtaken),
        Arrival::Duplicate => desk.counts.duplicates += 1,
        Arrival::Late => desk.late(u64::from(is_event)),
        Arrival::Doubted => desk.counts.foreign += 1,
        // Told as missing when its turn comes.
        Arrival::NoRoom => {}
    }
}

#[derive(Debug)]
pub(super) struct StockSession {
    order: StockOrder,
    begun: bool,
    heard: Duration,
    stop: Option<Retry>,
}

impl StockSession {
    pub(super) fn new(mut order: StockOrder, now: Duration) -> Self {
        order.open();
        Self { order, begun: false, heard: now, stop: None }
    }

    pub(super) fn receive(&mut self, desk: &mut Desk, message: &FromServer<'_>, now: Duration) -> Option<Next> {
        if let (ToClient::Welcome(welcome), Some(session), false) =
            (&message.message, message.session, desk.options.stock)
        {
            // The answer to an offer that was given up.
            self.settle(desk, now);
            return Some(Next::Batch { session, seq: message.seq, welcome: *welcome });
        }
        self.heard = now;
        put(&mut self.order, desk, message, now);
        self.advance(desk, now)
    }

    /// Gives out what has its turn.
    fn advance(&mut self, desk: &mut Desk, now: Duration) -> Option<Next> {
        while let Some(turn) = self.order.turn(now) {
            if !self.begun {
                self.begin(desk, &turn);
            }
            match turn {
                Turn::Gap { first, count } => desk.lose(Lost::Messages { first: first as u32, count }),
                Turn::Message(_, StockMessage::Event(event)) => {
                    desk.tell(Report::Event(event));
                    desk.deliver(1);
                }
                Turn::Message(_, StockMessage::Mark(MarkKind::SessionBegin)) => {}
                Turn::Message(_, StockMessage::Mark(MarkKind::TraceBegin)) => desk.tell(Report::TraceBegin),
                Turn::Message(_, StockMessage::Mark(MarkKind::TraceEnd)) => desk.tell(Report::TraceEnd),
                Turn::Message(_, StockMessage::Mark(MarkKind::SessionEnd)) => {
                    desk.tell(Report::SessionEnd);
                    return Some(Next::Over(Ending::Ended));
                }
            }
        }
        None
    }

    fn begin(&mut self, desk: &mut Desk, first: &Turn<StockMessage>) {
        self.begun = true;
        desk.tell(Report::SessionBegin(Layout::Stock));
        if !matches!(first, Turn::Message(_, StockMessage::Mark(MarkKind::SessionBegin))) {
            desk.lose(Lost::Beginning);
        }
    }

    pub(super) fn wake(&mut self, desk: &mut Desk, now: Duration) -> Option<Next> {
        if let Some(next) = self.advance(desk, now) {
            return Some(next);
        }
        if now >= self.heard.saturating_add(desk.options.idle) {
            desk.stop_wanted = true;
        }
        if !desk.stop_wanted {
            return None;
        }
        let first = self.stop.is_none();
        let stop = self.stop.get_or_insert_with(|| Retry::new(now, STOP_EVERY));
        if now >= stop.since() + STOP_FOR {
            let ending = self.give_up(desk, Ending::Unconfirmed);
            return Some(Next::Over(ending));
        }
        if stop.due(now) {
            desk.say(&ToServer::Stop);
        }
        if first {
            desk.tell(Report::StopSent);
        }
        None
    }

    /// Gives out all that is there, whatever is missing.
    fn settle(&mut self, desk: &mut Desk, now: Duration) -> Option<Next> {
        self.order.close();
        self.advance(desk, now)
    }

    /// Gives out what is there; how the session ended then.
    pub(super) fn give_up(&mut self, desk: &mut Desk, ending: Ending) -> Ending {
        match self.settle(desk, self.heard) {
            Some(Next::Over(ended)) => ended,
            _ => ending,
        }
    }

    pub(super) fn deadline(&self, desk: &Desk) -> Duration {
        let stop = match &self.stop {
            Some(stop) => stop.next().min(stop.since() + STOP_FOR),
            None if desk.stop_wanted => Duration::ZERO,
            None => self.heard.saturating_add(desk.options.idle),
        };
        self.order.deadline().map_or(stop, |turn| turn.min(stop))
    }
}
