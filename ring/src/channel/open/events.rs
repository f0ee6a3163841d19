//! The events of a channel: their ids, the subscriptions that record them, and their account.

use super::super::account::{ChannelAccount, EventAccount, EventCounters, StreamAccount};
use super::super::buffer::Buffer;
use super::{OpenChannel, RINGLESS_INSTANCE};
use crate::update::{self, UpdateGuard};
use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The id of an event in a channel. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub(in crate::channel) u16);

impl EventId {
    /// The id as in a record's header word.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The result of a subscriber's filter for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterOutcome {
    /// The event must be recorded.
    Accepted,
    /// The filter rejected it.
    Refused,
    /// A rate limit suppressed it.
    Suppressed,
    /// The filter or a field expression panicked.
    Panicked,
}

/// All event ids of the channel are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEvents {
    limit: usize,
}

impl fmt::Display for TooManyEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the channel was opened for {} events, and all their ids are allocated", self.limit)
    }
}

impl std::error::Error for TooManyEvents {}

impl OpenChannel {
    /// Allocates an id for another event.
    ///
    /// # Errors
    ///
    /// If all ids are allocated. Ids are never reused.
    pub fn add_event(&self) -> Result<EventId, TooManyEvents> {
        let full = TooManyEvents { limit: self.max_events };
        self.events
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| ((n as usize) < self.max_events).then_some(n + 1))
            .map(|n| EventId(n as u16))
            .map_err(|_| full)
    }

    /// Returns whether new subscriptions are refused.
    pub fn is_finished(&self, _: &UpdateGuard<'_>) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    /// Returns whether the recording is ending: see `is_finished`. Relaxed: ordered by the fences of the section and of the grace period.
    pub(in crate::channel) fn takes_no_more(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    /// Counts a new subscription. The channel is not finished.
    pub fn subscribed(&self, _: &UpdateGuard<'_>) {
        self.subscriptions.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a subscription.
    pub fn unsubscribed(&self, _: &UpdateGuard<'_>) {
        self.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Refuses subscriptions from now on. Returns `false`, with nothing changed, while there is one.
    pub(in crate::channel) fn end_subscriptions(&self) -> bool {
        let _locked = update::lock();
        let has_ended = self.subscriptions.load(Ordering::Relaxed) == 0;
        if has_ended {
            self.finished.store(true, Ordering::Relaxed);
        }
        has_ended
    }

    /// Returns whether this id is allocated.
    pub fn has_event(&self, id: EventId) -> bool {
        u32::from(id.0) < self.events.load(Ordering::Relaxed)
    }

    /// The account so far. In a forked child, only the losses there.
    pub fn account(&self) -> ChannelAccount {
        let allocated = self.events.load(Ordering::Relaxed) as usize;
        let sum = |rows: &[&[EventCounters]]| {
            let event = |id: usize| {
                let mut sum = EventAccount::default();
                for row in rows {
                    sum.add(&row[id]);
                }
                sum
            };
            (0..allocated).map(event).collect::<Vec<_>>()
        };
        if !self.ring_table.is_attached() {
            let events = sum(&[&self.forked]);
            let discarded = events.iter().map(EventAccount::total_lost).sum();
            let streams = vec![StreamAccount { instance: RINGLESS_INSTANCE, discarded, ..StreamAccount::default() }];
            return ChannelAccount { events, streams };
        }
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let rows: Vec<_> = rings.iter().map(|ring| ring.account()).chain([self.ringless.account()]).collect();
        let [waited, waited_ns] = self.ringless_waits();
        let ringless = StreamAccount {
            instance: RINGLESS_INSTANCE,
            discarded: self.ringless_discarded(),
            waited,
            waited_ns,
            ..StreamAccount::default()
        };
        let streams =
            rings.iter().flat_map(|ring| ring.buffers()).filter(|b| b.is_used()).map(Buffer::account).chain([ringless]);
        ChannelAccount { events: sum(&rows), streams: streams.collect() }
    }
}
