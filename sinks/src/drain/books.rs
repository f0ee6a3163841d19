//! The books of a drain: what came out of the rings, and the part of the account that all sinks share.

use crate::account::{Account, ChannelAccount, EventAccount, Policy, StreamAccount};
use crate::description::{ChannelDescription, EventDescription};
use std::collections::HashMap;
use tracepoint_core::channel::{self, Loss, OpenChannel, Packet, StreamId};

/// How far each stream has been taken out of its ring.
#[derive(Debug, Default)]
pub(crate) struct Positions(HashMap<StreamId, Position>);

#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// Records of the stream up to here.
    records: u64,
    /// Those among them that were overwritten before they could be taken.
    overwritten: u64,
}

impl Positions {
    /// Takes note of a packet. What lies between it and the one before it was overwritten.
    pub(crate) fn pass(&mut self, packet: &Packet<'_>) {
        let position = self.0.entry(packet.stream).or_default();
        position.overwritten += packet.events_before.saturating_sub(position.records);
        position.records = packet.events_after;
    }

    /// How many records of `stream` were overwritten.
    pub(super) fn overwritten(&self, stream: StreamId) -> u64 {
        self.0.get(&stream).map_or(0, |position| position.overwritten)
    }
}

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
