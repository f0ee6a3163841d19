//! Subscriptions: entries in the subscriber lists of markers.

use super::declared::Marker;
use super::subscriber::{Entry, Filter, Subscriber};
use crate::hooks;
use crate::site::{KeyBatch, SiteSwitchError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::channel::OpenChannel;
use tracepoint_ring::update::{self, Garbage, UpdateGuard};

/// An entry in the subscriber list of a marker. Dropping it unsubscribes, and waits until the subscriber is no longer in use (unless it
/// is dropped inside a probe: see [`crate::probe`]).
#[derive(Debug)]
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    marker: &'static Marker,
    /// The channel that records the events, if the subscriber is one.
    channel: Option<Arc<OpenChannel>>,
    ticket: u64,
}

impl Marker {
    /// Adds a subscriber. The marker and the sites of its tracepoint are on when this returns.
    ///
    /// # Errors
    ///
    /// If the sites cannot be switched on.
    pub fn subscribe(&'static self, subscriber: Subscriber) -> Result<Subscription, SiteSwitchError> {
        let mut subscriptions = Subscription::start_all([(self, subscriber)])?;
        Ok(subscriptions.remove(0))
    }
}

impl Subscription {
    /// Starts several subscriptions, whose sites are switched together.
    ///
    /// # Errors
    ///
    /// If sites cannot be switched on; then no subscription is started.
    ///
    /// # Panics
    ///
    /// If a channel is finished.
    pub fn start_all(
        subscribers: impl IntoIterator<Item = (&'static Marker, Subscriber)>,
    ) -> Result<Vec<Self>, SiteSwitchError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let subscribers: Vec<_> = subscribers.into_iter().collect();
        let locked = update::lock();
        for channel in subscribers.iter().filter_map(|(_, subscriber)| subscriber.channel()) {
            assert!(!channel.is_finished(&locked), "the channel is finished: open another one");
        }
        let mut batch = KeyBatch::on(&locked);
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
            marker.add_keys(&mut batch);
            subscriptions.push(Self { marker, channel, ticket });
        }
        let switched = batch.apply();
        if switched.is_err() {
            for subscription in std::mem::take(&mut subscriptions) {
                garbage.extend(subscription.remove(&locked));
                subscription.forget();
            }
        }
        drop(locked);
        update::retire(garbage);
        hooks::switched();
        switched.map(|()| subscriptions)
    }

    /// Replaces or removes the filters of several subscriptions, at the cost of one grace period. The sites stay on: each event is
    /// subject to the old filter or to the new one, and no event is missed or delivered twice. When this returns, the old filters are no
    /// longer in use (unless it is called inside a probe).
    pub fn filter_all<'s>(changes: impl IntoIterator<Item = (&'s Self, Option<Arc<dyn Filter>>)>) {
        let changes: Vec<_> = changes.into_iter().collect();
        let locked = update::lock();
        let mut garbage = Vec::new();
        for (subscription, filter) in changes {
            let mut entries = subscription.marker.entries(&locked);
            // At most one entry matches: it is removed when the subscription ends.
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

    /// Drops a subscription that has already ended.
    fn forget(mut self) {
        self.channel = None;
        std::mem::forget(self);
    }

    fn end(subscriptions: &[Self]) {
        let locked = update::lock();
        let mut batch = KeyBatch::off(&locked);
        // A forked child may have ended inherited subscriptions before: see `end_inherited`.
        let listed: Vec<_> = subscriptions.iter().filter(|subscription| subscription.is_listed(&locked)).collect();
        for subscription in &listed {
            subscription.marker.add_keys(&mut batch);
        }
        // Switching off never fails.
        let _ = batch.apply();
        let garbage = listed.iter().filter_map(|subscription| subscription.remove(&locked)).collect();
        drop(locked);
        update::retire(garbage);
        hooks::switched();
    }

    fn is_listed(&self, locked: &UpdateGuard<'_>) -> bool {
        self.marker.entries(locked).iter().any(|entry| entry.ticket == self.ticket)
    }

    fn remove(&self, locked: &UpdateGuard<'_>) -> Option<Garbage> {
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
