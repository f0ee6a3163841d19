//! Ends the subscriptions that a forked child inherited.

use crate::marker::{Entry, Subscription};
use crate::registry::all_markers;
use crate::site::KeyBatch;
use tracepoint_ring::channel::OpenChannel;
use tracepoint_ring::update;

impl Subscription {
    /// In a forked child: ends the subscriptions to the parent's channels, whose rings the child does not have, so that events can take
    /// the fast path again. The child may drop the inherited handles later, or never.
    pub fn end_inherited() {
        let locked = update::lock();
        let mut batch = KeyBatch::off(&locked);
        let mut garbage = Vec::new();
        for marker in all_markers(&locked) {
            let entries = marker.entries(&locked);
            let is_own = |entry: &Entry| entry.subscriber.channel().is_none_or(|channel| channel.is_attached());
            let (kept, inherited): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_own);
            for entry in &inherited {
                marker.add_keys(&mut batch);
                entry.subscriber.channel().inspect(|channel| channel.unsubscribed(&locked));
            }
            if !inherited.is_empty() {
                garbage.extend(marker.publish(kept, &locked));
            }
        }
        // Switching off never fails.
        let _ = batch.apply();
        drop(locked);
        update::retire(garbage);
        OpenChannel::forget_parents();
    }
}
