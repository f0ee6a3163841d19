//! Announces new streams to a stock viewer while all streams that it has are idle.
//!
//! babeltrace2 asks for new streams only when it gets a packet or has no data stream left; an answer without a packet does not make it ask. So when
//! streams have waited for an announcement for a while and no packet has arrived, all streams of the session hang up. They are announced again under
//! other numbers, together with the new ones, and continue at the viewer's positions. Meanwhile no idle stream reports progress of time, because the
//! new streams begin before that time. `tracectl view` asks often enough by itself.
//!
//! ```text
//!   viewing ──streams wait to be announced, and all are idle──▶ waiting ──RENEW_AFTER──▶ renewing: every stream hangs up
//!      ▲           a packet comes, or the viewer asks │                                     │ the viewer asks for new streams
//!      └──────────────────────────────────────────────┴─────────────────────────────────────┘
//! ```

use super::{Place, ViewedStream, Viewer};
use crate::view::Cursor;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Time that streams wait to be announced before a renewal. `tracectl view` asks twice in that time.
const RENEW_AFTER: Duration = Duration::from_secs(1);
/// Number of bits for the numbers of streams and traces; the count of renewals is above them.
const NUMBER_BITS: u32 = 48;

/// The state of one session at a viewer.
#[derive(Debug, Default)]
pub(super) struct ViewedSession {
    /// The number of published streams covered by the last complete announcement.
    known: Option<usize>,
    /// Since when streams have waited to be announced while all others are idle.
    waits: Option<Instant>,
    /// Set during a renewal: its streams hang up.
    renews: bool,
    /// Number of renewals.
    renewals: u64,
    /// The latest time reported before the last renewal.
    pub(super) floor: u64,
    /// Positions in streams that are to be announced again.
    places: HashMap<u64, Cursor>,
    /// Streams that ended before a renewal.
    passed: HashSet<u64>,
}

impl ViewedSession {
    /// Returns the id under which the stream or trace with this number is announced.
    pub(super) const fn id(&self, number: u64) -> u64 {
        number | self.renewals << NUMBER_BITS
    }

    /// Records an announcement. `are_all` is true if it covers everything that `published` streams allow.
    pub(super) const fn announced(&mut self, are_all: bool, published: usize) {
        self.known = if are_all { Some(published) } else { None };
        self.waits = None;
    }

    /// Returns whether there is nothing to announce.
    pub(super) fn knows_all(&self, published: usize) -> bool {
        self.known == Some(published)
    }

    pub(super) fn has_passed(&self, handle: u64) -> bool {
        self.passed.contains(&handle)
    }

    /// Removes and returns the position in a stream that was announced before the last renewal.
    pub(super) fn take_place(&mut self, handle: u64) -> Option<Cursor> {
        self.places.remove(&handle)
    }

    /// Handles a request for a packet; `waits` is true if the stream is idle while streams wait to be announced. Returns whether the streams hang up
    /// from now on.
    pub(super) fn waits(&mut self, waits: bool, now: Instant) -> bool {
        self.waits = if waits { self.waits.or(Some(now)) } else { None };
        self.renews = self.waits.is_some_and(|since| now.saturating_duration_since(since) >= RENEW_AFTER);
        self.renews
    }
}

impl Viewer {
    pub(super) fn is_renewing(&self, session: u64) -> bool {
        self.attached.get(&session).is_some_and(|attached| attached.renews)
    }

    /// Marks a stream as hung up; the viewer will find it again under another id.
    pub(super) fn hang_up(&mut self, id: u64) {
        if let Some(viewed) = self.streams.get_mut(&id) {
            viewed.has_hung_up = true;
        }
    }

    /// Forgets all streams of a session, once all have hung up. Returns whether they have.
    pub(super) fn renew(&mut self, session: u64) -> bool {
        let of_session = |viewed: &&ViewedStream| viewed.session == session;
        if !self.streams.values().filter(of_session).all(|viewed| viewed.has_hung_up || viewed.has_nothing_more()) {
            return false;
        }
        let Some(attached) = self.attached.get_mut(&session) else { return false };
        for viewed in self.streams.values().filter(of_session) {
            attached.floor = attached.floor.max(viewed.time);
            match viewed.place {
                Place::Data(_) if viewed.has_ended => drop(attached.passed.insert(viewed.handle)),
                Place::Data(cursor) => drop(attached.places.insert(viewed.handle, cursor)),
                Place::Metadata(_) => {}
            }
        }
        (attached.known, attached.waits, attached.renews) = (None, None, false);
        attached.renewals += 1;
        self.streams.retain(|_, viewed| viewed.session != session);
        self.metadata.retain(|_, metadata| self.streams.contains_key(metadata));
        true
    }
}
