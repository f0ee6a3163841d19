//! Adds up the account of a trace, ring by ring.

use super::journal::Journal;
use super::reconcile::RingAccounting;
use crate::account::{Account, ChannelAccount, EventAccount, Policy, StreamAccount};
use crate::metadata::Metadata;
use crate::ring::{EventCounters, Ring, StreamCounters};
use std::path::Path;
use tracepoint_ring::channel::Loss;

/// The loss reason of events that the process could not count: it was killed before it committed them.
const KILLED: &str = "killed";

/// An account under construction.
#[derive(Debug)]
pub(crate) struct AccountBuilder {
    account: Account,
    /// True if a ring has named the channel.
    named: Vec<bool>,
}

/// A ring does not fit the channels of the account.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelMismatch {
    #[error("its stream class {0} is not in the metadata")]
    UnknownClass(u64),
    #[error("its channel has the name of another channel, `{0}`")]
    NameTaken(String),
    #[error("its channel differs from that of other rings of stream class {0}")]
    Differs(u64),
}

impl AccountBuilder {
    /// An account without any counts.
    pub(crate) fn new(metadata: &Metadata, uuid: [u8; 16], session: &str, pid: u32) -> Self {
        let mut account = Account::new(uuid, session, pid);
        for class in metadata.streams() {
            let entry = |id: u64, name: &str| EventAccount { id, name: name.to_owned(), ..EventAccount::default() };
            let channel = ChannelAccount {
                id: class.id,
                name: format!("stream{}", class.id),
                events: class.events.values().map(|event| entry(event.id, &event.name)).collect(),
                ..ChannelAccount::default()
            };
            account.channels.push(channel);
        }
        let named = vec![false; account.channels.len()];
        Self { account, named }
    }

    /// The index of the channel of a stream class.
    fn index(&self, class: u64) -> Option<usize> {
        self.account.channels.iter().position(|channel| channel.id == class)
    }

    /// Takes the name and policy of a channel from a ring. All rings of a channel must agree.
    pub(crate) fn introduce(&mut self, ring: &Ring) -> Result<(), ChannelMismatch> {
        let class = u64::from(ring.class());
        let Some(of_ring) = self.index(class) else {
            return Err(ChannelMismatch::UnknownClass(class));
        };
        let name = &ring.identity().channel;
        let is_taken =
            |index: usize, channel: &ChannelAccount| index != of_ring && self.named[index] && channel.name == *name;
        if self.account.channels.iter().enumerate().any(|(index, channel)| is_taken(index, channel)) {
            return Err(ChannelMismatch::NameTaken(name.clone()));
        }
        let channel = &mut self.account.channels[of_ring];
        if self.named[of_ring] && (&channel.name, channel.policy) != (name, ring.policy()) {
            return Err(ChannelMismatch::Differs(class));
        }
        self.named[of_ring] = true;
        channel.name.clone_from(name);
        channel.policy = ring.policy();
        Ok(())
    }

    /// Takes the name of a channel from an output, unless a ring has named it.
    pub(crate) fn introduce_unnamed(&mut self, class: u32, name: &str) {
        if let Some(index) = self.index(class.into())
            && !std::mem::replace(&mut self.named[index], true)
        {
            name.clone_into(&mut self.account.channels[index].name);
        }
    }

    /// Adds the events of one ring of the stream class `class`, which messages call `path`.
    pub(crate) fn events(&mut self, class: u32, path: &Path, accounting: &RingAccounting, journal: &mut Journal) {
        let Some(channel) = self.channel(class) else {
            return;
        };
        let mut fits = true;
        let mut add = |sum: &mut u64, count: u64| match sum.checked_add(count) {
            Some(total) => *sum = total,
            None => fits = false,
        };
        let mut unknown = 0u64;
        for (id, (counted, outcome)) in accounting.counted.iter().zip(&accounting.outcomes).enumerate() {
            if *counted == EventCounters::default() && outcome.recorded == 0 {
                continue;
            }
            let Ok(index) = channel.events.binary_search_by_key(&(id as u64), |event| event.id) else {
                unknown += 1;
                continue;
            };
            let event = &mut channel.events[index];
            add(&mut event.fired, counted.fired);
            add(&mut event.recorded, outcome.recorded);
            add(&mut event.filtered, counted.filtered);
            add(&mut event.suppressed, counted.suppressed);
            let reasons = Loss::ALL.iter().map(|reason| reason.name());
            let killed = std::iter::once((KILLED, outcome.killed));
            for (reason, count) in reasons.zip(counted.lost).chain(killed).filter(|(_, count)| *count > 0) {
                add(event.lost.entry(reason.to_owned()).or_default(), count);
            }
        }
        let path = path.display();
        if unknown > 0 {
            journal.wrong(format!("{path}: {unknown} of its events are not in the metadata"));
        }
        if !fits {
            journal.wrong(format!("{path}: the sum of its counters exceeds 64 bits"));
        }
    }

    /// Adds one stream. Records that were not written were overwritten in the ring, or lost by the sink.
    pub(crate) fn stream(&mut self, class: u32, mut stream: StreamAccount, counters: &StreamCounters) {
        let gone = stream.recorded.saturating_sub(stream.written);
        let notes = &mut self.account.notes;
        notes.clamped = notes.clamped.saturating_add(counters.clamped);
        notes.altered = notes.altered.saturating_add(counters.altered);
        notes.waited = notes.waited.saturating_add(counters.waited);
        notes.waited_ns = notes.waited_ns.saturating_add(counters.waited_ns);
        if let Some(channel) = self.channel(class) {
            match channel.policy {
                Policy::Overwrite => stream.overwritten = gone,
                Policy::Discard | Policy::Wait => stream.sink = gone,
            }
            channel.streams.push(stream);
        }
    }

    fn channel(&mut self, class: u32) -> Option<&mut ChannelAccount> {
        let index = self.index(class.into())?;
        self.account.channels.get_mut(index)
    }

    /// The finished account.
    pub(crate) fn close(mut self, complete: bool) -> Account {
        self.account.complete = complete;
        self.account
    }
}
