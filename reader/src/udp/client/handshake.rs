//! The first phase, from START until the layout of the session is known.

use super::legacy_order::LegacyOrder;
use super::retry::Retry;
use super::session_core::SessionCore;
use super::{Options, Transition};
use crate::udp::report::SessionEnd;
use std::num::NonZeroU64;
use std::time::Duration;
use tracepoint_wire::udp::{Accept, FromServer, Mark, MarkKind, ToClient, ToServer};

/// The interval of START.
const START_EVERY: Duration = Duration::from_millis(250);
/// Number of STARTs sent at once, from the second time on: a server that does not trust an address sends it no more bytes than it received.
const STARTS: u32 = 9;
/// Timeout for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The interval of ACCEPT, initially and later.
const ACCEPT_EVERY: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(250)];
/// How often ACCEPT is sent at the first interval.
const QUICKLY: u32 = 40;
/// The interval of START while an offer is not honoured: the offer may be old, or was damaged.
const AGAIN_EVERY: Duration = Duration::from_secs(1);
/// How long to wait for an offer to be honoured.
const OFFER: Duration = Duration::from_secs(8);
/// How long to wait for the first message of a session in the legacy layout after later ones have come.
const OVERTAKEN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Handshake {
    start: Retry,
    /// Messages in the legacy layout, and the arrival time of the first.
    legacy: Option<(LegacyOrder, Duration)>,
    /// True if one of them was not [`MarkKind::SessionBegin`].
    served: bool,
    accepting: Option<PendingAccept>,
}

#[derive(Debug)]
struct PendingAccept {
    /// The `seq` of the offer.
    seq: u32,
    accept: Accept,
    retry: Retry,
    again: Retry,
    /// The time of the first offer.
    since: Duration,
}

impl PendingAccept {
    fn new(seq: u32, accept: Accept, since: Duration, now: Duration) -> Self {
        let again = Retry::new(now + AGAIN_EVERY, AGAIN_EVERY);
        Self { seq, accept, retry: Retry::new(now, ACCEPT_EVERY[0]), again, since }
    }
}

impl Handshake {
    pub(super) fn new(now: Duration) -> Self {
        Self { start: Retry::new(now, START_EVERY), legacy: None, served: false, accepting: None }
    }

    pub(super) fn receive(
        &mut self,
        core: &mut SessionCore,
        message: &FromServer<'_>,
        now: Duration,
    ) -> Option<Transition> {
        match &message.message {
            ToClient::Mark(mark) => {
                self.keep(core, message, now);
                self.served |= mark.kind != MarkKind::SessionBegin;
                self.mark(core, message.seq, *mark, now)
            }
            ToClient::Packet(_) => {
                self.keep(core, message, now);
                self.served = true;
                None
            }
            ToClient::Challenge(challenge) => {
                if let Some(accepting) = &mut self.accepting {
                    let known = accepting.accept.token == challenge.token;
                    accepting.accept.token = challenge.token;
                    if !known {
                        accepting.retry = Retry::new(now, ACCEPT_EVERY[0]);
                    }
                }
                None
            }
            ToClient::Welcome(welcome) => {
                let session = message.session.filter(|_| self.accepting.is_some())?;
                Some(Transition::Batch { session, seq: message.seq, welcome: *welcome })
            }
            // A message of a session whose WELCOME has not arrived. Later messages show if it was lost.
            _ => {
                core.counts.foreign += 1;
                None
            }
        }
    }

    /// A message of the original server, from its second socket. [`MarkKind::SessionBegin`] makes no offer, whatever its padding contains,
    /// and begins the session after a delay, as a later message would: until then the server's own port may answer.
    pub(super) fn receive_aside(&mut self, core: &mut SessionCore, message: &FromServer<'_>, now: Duration) {
        self.keep(core, message, now);
        self.served = true;
    }

    /// Drops the kept messages: they are not from the server.
    pub(super) fn forget(&mut self) {
        (self.legacy, self.served) = (None, false);
    }

