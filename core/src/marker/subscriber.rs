//! Who subscribed to a marker: recorders (a channel) and aggregates, each with an optional filter.

use super::descriptor::{FieldView, Marker};
use crate::key::Turn;
use crate::site::SwitchError;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::channel::{EventId, OpenChannel, SoleSubscriber};
use tracepoint_ring::update::{self, Garbage, UpdateGuard};

/// Decides, from its fields, whether an event is for a subscriber.
///
/// Runs inside the site's cold path: it must not block, and should not allocate. An event on which it panics is
/// lost for its subscriber, reason `panicked`.
pub trait Filter: Send + Sync {
    /// Whether the subscriber gets the event.
    fn accept(&self, event: FieldView<'_>) -> bool;

    /// The same, for an event at `time` nanoseconds on the clock of the process. This is what the marker stage asks; a filter that is a
    /// brake, too, says here what it suppresses.
    fn decide(&self, time: u64, event: FieldView<'_>) -> Decision {
        let _ = time;
        if self.accept(event) { Decision::Accept } else { Decision::Refuse }
    }
}

/// What a filter says of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The subscriber gets it.
    Accept,
    /// It is not wanted; counted as `filtered`.
    Refuse,
    /// It is one too many; counted as `suppressed`.
    Suppress,
}

/// Makes something smaller out of events where they happen: a count, a histogram.
///
/// Runs inside the site's cold path: it must not block, and should not allocate.
pub trait Aggregate: Send + Sync {
    /// One event, at `time` nanoseconds on the clock of the process (see [`tracepoint_ring::clock`]).
    fn observe(&self, time: u64, event: FieldView<'_>);
}

/// What a subscriber does with an event.
#[derive(Clone)]
pub(super) enum Consumer {
    Record {
        channel: Arc<OpenChannel>,
        id: EventId,
    },
    /// The same, in a channel whose records begin with contexts.
    RecordWithContexts {
        channel: Arc<OpenChannel>,
        id: EventId,
    },
    Aggregate(Arc<dyn Aggregate>),
}

/// One who wants the events of a marker.
#[derive(Clone)]
pub struct Subscriber {
    pub(super) consumer: Consumer,
    pub(super) filter: Option<Arc<dyn Filter>>,
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match &self.consumer {
            Consumer::Record { id, .. } | Consumer::RecordWithContexts { id, .. } => format!("record as {id:?}"),
            Consumer::Aggregate(_) => "aggregate".to_owned(),
        };
        f.debug_struct("Subscriber").field("consumer", &what).field("filter", &self.filter.is_some()).finish()
    }
}

impl Subscriber {
    /// Records the events in `channel`, under an id that the channel gave for this marker.
    ///
    /// # Panics
    ///
    /// If `channel` has not given so many ids: the id is another channel's.
    pub fn record(channel: Arc<OpenChannel>, id: EventId) -> Self {
        assert!(channel.has_event(id), "the event id was given by another channel");
        let consumer = if channel.has_contexts() {
            Consumer::RecordWithContexts { channel, id }
        } else {
            Consumer::Record { channel, id }
        };
        Self { consumer, filter: None }
    }

    /// Shows the events to `aggregate`.
    pub fn aggregate(aggregate: Arc<dyn Aggregate>) -> Self {
        Self { consumer: Consumer::Aggregate(aggregate), filter: None }
    }

    fn channel(&self) -> Option<&Arc<OpenChannel>> {
        match &self.consumer {
            Consumer::Record { channel, .. } | Consumer::RecordWithContexts { channel, .. } => Some(channel),
            Consumer::Aggregate(_) => None,
        }
    }

    /// SoleSubscriber the events that `filter` accepts.
    #[must_use]
    pub fn filter(mut self, filter: Arc<dyn Filter>) -> Self {
        self.filter = Some(filter);
        self
    }
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) subscriber: Subscriber,
    ticket: u64,
}

/// The subscribers of a marker at one time. Immutable.
#[derive(Debug)]
pub(crate) struct SubscriberList {
    pub(super) entries: Box<[Entry]>,
    /// The only subscriber, if that is a channel without contexts, and without a filter. Its channel is kept by `entries`.
    sole: Option<SoleSubscriber>,
}

