//! The losses of a sender in an account.

use super::stats::LostPackets;
use crate::account::Account;
use std::collections::HashMap;
use tracepoint_ring::channel::StreamId;

/// Events that were lost, by stream and reason.
pub(super) type Losses = HashMap<StreamId, HashMap<LostPackets, u64>>;

/// Adds them to an account that counts them as written.
pub(super) fn add(account: &mut Account, lost: &Losses) {
    for channel in &mut account.channels {
        for stream in &mut channel.streams {
            let id = StreamId { class: channel.id as u32, instance: stream.instance };
            for (reason, events) in lost.get(&id).into_iter().flatten() {
                stream.written = stream.written.saturating_sub(*events);
                stream.sink += events;
                *stream.sink_lost.entry(reason.name().to_owned()).or_default() += events;
            }
        }
    }
}
