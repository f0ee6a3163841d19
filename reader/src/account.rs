//! The account: the tracer's own counters, stored as `.account/account.json` in the trace directory (one level down, so that CTF viewers do
//! not take it for a stream).
//!
//! The counters are kept independently of the written packets, so that [`verify()`](crate::verify()) can balance the two. These types define
//! the file format, for readers and writers.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ReadError;
use crate::source::read_bounded;

/// Path of the account in the trace directory.
pub const ACCOUNT_PATH: &str = ".account/account.json";
/// Maximum size of an account that is read, in bytes.
pub const MAX_ACCOUNT: usize = 64 << 20;
/// The value of [`Account::format`].
pub const FORMAT: &str = "tracepoint-account";
/// The version written, and the newest version that can be read.
pub const VERSION: u32 = 1;

/// The account of one trace, which is one session in one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Account {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// UUID of the trace, in the form of [`uuid_text`].
    pub trace_uuid: String,
    /// Name of the session.
    pub session: String,
    /// The traced process.
    pub pid: u32,
    /// True if the session ended normally; the counters are then final.
    pub complete: bool,
    /// True for a snapshot of a session that is still running: the counts and packets of each ring are those of one moment. An account
    /// that is neither complete nor a snapshot need not balance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snapshot: bool,
    /// The channels.
    #[serde(default)]
    pub channels: Vec<ChannelAccount>,
    /// Other things that happened to recorded events.
    #[serde(default)]
    pub notes: Notes,
    /// The part of the trace that the account covers; `None` for the whole trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Chunk>,
}

impl Account {
    /// An account without channels, not yet complete.
    pub fn new(trace_uuid: [u8; 16], session: impl Into<String>, pid: u32) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            trace_uuid: uuid_text(trace_uuid),
            session: session.into(),
            pid,
            complete: false,
            snapshot: false,
            channels: Vec::new(),
            notes: Notes::default(),
            chunk: None,
        }
    }

    /// Reads an account from its bytes.
    ///
    /// # Errors
    /// [`ReadError::Account`] if it is longer than [`MAX_ACCOUNT`], malformed, or of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        Self::parse_named(bytes, Path::new(ACCOUNT_PATH))
    }

    /// Reads the account of the trace in `directory`.
    ///
    /// # Errors
    /// [`ReadError::Io`] if there is none or it cannot be read; otherwise as [`Account::parse`].
    pub fn open(directory: &Path) -> Result<Self, ReadError> {
        let path = directory.join(ACCOUNT_PATH);
        let bytes = read_bounded(&path, MAX_ACCOUNT)?;
        Self::parse_named(&bytes, &path)
    }

    /// The account of the trace in this directory, if it has one.
    pub(crate) fn find(directory: &Path) -> Result<Option<Self>, ReadError> {
        match Self::open(directory) {
            Err(ReadError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            account => account.map(Some),
        }
    }

    pub(crate) fn parse_named(bytes: &[u8], path: &Path) -> Result<Self, ReadError> {
        let error = |reason: String| ReadError::Account { path: path.to_owned(), reason };
        if bytes.len() > MAX_ACCOUNT {
            return Err(error(format!("longer than {MAX_ACCOUNT} bytes")));
        }
        let account: Self = serde_json::from_slice(bytes).map_err(|e| error(format!("not an account: {e}")))?;
        if account.format != FORMAT {
            return Err(error(format!("not an account: its format is not `{FORMAT}`")));
        }
        if account.version != VERSION {
            let version = account.version;
            return Err(error(format!("version {version} is not supported; use a newer reader")));
        }
        Ok(account)
    }

    /// The counters of a stream; `None` if they are not known.
    pub(crate) fn stream(&self, class: u64, instance: u64) -> Option<&StreamAccount> {
        let channel = self.channels.iter().find(|channel| channel.id == class)?;
        channel.streams.iter().find(|stream| stream.instance == instance)
    }

    /// The bytes of the account file.
    pub fn to_json(&self) -> Vec<u8> {
        // Serialization cannot fail: all keys are strings, and all numbers are integers.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// The behaviour of a channel whose ring is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Policy {
    /// New events are discarded.
    #[default]
    Discard,
    /// The oldest packet is overwritten.
    Overwrite,
    /// New events wait for space, for a bounded time, before they are discarded.
    Wait,
}

/// One channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChannelAccount {
    /// Its id, which is the id of its stream class in the metadata.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its behaviour when a ring is full.
    pub policy: Policy,
    /// Its events.
    pub events: Vec<EventAccount>,
    /// Its streams.
    pub streams: Vec<StreamAccount>,
}