impl SubscriberList {
    fn new(entries: Vec<Entry>) -> Self {
        let sole = match &entries[..] {
            [Entry { subscriber: Subscriber { consumer: Consumer::Record { channel, id }, filter: None }, .. }] => {
                Some(SoleSubscriber::new(channel, *id))
            }
            _ => None,
        };
        Self { entries: entries.into(), sole }
    }
}

/// A place in a marker's list. Dropping it unsubscribes, and waits until the subscriber is not in use any more (unless it is
/// dropped inside a probe: see [`crate::probe`]).
#[derive(Debug)]
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    marker: &'static Marker,
    /// The channel that it records into.
    channel: Option<Arc<OpenChannel>>,
    ticket: u64,
}

impl Marker {
    /// Adds a subscriber; the marker, and its tracepoint's sites, are on from here.
    ///
    /// # Errors
    ///
    /// If the sites cannot be switched on.
    pub fn subscribe(&'static self, subscriber: Subscriber) -> Result<Subscription, SwitchError> {
        let mut subscriptions = Subscription::start_all([(self, subscriber)])?;
        Ok(subscriptions.remove(0))
    }

    /// Whether there is a subscriber just now; he may be gone when the caller looks.
    #[doc(hidden)]
    #[inline(always)]
    pub fn is_subscribed(&self) -> bool {
        self.subscribers.is_some()
    }

    /// How many subscribers there are.
    pub fn subscriber_count(&self) -> usize {
        self.entries(&update::lock()).len()
    }

    fn entries(&self, _: &UpdateGuard<'_>) -> Vec<Entry> {
        // SAFETY: the control lock is held while the list is cloned, and lists are replaced under it only.
        unsafe { self.subscribers.read() }.map_or_else(Vec::new, |list| list.entries.to_vec())
    }

    fn publish(&self, entries: Vec<Entry>, locked: &UpdateGuard<'_>) -> Option<Garbage> {
        let next = (!entries.is_empty()).then(|| Box::new(SubscriberList::new(entries)));
        let old = self.subscribers.replace(next);
        self.choose_path(locked);
        old.map(|old| Box::new(old) as Garbage)
    }

    /// After a change of the subscribers, or of the tracepoint's probes, and before the grace period of what was replaced.
    pub(crate) fn choose_path(&self, _: &UpdateGuard<'_>) {
        // SAFETY: the control lock is held.
        let sole = unsafe { self.subscribers.read() }.and_then(|list| list.sole.as_ref());
        let is_all = self.tracepoint.is_none_or(|tracepoint| !tracepoint.has_probes());
        let sole = sole.filter(|_| is_all).map_or(null_mut(), |sole| std::ptr::from_ref(sole).cast_mut());
        // P1: pairs with the load in `sole_subscriber`.
        self.sole.swap(sole, Ordering::AcqRel);
    }

    /// The subscriber that the fast path records for; `None` where events take the full path.
    ///
    /// # Safety
    ///
    /// The caller is inside a read-side section for the whole of `'a`.
    #[inline(always)]
    pub(super) unsafe fn sole_subscriber<'a>(&self) -> Option<&'a SoleSubscriber> {
        // P1: pairs with the swap in `choose_path`.
        let sole = self.sole.load(Ordering::Acquire);
        // SAFETY: null, or into the list of subscribers that was current when it was stored: replaced after that list was, and
        // before the grace period after which that is freed. The caller's section keeps that from ending.
        unsafe { sole.as_ref() }
    }

    fn add_keys(&self, turn: &mut Turn<'_>) {
        turn.add(self.key);
        if let Some(tracepoint) = self.tracepoint {
            turn.add(tracepoint.key);
        }
    }
}

