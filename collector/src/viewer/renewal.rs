//! How a stock viewer learns of streams that appear while all that it knows are idle.
//!
//! babeltrace2 asks for new streams when it gets a packet, and when it has no stream of data left; an answer without a packet does not make it ask. So when
//! streams have waited to be announced for a while, and no packet has come, all streams of the session hang up, and are announced again under other
//! numbers, with the new ones, and with the places that the viewer had in them. Meanwhile no idle stream says that time passes, because the new
//! ones begin before that. Viewers of ours ask often enough by themselves.
//!
//! ```text
//!   viewing ──streams wait to be announced, and all are idle──▶ waiting ──RENEW_AFTER──▶ renewing: every stream hangs up
//!      ▲           a packet comes, or the viewer asks │                                     │ the viewer asks for new streams
//!      └──────────────────────────────────────────────┴─────────────────────────────────────┘
//! ```

use super::{Place, Viewed, Viewer};
use crate::view::Cursor;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long streams wait to be announced. Viewers of ours ask twice in that time.
const RENEW_AFTER: Duration = Duration::from_secs(1);
/// Numbers of streams and traces have fewer bits; those of renewals are above.
const NUMBER_BITS: u32 = 48;

/// What a viewer knows of a session.
#[derive(Debug, Default)]
pub(super) struct Attached {
    /// The number of published streams of which it knows all that can be announced.
    known: Option<usize>,
    /// Since when streams wait to be announced while others are idle.
    waits: Option<Instant>,
    /// Its streams hang up.
    renews: bool,
    /// How often they did.
    renewals: u64,
    /// The latest time that it was told of before.
    floor: u64,
    /// Its places in streams that are to be announced again.
    places: HashMap<u64, Cursor>,
    /// Streams that had ended before a renewal.
    passed: HashSet<u64>,
}

impl Attached {
    /// The id under which a stream, or a trace, with this number is announced now.
    pub(super) const fn id(&self, number: u64) -> u64 {
        number | self.renewals << NUMBER_BITS
    }

    /// Streams are announced; all that can be of so many published ones, or a part.
    pub(super) const fn announced(&mut self, are_all: bool, published: usize) {
        self.known = if are_all { Some(published) } else { None };
        self.waits = None;
    }

    /// Whether nothing can be announced.
    pub(super) fn knows_all(&self, published: usize) -> bool {
        self.known == Some(published)
    }

    pub(super) fn has_passed(&self, handle: u64) -> bool {
        self.passed.contains(&handle)
    }

    /// No event that is older can be shown.
    pub(super) const fn floor(&self) -> u64 {
        self.floor
    }

    /// The place in a stream that was announced before the last renewal.
    pub(super) fn take_place(&mut self, handle: u64) -> Option<Cursor> {
        self.places.remove(&handle)
    }

    /// A stream was asked for a packet; whether streams wait to be announced and it is idle. Returns whether the streams hang up from now on.
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

    /// The viewer is told that this stream has ended, and will find it under another id.
    pub(super) fn hang_up(&mut self, id: u64) {
        if let Some(viewed) = self.streams.get_mut(&id) {
            viewed.has_hung_up = true;
        }
    }

    /// Makes all streams of a session unknown to the viewer, once all have hung up; whether they have.
    pub(super) fn renew(&mut self, session: u64) -> bool {
        let of_session = |viewed: &&Viewed| viewed.session == session;
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
