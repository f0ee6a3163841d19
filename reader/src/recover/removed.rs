//! Chunks of an output that are gone because newer ones have replaced them: what was in them is not missing.

use crate::account::{Account, Before, uuid_text};
use crate::chunk::chunk_number;
use std::path::PathBuf;
use tracepoint_ring::channel::StreamKey;

/// The chunks before the oldest one that is there.
#[derive(Debug)]
pub(super) struct RemovedChunks {
    pub(super) count: u64,
    /// The account of that one, if it is closed.
    account: Option<Account>,
}

impl RemovedChunks {
    /// Those of an output, from its directory and the chunks in it; `None` if none is gone.
    pub(super) fn of(directories: &[PathBuf]) -> Option<Self> {
        let (number, oldest) = directories.iter().skip(1).find_map(|path| Some((chunk_number(path)?, path)))?;
        (number > 1).then(|| Self { count: number - 1, account: Account::open(oldest).ok() })
    }

    /// What they had of a stream at most: if no account says so, all that there was before the first packet behind them.
    pub(super) fn of_stream(&self, stream: StreamKey) -> Option<Before> {
        let account = self.account.as_ref().filter(|account| account.trace_uuid == uuid_text(stream.uuid));
        if let Some(account) = account {
            let channels = account.channels.iter().filter(|channel| channel.id == u64::from(stream.class));
            let mut streams = channels.flat_map(|channel| &channel.streams);
            return streams.find(|found| found.instance == stream.instance).map(|found| found.before);
        }
        let mut all = Before::default();
        (all.recorded, all.written, all.packets, all.discarded) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        Some(all)
    }
}
