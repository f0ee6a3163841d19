//! The part of the account that all sinks of a drain share: what the channels counted.

use crate::account::{Account, ChannelAccount, EventAccount, Policy, StreamAccount};
use crate::description::{ChannelDescription, EventDescription};
use tracepoint_core::channel::{self, Loss, OpenChannel};

/// Adds to `account` what `channel` itself counted.
pub(super) fn add_channel(account: &mut Account, channel: &OpenChannel, events: &[EventDescription]) {
    let description = ChannelDescription::of(channel);
    let counted = channel.account();
    let mut entry = ChannelAccount::default();
    entry.id = u64::from(description.class);
    entry.policy = account_policy(description.policy);
    entry.name = description.name;
    entry.events = events
        .iter()
        .filter(|event| event.class == description.class)
        .filter_map(|event| counted.events.get(usize::from(event.id)).map(|counts| event_account(event, counts)))
        .collect();
    // The stream of events without a ring is always counted, and present only if there were any.
    for stream in counted.streams.iter().filter(|stream| stream.recorded > 0 || stream.discarded > 0) {
        account.notes.clamped += stream.clamped;
        account.notes.altered += stream.altered;
        account.notes.waited += stream.waited;
        account.notes.waited_ns += stream.waited_ns;
        let mut line = StreamAccount::default();
        line.instance = stream.instance;
        line.recorded = stream.recorded;
        line.discarded = stream.discarded;
        entry.streams.push(line);
    }
    account.channels.push(entry);
}

/// A policy, as accounts have it.
pub(crate) const fn account_policy(policy: channel::Policy) -> Policy {
    match policy {
        channel::Policy::Overwrite => Policy::Overwrite,
        channel::Policy::Wait => Policy::Wait,
        _ => Policy::Discard,
    }
}

fn event_account(event: &EventDescription, counts: &channel::EventAccount) -> EventAccount {
    let mut entry = EventAccount::default();
    entry.id = u64::from(event.id);
    entry.name.clone_from(&event.name);
    entry.fired = counts.fired;
    entry.recorded = counts.recorded;
    entry.filtered = counts.filtered;
    entry.suppressed = counts.suppressed;
    let lost = Loss::ALL.iter().map(|reason| (reason, counts.lost(*reason))).filter(|(_, count)| *count > 0);
    entry.lost = lost.map(|(reason, count)| (reason.name().to_owned(), count)).collect();
    entry
}
