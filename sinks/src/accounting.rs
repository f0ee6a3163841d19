//! Builds account entries from descriptions and from the counters of channels.

use crate::account::{Account, ChannelAccount, Chunk, EventAccount, Policy, StreamAccount};
use crate::description::{ChannelDescription, EventDescription};
use tracepoint_ring::channel::{self, Loss, OpenChannel};

/// Adds the counters of `channel` for `events` to `account`.
pub(crate) fn add_channel(account: &mut Account, channel: &OpenChannel, events: &[EventDescription]) {
    let counted = channel.account();
    let mut entry = channel_entry(&ChannelDescription::of(channel));
    entry.events = events
        .iter()
        .filter(|event| u64::from(event.class) == entry.id)
        .filter_map(|event| counted.events.get(usize::from(event.id)).map(|counts| counted_event(event, counts)))
        .collect();
    // The stream of events without a ring is listed only if it has any.
    for stream in counted.streams.iter().filter(|stream| stream.recorded > 0 || stream.discarded > 0) {
        account.notes.clamped += stream.clamped;
        account.notes.altered += stream.altered;
        account.notes.waited += stream.waited;
        account.notes.waited_ns += stream.waited_ns;
        let mut line = StreamAccount::default();
        (line.instance, line.recorded, line.discarded) = (stream.instance, stream.recorded, stream.discarded);
        entry.streams.push(line);
    }
    account.channels.push(entry);
}

/// Returns the entry of a channel, without events and streams.
pub(crate) fn channel_entry(channel: &ChannelDescription) -> ChannelAccount {
    let mut entry = ChannelAccount::default();
    entry.id = u64::from(channel.class);
    entry.name.clone_from(&channel.name);
    entry.policy = match channel.policy {
        channel::Policy::Overwrite => Policy::Overwrite,
        channel::Policy::Wait => Policy::Wait,
        _ => Policy::Discard,
    };
    entry
}

/// Returns the entry of an event, without counters.
pub(crate) fn event_entry(id: u64, name: &str) -> EventAccount {
    let mut entry = EventAccount::default();
    entry.id = id;
    name.clone_into(&mut entry.name);
    entry
}

/// Converts the account of a sink that was added late to one of the whole trace, for readers that do not support chunks here: calls `count` with the
/// number of records of each stream before the sink. The account of a part that ends before the trace remains that of a part.
pub(crate) fn count_missed(account: &mut Account, count: impl Fn(&mut StreamAccount, u64)) {
    for stream in account.channels.iter_mut().flat_map(|channel| &mut channel.streams) {
        let missed = std::mem::take(&mut stream.before).written;
        stream.written -= missed;
        if missed > 0 {
            count(stream, missed);
        }
    }
    account.chunk = account.chunk.take().filter(|chunk| chunk.detached).map(|_| {
        let mut chunk = Chunk::default();
        (chunk.number, chunk.detached) = (1, true);
        chunk
    });
}

fn counted_event(event: &EventDescription, counts: &channel::EventAccount) -> EventAccount {
    let mut entry = event_entry(event.id.into(), &event.name);
    entry.fired = counts.fired;
    entry.recorded = counts.recorded;
    entry.filtered = counts.filtered;
    entry.suppressed = counts.suppressed;
    let lost = Loss::ALL.iter().map(|reason| (reason, counts.lost(*reason))).filter(|(_, count)| *count > 0);
    entry.lost = lost.map(|(reason, count)| (reason.name().to_owned(), count)).collect();
    entry
}
