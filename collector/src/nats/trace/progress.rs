//! How far a trace is: what is stored is committed to the lease, acknowledged, and forgotten by the broker.

use super::incoming::feed;
use super::{End, Trace, Waiting, What};
use crate::nats::lease::{Committed, State};
use std::time::{Duration, Instant};
use tracepoint_wire::nats::Token;

/// After this time without progress messages are fetched once more, where packets are missing; then not again for another one.
const STUCK: Duration = Duration::from_secs(5);
const BETWEEN: Duration = Duration::from_secs(30);
/// How often they are fetched once more at the end of a trace, until what is missing is given up.
const MOST_AT_END: u32 = 3;
/// The pause between two commits, while there is news.
const COMMIT_TIME: Duration = Duration::from_secs(1);
/// The pause between two purges of stored packets.
const PURGE_TIME: Duration = Duration::from_secs(5);
/// A sender is gone that has published nothing for so long.
const SILENCE: Duration = Duration::from_secs(60);

impl Trace {
    /// Looks at what is stored, and commits it.
    pub(super) async fn tick(&mut self) -> Option<End> {
        let now = Instant::now();
        let ticked = self.control.tick(&mut self.of.shared.hub.borrow_mut(), now, &mut Vec::new());
        if let Err((_, why)) = ticked {
            self.of.say(format!("`{}`: {why}", self.name));
            return Some(End::Released);
        }
        if self.control.has_ended() {
            return Some(End::Done);
        }
        if self.account.is_whole() && self.of.shared.hub.borrow_mut().is_all_closed(self.session) {
            for frame in self.account.take().frames() {
                if let Err(why) = feed(&self.of, &mut self.control, frame).await {
                    self.of.say(format!("`{}`: {why}", self.name));
                }
            }
        }
        self.pop_dealt();
        self.of.status.unstored.borrow_mut().insert(self.held.key.clone(), self.pending + self.waiting.len() as u64);
        let is_silent = self.waiting.is_empty() && self.heard.elapsed() >= SILENCE;
        if is_silent || self.of.status.is_ending.get() {
            return Some(End::Released);
        }
        let pause = if self.dealt > self.held.lease.sequence { COMMIT_TIME } else { self.of.settings.lease / 4 };
        if self.committed.elapsed() < pause.min(self.of.settings.lease / 4) {
            return None;
        }
        self.committed = now;
        match self.commit(State::Held).await {
            Committed::Lost(at) => Some(End::Lost(at)),
            Committed::Yes => {
                self.trouble = None;
                self.purge().await;
                None
            }
            Committed::Unknown(why) => {
                // Once, and not each time.
                if why.is_some() && self.trouble != why {
                    self.of.say(format!("`{}`: {}", self.name, why.as_deref().unwrap_or_default()));
                    self.trouble = why;
                }
                None
            }
        }
    }

    /// Whether messages are fetched once more, from the first one on that is not dealt with: packets are missing, though the broker has those behind
    /// them, and the trace has ended, or nothing goes on. A consumer of a cluster may pass over messages when its leader changes.
    pub(super) fn goes_back(&mut self) -> bool {
        if !self.misses_stream && !self.of.shared.hub.borrow().has_gaps(self.session) {
            if self.is_closed {
                self.control.all_has_come();
            }
            return false;
        }
        let is_stuck = (self.misses_stream || self.progressed.elapsed() >= STUCK)
            && self.fetched_again.is_none_or(|at| at.elapsed() >= BETWEEN);
        if self.is_closed {
            self.is_closed = false;
            if self.fetched_at_end >= MOST_AT_END {
                // The sender has published the end when the broker had everything else.
                self.control.all_has_come();
                return false;
            }
            self.fetched_at_end += 1;
        } else if !is_stuck {
            return false;
        }
        self.fetched_again = Some(Instant::now());
        self.progressed = Instant::now();
        self.waiting.clear();
        self.received = self.dealt;
        true
    }

    /// Takes the messages off the queue that are dealt with.
    pub(super) fn pop_dealt(&mut self) {
        let hub = self.of.shared.hub.borrow();
        if self.waiting.is_empty() {
            self.progressed = Instant::now();
        }
        while let Some(first) = self.waiting.front() {
            let is_dealt = match first.what {
                What::Nothing => true,
                What::Packet { handle, seq } => hub.next_stored(handle).is_none_or(|next| next > seq),
                What::End => false,
            };
            if !is_dealt {
                break;
            }
            self.progressed = Instant::now();
            if let Some(Waiting { sequence, acker, .. }) = self.waiting.pop_front() {
                (self.dealt, self.acker) = (sequence, Some(acker));
            }
        }
    }

    pub(super) async fn commit(&mut self, state: State) -> Committed {
        let position = self.of.shared.hub.borrow_mut().position(self.session);
        let position = position.unwrap_or_else(|| self.held.lease.position.clone());
        let (acker, sequence) = (self.acker.take(), self.dealt);
        let committed = self.held.commit(&self.broker, state, sequence, position).await;
        match (&committed, acker) {
            // If that is lost, the next one acknowledges this message, too.
            (Committed::Yes, Some(acker)) => drop(acker.ack().await),
            (_, acker) => self.acker = acker,
        }
        committed
    }

    /// Has the broker forget the packets that are stored.
    async fn purge(&mut self) {
        let (at, upto) = self.purged;
        let sequence = self.held.lease.sequence;
        // Version 2.9 of the server removes packets that are not stored, too, from replicas of which one has been killed.
        let is_single = self.broker.stream.cached_info().config.num_replicas <= 1;
        if !is_single || at.elapsed() < PURGE_TIME || sequence <= upto {
            return;
        }
        self.purged = (Instant::now(), sequence);
        // Version 2.9 of the server has the consumer go on behind the last message of the stream, also behind those that it has not delivered.
        self.is_stale = true;
        let names = self.of.shared.hub.borrow().stream_names(self.session);
        let tokens = names.into_iter().map(Token::Stream).chain([Token::Sync]);
        for subject in tokens.map(|token| self.subject.subject(&token)) {
            // What stays is removed at the end.
            let _ = self.broker.purge_below(&subject, sequence + 1).await;
        }
    }
}
