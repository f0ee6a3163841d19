//! Progress of a trace: stored messages are committed to the lease, acknowledged, and purged from the broker.

use super::incoming::feed;
use super::{AckPoint, End, PendingMessage, Trace};
use crate::nats::lease::{CommitResult, State};
use std::time::{Duration, Instant};
use tracepoint_wire::nats::Token;

/// Time without progress after which messages are fetched again if packets are missing, and minimum interval of such attempts.
const STUCK: Duration = Duration::from_secs(5);
const BETWEEN: Duration = Duration::from_secs(30);
/// Maximum number of such attempts at the end of a trace before missing packets are given up.
const MAX_AT_END: u32 = 3;
/// Interval of commits while there is progress.
const COMMIT_TIME: Duration = Duration::from_secs(1);
/// Interval of purges of stored packets.
const PURGE_TIME: Duration = Duration::from_secs(5);
/// Time without a message after which the sender is considered gone.
const SILENCE: Duration = Duration::from_secs(60);

impl Trace {
    /// Checks for stored messages and commits them.
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
            CommitResult::Lost(at) => Some(End::Lost(at)),
            CommitResult::Committed => {
                self.trouble = None;
                self.purge().await;
                None
            }
            CommitResult::Unknown(why) => {
                // Report an error once, even if it repeats.
                if why.is_some() && self.trouble != why {
                    self.of.say(format!("`{}`: {}", self.name, why.as_deref().unwrap_or_default()));
                    self.trouble = why;
                }
                None
            }
        }
    }

    /// Returns whether messages are to be fetched again, from the first unprocessed one on: packets are missing although the broker has later ones,
    /// and the trace has ended or makes no progress. A cluster's consumer may skip messages when its leader changes.
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
            if self.fetched_at_end >= MAX_AT_END {
                // The sender published the end after the broker had stored everything else.
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

    /// Removes processed messages from the queue.
    pub(super) fn pop_dealt(&mut self) {
        let hub = self.of.shared.hub.borrow();
        if self.waiting.is_empty() {
            self.progressed = Instant::now();
        }
        while let Some(first) = self.waiting.front() {
            let is_dealt = match first.what {
                AckPoint::Nothing => true,
                AckPoint::Packet { handle, seq } => hub.next_stored(handle).is_none_or(|next| next > seq),
                AckPoint::End => false,
            };
            if !is_dealt {
                break;
            }
            self.progressed = Instant::now();
            if let Some(PendingMessage { sequence, acker, .. }) = self.waiting.pop_front() {
                (self.dealt, self.acker) = (sequence, Some(acker));
            }
        }
    }

    pub(super) async fn commit(&mut self, state: State) -> CommitResult {
        let position = self.of.shared.hub.borrow_mut().position(self.session);
        let position = position.unwrap_or_else(|| self.held.lease.position.clone());
        let (acker, sequence) = (self.acker.take(), self.dealt);
        let committed = self.held.commit(&self.broker, state, sequence, position).await;
        match (&committed, acker) {
            // If the acknowledgement is lost, the next one covers this message as well.
            (CommitResult::Committed, Some(acker)) => drop(acker.ack().await),
            (_, acker) => self.acker = acker,
        }
        committed
    }

    async fn purge(&mut self) {
        let (at, upto) = self.purged;
        let sequence = self.held.lease.sequence;
        // After one replica was killed, server version 2.9 also removes packets that are not stored.
        let is_single = self.broker.stream.cached_info().config.num_replicas <= 1;
        if !is_single || at.elapsed() < PURGE_TIME || sequence <= upto {
            return;
        }
        self.purged = (Instant::now(), sequence);
        // Server version 2.9 moves the consumer past the last message of the stream, even past messages that it has not delivered.
        self.is_stale = true;
        let names = self.of.shared.hub.borrow().stream_names(self.session);
        let tokens = names.into_iter().map(Token::Stream).chain([Token::Sync]);
        for subject in tokens.map(|token| self.subject.subject(&token)) {
            // Messages that remain are removed at the end.
            let _ = self.broker.purge_below(&subject, sequence + 1).await;
        }
    }
}
