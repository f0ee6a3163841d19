//! The end of a session: sends the texts until they are acknowledged, then the totals until they are.

use super::{BatchSession, EndState};
use crate::udp::outbox::FlushResult;
use crate::udp::session::texts::RETRANSMIT;
use crate::udp::session::{Context, NextStep};
use std::time::{Duration, Instant};
use tracepoint_wire::udp::{End, TextKind};

/// Time for which the totals are retransmitted.
const ENDING: Duration = Duration::from_secs(3);

impl BatchSession {
    /// Handles LEAVE of the client.
    pub(in crate::udp) fn leave(&mut self, now: Instant) {
        self.last_received = now;
        self.end(false, now);
    }

    pub(super) fn end(&mut self, trace: bool, now: Instant) {
        let texts = (self.texts(), now);
        self.ending.get_or_insert(EndState { trace, texts, since: None, next: now, acknowledged: false });
    }

    /// Returns the number of acknowledged bytes of the texts.
    fn texts(&self) -> u64 {
        u64::from(self.metadata.acknowledged()) + u64::from(self.account.acknowledged())
    }

    /// Returns the number of events in batches that the client has not acknowledged; 0 if it has acknowledged the total, because it then knows its
    /// losses.
    pub(in crate::udp) fn unacknowledged(&self) -> u64 {
        let told = self.ending.is_some_and(|ending| ending.acknowledged);
        if told { 0 } else { self.events.saturating_sub(self.delivered) }
    }

    /// Sends the account and the totals. Returns `Some` if the session is over.
    pub(super) fn totals(&mut self, mut ending: EndState, context: &mut Context<'_>) -> Option<NextStep> {
        let (metadata, account) = {
            let state = context.queue.lock();
            let account = state.account.as_ref().filter(|_| ending.trace).map_or(0, Vec::len);
            (state.metadata.len() as u32, account as u32)
        };
        if self.texts() > ending.texts.0 {
            ending.texts = (self.texts(), context.now);
        }
        let given_up = ending.texts.1 + ENDING;
        if ending.since.is_none() && context.now < given_up {
            let (mut sent_metadata, mut sent_account) = (self.metadata, self.account);
            let flow = if sent_metadata.acknowledged() < metadata {
                self.text(TextKind::Metadata, &mut sent_metadata, metadata, context);
                Some(sent_metadata)
            } else if sent_account.acknowledged() < account {
                self.text(TextKind::Account, &mut sent_account, account, context);
                Some(sent_account)
            } else {
                None
            };
            if let Some(flow) = flow {
                (self.metadata, self.account) = (sent_metadata, sent_account);
                let again = flow.deadline().unwrap_or(context.now + RETRANSMIT);
                ending.next = again.min(given_up);
                self.ending = Some(ending);
                return None;
            }
        }
        let first = ending.since.is_none();
        let since = *ending.since.get_or_insert(context.now);
        if ending.acknowledged || context.now >= since + ENDING {
            return Some(NextStep::Over { trace: ending.trace });
        }
        if first || context.now >= ending.next {
            self.send_totals(ending.trace, account, context);
            ending.next = context.now + RETRANSMIT;
        }
        self.ending = Some(ending);
        None
    }

    fn send_totals(&mut self, trace: bool, account: u32, context: &mut Context<'_>) {
        let (metadata, lost) = {
            let state = context.queue.lock();
            (state.metadata.len() as u32, state.losses())
        };
        let (batches, events, legacy) = (self.number, self.events, self.legacy_events);
        let end = End { trace, batches, events, legacy, metadata, account, lost };
        let session = self.session;
        self.queue_message(context, |seq| end.encode(seq, session));
    }

    /// Sends the totals once, because the server ends.
    pub(in crate::udp) fn send_end(&mut self, context: &mut Context<'_>) {
        // Flushing frees a buffer, if the socket accepts something.
        if self.acknowledged && self.outbox.flush() != FlushResult::Blocked {
            self.send_totals(false, 0, context);
            self.outbox.flush();
        }
    }
}
