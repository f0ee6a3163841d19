//! The entry of the channel of ingested messages, in the account for clients.

use crate::account::{Account, ChannelAccount, EventAccount, StreamAccount};
use std::collections::BTreeMap;
use tracepoint_ring::channel::StreamId;
use tracepoint_wire::udp::{INGEST_CHANNEL, INGEST_EVENT};

/// Counters of ingested messages.
#[derive(Clone, Debug)]
pub(super) struct IngestCounts {
    pub(super) stream: StreamId,
    pub(super) recorded: u64,
    pub(super) too_long: u64,
    /// Messages that became events and were lost in the server, by reason.
    pub(super) lost: BTreeMap<&'static str, u64>,
}

/// Adds the channel of ingested messages.
pub(super) fn add(account: &mut Account, counts: IngestCounts) {
    let IngestCounts { stream, recorded, too_long, lost } = counts;
    let mut event = EventAccount::default();
    INGEST_EVENT.clone_into(&mut event.name);
    event.fired = recorded + too_long;
    event.recorded = recorded;
    event.lost.insert("too_large".to_owned(), too_long);
    let mut line = StreamAccount::default();
    line.instance = stream.instance;
    line.recorded = recorded;
    line.discarded = too_long;
    line.sink = lost.values().sum();
    line.written = recorded.saturating_sub(line.sink);
    line.sink_lost = lost.into_iter().map(|(reason, events)| (reason.to_owned(), events)).collect();
    let mut entry = ChannelAccount::default();
    entry.id = u64::from(stream.class);
    INGEST_CHANNEL.clone_into(&mut entry.name);
    entry.events.push(event);
    entry.streams.push(line);
    account.channels.push(entry);
}
