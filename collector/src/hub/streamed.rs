//! What a session of the stream protocol has beside its streams: who may send to it, and how far it has come.

use super::chunks::Chunks;
use crate::fragments::Fragments;
use crate::memory::MemoryShare;
use crate::shares::Share;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A session of the stream protocol.
#[derive(Debug)]
pub(crate) struct Streamed {
    /// Identifies the session when its sender connects again.
    pub(crate) key: [u8; 16],
    /// The uuid of the trace.
    pub(crate) trace: [u8; 16],
    /// What data come with. Random, for each connection.
    pub(crate) token: [u8; 16],
    /// Counts the control connections: an older one must not go on.
    pub(crate) connection: u64,
    /// Since when there is no control connection.
    pub(crate) detached: Option<Instant>,
    /// The metadata stream, and the bytes of metadata that were given to the storage.
    pub(crate) metadata: u64,
    pub(crate) metadata_bytes: u64,
    /// Streams by class and instance, and the names of their files.
    pub(crate) streams: HashMap<(u32, u64), u64>,
    pub(crate) names: HashSet<String>,
    pub(crate) fragments: Fragments<Option<MemoryShare>>,
    /// Data have come over this connection: the sender is to be told.
    pub(crate) has_data: bool,
    /// Since when its connection for packets over TCP has been silent: everything that has arrived is read.
    pub(crate) silent: Option<Instant>,
    /// When the sender was last told what is stored, the bytes that were stored since, and what wakes its connection to tell more.
    pub(crate) told: Option<Instant>,
    pub(crate) untold: u64,
    pub(crate) progress: Rc<Notify>,
    /// Its chunks, if it has some.
    pub(crate) chunks: Option<Chunks>,
    /// The clock alignment that was written last, and its bound.
    pub(crate) alignment: Option<(i64, u64)>,
    /// Whether the clock of the sender was compared with the collector's.
    pub(crate) is_clock_checked: bool,
    /// If it is published.
    #[cfg(feature = "nats")]
    pub(crate) published: Option<super::publishing::Published>,
    /// The account so far, and its whole length; its share of all of them.
    pub(crate) account: (Vec<u8>, Option<u64>),
    pub(crate) account_share: Option<Share>,
}

/// After so many stored bytes their sender is told at once: its window is larger, so it need not wait for the next regular time.
const PROMPT: u64 = 256 << 10;
/// The same if it was last told so long ago. If the collector is killed, the sender knows of all but the last packets that they are stored.
const PROMPT_TIME: Duration = Duration::from_millis(5);

impl Streamed {
    /// Whether the account of the sender has come, or begun to come: then its recording has ended.
    pub(super) const fn has_account(&self) -> bool {
        self.account.1.is_some()
    }

    /// Whether it is whole: then it is written.
    pub(super) const fn is_account_written(&self) -> bool {
        self.has_account() && self.account.0.is_empty()
    }

    /// So many bytes of the session were stored.
    pub(super) fn stored(&mut self, bytes: u64) {
        self.untold += bytes;
        if let Some(chunks) = &mut self.chunks {
            chunks.bytes += bytes;
        }
        if self.untold >= PROMPT || self.told.is_none_or(|told| told.elapsed() >= PROMPT_TIME) {
            self.untold = 0;
            self.progress.notify_one();
        }
    }

    /// The sender is told what is stored.
    pub(crate) const fn told(&mut self, now: Instant) {
        (self.told, self.untold) = (Some(now), 0);
    }
}
