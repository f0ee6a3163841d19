//! State of a stream-protocol session in addition to its streams: its authorisation and its progress.

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
pub(crate) struct StreamedSession {
    /// Identifies the session when its sender reconnects.
    pub(crate) key: [u8; 16],
    pub(crate) trace: [u8; 16],
    /// The token in packets' connections and datagrams; random, new for each control connection.
    pub(crate) token: [u8; 16],
    /// Number of the current control connection; an older one must stop.
    pub(crate) connection: u64,
    /// Since when there has been no control connection.
    pub(crate) detached: Option<Instant>,
    /// The metadata stream, and the number of metadata bytes given to the storage.
    pub(crate) metadata: u64,
    pub(crate) metadata_bytes: u64,
    /// Streams by class and instance, and their file names.
    pub(crate) streams: HashMap<(u32, u64), u64>,
    pub(crate) names: HashSet<String>,
    pub(crate) fragments: Fragments<Option<MemoryShare>>,
    /// Set when data has arrived on this connection; READY then reports it to the sender.
    pub(crate) has_data: bool,
    /// Since when the TCP data connection has been silent, with everything that arrived already read.
    pub(crate) silent: Option<Instant>,
    /// Time of the last acknowledgement, bytes stored since then, and the notification that wakes the connection to send the next.
    pub(crate) told: Option<Instant>,
    pub(crate) untold: u64,
    pub(crate) progress: Rc<Notify>,
    /// Its chunks, if it is stored in chunks.
    pub(crate) chunks: Option<Chunks>,
    /// The last clock alignment written, and its bound.
    pub(crate) alignment: Option<(i64, u64)>,
    /// Set once the sender's clock was compared with the collector's.
    pub(crate) is_clock_checked: bool,
    /// State for publishing, if it is published.
    #[cfg(feature = "nats")]
    pub(crate) published: Option<super::publishing::PublishedSession>,
    /// The account received so far, and its total length; and its share of the memory for accounts.
    pub(crate) account: (Vec<u8>, Option<u64>),
    pub(crate) account_share: Option<Share>,
}

/// Number of stored bytes after which an acknowledgement is sent at once. It is smaller than the sender's window, so the sender need not wait for the
/// regular interval.
const PROMPT: u64 = 256 << 10;
/// Time since the last acknowledgement after which the next stored packet is acknowledged at once. After a kill, the sender then lacks
/// acknowledgements for the last packets only.
const PROMPT_TIME: Duration = Duration::from_millis(5);

impl StreamedSession {
    /// Returns whether the sender's account has begun to arrive, which means that recording has ended.
    pub(super) const fn has_account(&self) -> bool {
        self.account.1.is_some()
    }

    /// Returns whether the account is complete and therefore written.
    pub(super) const fn is_account_written(&self) -> bool {
        self.has_account() && self.account.0.is_empty()
    }

    /// Records that `bytes` bytes of the session were stored.
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

    /// Records that an acknowledgement was sent.
    pub(crate) const fn told(&mut self, now: Instant) {
        (self.told, self.untold) = (Some(now), 0);
    }
}
