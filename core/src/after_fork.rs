//! What a forked child does with the subscriptions that it has inherited.

use crate::key::KeyBatch;
use crate::marker::{Entry, Subscription};
use crate::registry::all_markers;
use tracepoint_ring::channel::OpenChannel;
use tracepoint_ring::update;

impl Subscription {
    /// In a forked child: ends the subscriptions of the parent's channels, whose rings are not here, so that events can take the fast path
    /// again. The handles that the child inherited may be dropped later, or never.
    pub fn end_parents() {
        let locked = update::lock();
        let mut batch = KeyBatch::off(&locked);
        let mut garbage = Vec::new();
        for marker in all_markers(&locked) {
            let entries = marker.entries(&locked);
            let is_here = |entry: &Entry| entry.subscriber.channel().is_none_or(|channel| channel.is_attached());
            let (kept, parents): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_here);
            for entry in &parents {
                marker.add_keys(&mut batch);
                entry.subscriber.channel().inspect(|channel| channel.unsubscribed(&locked));
            }
            if !parents.is_empty() {
                garbage.extend(marker.publish(kept, &locked));
            }
        }
        // Switching off does not fail.
        let _ = batch.apply();
        drop(locked);
        update::retire(garbage);
        OpenChannel::forget_parents();
    }
}