impl Subscription {
    /// Starts several subscriptions, whose sites are switched together.
    ///
    /// # Errors
    ///
    /// If sites cannot be switched on; nobody is subscribed then.
    ///
    /// # Panics
    ///
    /// If a channel is finished.
    pub fn start_all(
        subscribers: impl IntoIterator<Item = (&'static Marker, Subscriber)>,
    ) -> Result<Vec<Self>, SwitchError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        tracepoint_ring::panic::install_silent_hook();
        let subscribers: Vec<_> = subscribers.into_iter().collect();
        let locked = update::lock();
        for channel in subscribers.iter().filter_map(|(_, subscriber)| subscriber.channel()) {
            assert!(!channel.is_finished(&locked), "the channel is finished: open another one");
        }
        let mut turn = Turn::on(&locked);
        let (mut subscriptions, mut garbage) = (Vec::new(), Vec::new());
        for (marker, subscriber) in subscribers {
            let ticket = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut entries = marker.entries(&locked);
            let channel = subscriber.channel().cloned();
            if let Some(channel) = &channel {
                channel.subscribed(&locked);
            }
            entries.push(Entry { subscriber, ticket });
            garbage.extend(marker.publish(entries, &locked));
            marker.add_keys(&mut turn);
            subscriptions.push(Self { marker, channel, ticket });
        }
        let turned = turn.apply();
        if turned.is_err() {
            for subscription in std::mem::take(&mut subscriptions) {
                garbage.extend(subscription.take_out(&locked));
                subscription.forget();
            }
        }
        drop(locked);
        update::retire(garbage);
        turned.map(|()| subscriptions)
    }

    /// Gives several subscriptions another filter each, or none, at the cost of one grace period. The sites stay on: each event goes by
    /// the filter of before or by that of after, and none is missed or delivered twice. When this returns the filters of before are not
    /// in use any more (unless it is called inside a probe).
    pub fn filter_all<'s>(changes: impl IntoIterator<Item = (&'s Self, Option<Arc<dyn Filter>>)>) {
        let changes: Vec<_> = changes.into_iter().collect();
        let locked = update::lock();
        let mut garbage = Vec::new();
        for (subscription, filter) in changes {
            let mut entries = subscription.marker.entries(&locked);
            // There is one: it is taken out when the subscription ends.
            for entry in entries.iter_mut().filter(|entry| entry.ticket == subscription.ticket) {
                entry.subscriber.filter.clone_from(&filter);
            }
            garbage.extend(subscription.marker.publish(entries, &locked));
        }
        drop(locked);
        update::retire(garbage);
    }

    /// Ends several subscriptions, whose sites are switched together, at the cost of one grace period.
    pub fn end_all(subscriptions: Vec<Self>) {
        Self::end(&subscriptions);
        subscriptions.into_iter().for_each(Self::forget);
    }

    /// Lets go of a subscription that has ended.
    fn forget(mut self) {
        self.channel = None;
        std::mem::forget(self);
    }

    fn end(subscriptions: &[Self]) {
        let locked = update::lock();
        let mut turn = Turn::off(&locked);
        // All are there, but in a child that has ended its parent's.
        let there: Vec<_> = subscriptions.iter().filter(|subscription| subscription.is_there(&locked)).collect();
        for subscription in &there {
            subscription.marker.add_keys(&mut turn);
        }
        // Switching off does not fail.
        let _ = turn.apply();
        let garbage = there.iter().filter_map(|subscription| subscription.take_out(&locked)).collect();
        drop(locked);
        update::retire(garbage);
    }

    fn is_there(&self, locked: &UpdateGuard<'_>) -> bool {
        self.marker.entries(locked).iter().any(|entry| entry.ticket == self.ticket)
    }

    /// In a forked child: ends the subscriptions of the parent's channels, whose rings are not here, so that events go by the short way
    /// again. Whoever holds them may drop them later, or never.
    pub fn end_parents() {
        let locked = update::lock();
        let mut turn = Turn::off(&locked);
        let mut garbage = Vec::new();
        for marker in crate::registry::all_markers(&locked) {
            let entries = marker.entries(&locked);
            let is_here = |entry: &Entry| entry.subscriber.channel().is_none_or(|channel| channel.is_attached());
            let (kept, parents): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_here);
            for entry in &parents {
                marker.add_keys(&mut turn);
                entry.subscriber.channel().inspect(|channel| channel.unsubscribed(&locked));
            }
            if !parents.is_empty() {
                garbage.extend(marker.publish(kept, &locked));
            }
        }
        // Switching off does not fail.
        let _ = turn.apply();
        drop(locked);
        update::retire(garbage);
        OpenChannel::forget_parents();
    }

    fn take_out(&self, locked: &UpdateGuard<'_>) -> Option<Garbage> {
        if let Some(channel) = &self.channel {
            channel.unsubscribed(locked);
        }
        let mut entries = self.marker.entries(locked);
        entries.retain(|entry| entry.ticket != self.ticket);
        self.marker.publish(entries, locked)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        Self::end(std::slice::from_ref(self));
    }
}
