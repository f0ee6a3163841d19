//! How a session ends: the account, and totals until they are acknowledged.

use super::Batches;
use crate::udp::session::texts::REPEAT;
use crate::udp::session::{Context, Next};
use std::time::{Duration, Instant};
use tracepoint_reader::udp::wire::batch::END_SIZE;
use tracepoint_reader::udp::wire::{End, TextKind};

/// How long totals are repeated.
const ENDING: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    trace: bool,
    /// When END was sent for the first time.
    since: Option<Instant>,
    /// When to look again.
    pub(super) next: Instant,
    acknowledged: bool,
}

impl Ending {
    /// An ACK came; `ended`: one that knows the totals.
    pub(super) fn acknowledge(&mut self, ended: bool) {
        self.acknowledged |= ended && self.since.is_some();
    }
}

impl Batches {
    /// The client has had enough.
    pub(in crate::udp) fn leave(&mut self, now: Instant) {
        self.heard = now;
        self.end(false, now);
    }

    /// Nothing follows but the account, if the trace has ended, and the totals.
    pub(super) fn end(&mut self, trace: bool, now: Instant) {
        self.ending.get_or_insert(Ending { trace, since: None, next: now, acknowledged: false });
    }

    /// The account and the totals; `Some` if the session is over.
    pub(super) fn totals(&mut self, mut ending: Ending, context: &mut Context<'_>) -> Option<Next> {
        let (metadata, account, lost) = {
            let inside = context.store.lock();
            let account = inside.account.as_ref().filter(|_| ending.trace).map_or(0, Vec::len);
            (inside.metadata.len() as u32, account as u32, inside.losses())
        };
        let mut flow = self.account;
        if flow.acknowledged() < account {
            self.text(TextKind::Account, &mut flow, account, context);
            self.account = flow;
            ending.next = flow.deadline().unwrap_or(context.now + REPEAT);
            self.ending = Some(ending);
            return None;
        }
        let first = ending.since.is_none();
        let since = *ending.since.get_or_insert(context.now);
        if ending.acknowledged || context.now >= since + ENDING {
            return Some(Next::Over { trace: ending.trace });
        }
        if first || context.now >= ending.next {
            let end = End {
                trace: ending.trace,
                batches: self.number,
                events: self.events,
                stock: self.stock,
                metadata,
                account,
                lost,
            };
            let session = self.session;
            self.say(&end.encode(context.number(END_SIZE), session));
            ending.next = context.now + REPEAT;
        }
        self.ending = Some(ending);
        None
    }
}