    /// Keeps a message in the legacy layout.
    fn keep(&mut self, core: &mut SessionCore, message: &FromServer<'_>, now: Duration) {
        let (order, _) = self.legacy.get_or_insert_with(|| (LegacyOrder::unopened(core, message), now));
        order.put(core, message, now);
    }

    fn mark(&mut self, core: &SessionCore, seq: u32, mark: Mark, now: Duration) -> Option<Transition> {
        if mark.kind != MarkKind::SessionBegin {
            return None;
        }
        match mark.offer {
            Some(nonce) if !core.options.legacy => {
                let newer = self.accepting.as_ref().is_none_or(|old| seq.wrapping_sub(old.seq).cast_signed() > 0);
                if newer {
                    let Options { mtu, window, events_limit, .. } = core.options;
                    let most_events = events_limit.map_or(0, NonZeroU64::get);
                    let accept = Accept { mtu, window, most_events, ..Accept::new(nonce) };
                    let since = self.accepting.as_ref().map_or(now, |old| old.since);
                    self.accepting = Some(PendingAccept::new(seq, accept, since, now));
                }
                None
            }
            _ => self.use_legacy(),
        }
    }

    fn use_legacy(&mut self) -> Option<Transition> {
        self.legacy.take().map(|(order, _)| Transition::Legacy(order))
    }

    /// The server has closed its port: continues with the messages received so far.
    pub(super) fn give_up(&mut self) -> Transition {
        self.use_legacy().unwrap_or(Transition::Over(SessionEnd::NoServer { refused: true }))
    }

    pub(super) fn wake(&mut self, core: &mut SessionCore, now: Duration) -> Option<Transition> {
        if core.stop_wanted {
            core.send(&ToServer::Stop);
            return Some(Transition::Over(SessionEnd::Unconfirmed));
        }
        if let Some(accepting) = &mut self.accepting {
            if accepting.retry.due(now) {
                core.send(&ToServer::Accept(accepting.accept));
                if accepting.retry.sent() >= QUICKLY {
                    accepting.retry.slow_down(ACCEPT_EVERY[1]);
                }
            }
            if now < accepting.since + OFFER {
                if accepting.again.due(now) {
                    Self::start(core, STARTS);
                }
                return None;
            }
            // A server that sends events without an answer can be read without one.
            return if self.served { self.use_legacy() } else { Some(Self::no_server(core)) };
        }
        if now >= self.start.since() + ANSWER {
            return Some(if self.served { self.use_legacy()? } else { Self::no_server(core) });
        }
        if self.legacy.as_ref().is_some_and(|(_, since)| now >= *since + OVERTAKEN) {
            return self.use_legacy();
        }
        if self.start.due(now) {
            let count = if self.start.sent() > 1 && !core.options.legacy { STARTS } else { 1 };
            Self::start(core, count);
        }
        None
    }

    fn start(core: &mut SessionCore, count: u32) {
        (0..count).for_each(|_| core.send(&ToServer::Start));
    }

    /// Gives up. STOP ends a session whose beginning was lost.
    fn no_server(core: &mut SessionCore) -> Transition {
        core.send(&ToServer::Stop);
        let counts = core.counts;
        let foreign = counts.datagrams > 0 && counts.datagrams == counts.malformed + counts.corrupted;
        Transition::Over(if foreign { SessionEnd::Foreign } else { SessionEnd::NoServer { refused: false } })
    }

    pub(super) fn deadline(&self) -> Duration {
        if let Some(accepting) = &self.accepting {
            return accepting.retry.next().min(accepting.again.next()).min(accepting.since + OFFER);
        }
        let overtaken = self.legacy.as_ref().map(|(_, since)| *since + OVERTAKEN);
        let start = self.start.next().min(self.start.since() + ANSWER);
        overtaken.map_or(start, |overtaken| overtaken.min(start))
    }
}
