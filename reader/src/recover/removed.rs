//! Chunks of an output that were removed because newer ones replaced them: their contents do not count as missing.

use crate::account::{Account, PriorCounts, uuid_text};
use crate::chunk::chunk_number;
use std::path::PathBuf;
use tracepoint_ring::channel::StreamKey;

/// The chunks before the oldest existing one.
#[derive(Debug)]
pub(super) struct RemovedChunks {
    pub(super) count: u64,
    /// The account of that chunk, if it is closed.
    account: Option<Account>,
}

impl RemovedChunks {
    /// The removed chunks of an output, from its directory and the chunks in it; `None` if none is missing.
    pub(super) fn of(directories: &[PathBuf]) -> Option<Self> {
        let (number, oldest) = directories.iter().skip(1).find_map(|path| Some((chunk_number(path)?, path)))?;
        (number > 1).then(|| Self { count: number - 1, account: Account::open(oldest).ok() })
    }

    /// An upper bound for their part of a stream: if no account records it, everything before the first packet after them.
    pub(super) fn of_stream(&self, stream: StreamKey) -> Option<PriorCounts> {
        let account = self.account.as_ref().filter(|account| account.trace_uuid == uuid_text(stream.uuid));
        if let Some(account) = account {
            let channels = account.channels.iter().filter(|channel| channel.id == u64::from(stream.class));
            let mut streams = channels.flat_map(|channel| &channel.streams);
            return streams.find(|found| found.instance == stream.instance).map(|found| found.before);
        }
        let mut all = PriorCounts::default();
        (all.recorded, all.written, all.packets, all.discarded) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        Some(all)
    }
}