/// One kind of event in one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventAccount {
    /// Its id in the metadata.
    pub id: u64,
    /// Its name, `provider:event`.
    pub name: String,
    /// How often its marker was reached.
    pub fired: u64,
    /// How often it was written to a ring.
    pub recorded: u64,
    /// How often the filter rejected it.
    pub filtered: u64,
    /// How often sampling or a rate limit left it out.
    pub suppressed: u64,
    /// How often it was lost before a ring, by reason. The reasons are not a closed set.
    pub lost: BTreeMap<String, u64>,
}

impl EventAccount {
    /// The sum of all losses; `None` if it exceeds 64 bits, which does not happen in a sound account.
    pub fn total_lost(&self) -> Option<u64> {
        self.lost.values().try_fold(0u64, |sum, n| sum.checked_add(*n))
    }
}

/// One stream: one ring of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StreamAccount {
    /// Its stream instance id.
    pub instance: u64,
    /// Name of its file in the trace directory; empty if none was written.
    pub file: String,
    /// Events written to the ring.
    pub recorded: u64,
    /// Packets written to the file.
    pub packets: u64,
    /// Events in these packets.
    pub written: u64,
    /// Events overwritten in the ring before they could be written to the file.
    pub overwritten: u64,
    /// Events that the sink could not write.
    pub sink: u64,
    /// The part of `sink` with a known reason, by reason. The reasons are not a closed set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sink_lost: BTreeMap<String, u64>,
    /// Packets that the sink accepted and that were then lost on the way to a peer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sink_packets: u64,
    /// Events lost before the ring.
    pub discarded: u64,
    /// The counters at the beginning of the chunk: the counters above continue from chunk to chunk.
    #[serde(default, skip_serializing_if = "PriorCounts::is_nothing")]
    pub before: PriorCounts,
}

/// The counters of a stream at the end of the previous chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PriorCounts {
    /// Events written to the ring, up to the last packet in the previous chunks.
    pub recorded: u64,
    /// Packets in them.
    pub packets: u64,
    /// Events in these packets.
    pub written: u64,
    /// Events lost before the ring, according to their last packet.
    pub discarded: u64,
}

impl PriorCounts {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A part of a trace that was split while it was recorded.
///
/// The counters of streams continue from chunk to chunk. The counters of events are not known at the moment at which a chunk ends: they are
/// 0 in all chunks except the last, whose account has them for the whole trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chunk {
    /// Its number; the first is 1.
    pub number: u64,
    /// True for the last chunk of the trace.
    pub last: bool,
    /// True if the recording continued after the sink that wrote this trace was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
    /// True if collectors share the trace: others may have chunks before, after and between the chunks stored here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The oldest chunks, as far as they had been removed when this one ended.
    #[serde(default, skip_serializing_if = "RemovedChunks::is_nothing")]
    pub removed: RemovedChunks,
}

/// Chunks that were removed because newer ones replaced them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RemovedChunks {
    /// The number of chunks.
    pub chunks: u64,
    /// Number of packets in them.
    pub packets: u64,
    /// Events in these packets.
    pub events: u64,
    /// The size of these packets, in bytes.
    pub bytes: u64,
}

impl RemovedChunks {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Other things that happened to recorded events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Notes {
    /// Number of times that were raised to the previous time because the clock had gone backwards.
    pub clamped: u64,
    /// Number of texts in which a NUL was replaced.
    pub altered: u64,
    /// How often an event waited for space in its ring, or for a ring.
    pub waited: u64,
    /// The time that events waited, in nanoseconds.
    pub waited_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A UUID in its usual form: lower-case hexadecimal digits in groups of 8, 4, 4, 4 and 12.
pub fn uuid_text(uuid: [u8; 16]) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(uuid));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
