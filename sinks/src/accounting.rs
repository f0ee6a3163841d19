//! Entries of accounts: what channels count, and what sinks are told of channels and events.

use crate::account::{Account, ChannelAccount, EventAccount, Policy, StreamAccount};
use crate::description::{ChannelDescription, EventDescription};
use tracepoint_core::channel::{self, Loss, OpenChannel};

/// Adds to `account` what `channel` counted of `events`.
pub(crate) fn add_channel(account: &mut Account, channel: &OpenChannel, events: &[EventDescription]) {
    let counted = channel.account();
    let mut entry = channel_entry(&ChannelDescription::of(channel));
    entry.events = events
        .iter()
        .filter(|event| u64::from(event.class) == entry.id)
        .filter_map(|event| counted.events.get(usize::from(event.id)).map(|counts| counted_event(event, counts)))
        .collect();
    // The stream of events without a ring is always counted, and present only if there were any.
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

/// The entry of a channel, without events and streams.
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

/// The entry of an event, without counters.
pub(crate) fn event_entry(id: u64, name: &str) -> EventAccount {
    let mut entry = EventAccount::default();
    entry.id = id;
    name.clone_into(&mut entry.name);
    entry
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
