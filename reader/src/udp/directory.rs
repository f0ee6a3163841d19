//! Writes the data received by a client to a CTF directory, including losses.
//!
//! ```text
//!   DIR/metadata                  as received
//!   DIR/stream_CLASS_INSTANCE     the packets of one stream, as received
//!   DIR/.account/account.json      the server's account, plus the events that did not arrive; only if the account arrived
//! ```
//!
//! Losses appear as in any trace: `events_before` and `packet_seq_num` jump between two packets. If the end of a stream is missing according
//! to the account, an empty packet represents it.

mod error;
mod stream;

use super::events::BatchDecoder;
use super::report::EventBatch;
use crate::account::{Account, StreamAccount};
use crate::loss::Damage;
use crate::recover::{RecoverError, Target};
pub use error::DirectoryError;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use stream::StreamFile;
use tracepoint_wire::udp::INGEST_CHANNEL;

/// Maximum number of streams that are written.
const MAX_STREAMS: usize = 10_000;
/// The reason for losses between server and client.
const NETWORK: &str = "udp_network";
/// The reason if other clients may have read some of them, or if the server may have lost some after it wrote its account.
const ABSENT: &str = "udp_not_here";
/// Maximum number of open stream files.
const MAX_OPEN: usize = 64;

/// Events of the trace that are not in this session, as reported by the server, without their streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbsentEvents {
    /// Number of events sent in earlier sessions, or in the legacy layout.
    pub sent_elsewhere: u64,
    /// Number of events lost by the server since the trace began.
    pub unsent: u64,
}

/// A CTF directory that is being written.
#[derive(Debug)]
pub struct Directory {
    target: Target,
    metadata: Option<File>,
    decoder: BatchDecoder,
    /// Number of metadata bytes written, and how many of the next bytes repeat them.
    described: u64,
    known: u64,
    /// By class and instance.
    streams: BTreeMap<(u32, u64), StreamFile>,
    /// Number of open files.
    open: usize,
}

impl Directory {
    /// Creates the directory, or uses an empty one.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Output`] if it has entries or cannot be created.
    pub fn create(path: &Path) -> Result<Self, DirectoryError> {
        let (target, decoder) = (Target::create(path)?, BatchDecoder::default());
        Ok(Self { target, metadata: None, decoder, described: 0, known: 0, streams: BTreeMap::new(), open: 0 })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.target.path()
    }

    /// Begins a session. The metadata is sent from its beginning again if this is another session of the same trace.
    pub fn begin(&mut self) {
        self.known = self.described;
    }

    /// Appends to the metadata.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Output`] if it cannot be written.
    pub fn grow(&mut self, metadata: &[u8]) -> Result<(), DirectoryError> {
        let known = usize::try_from(self.known).unwrap_or(usize::MAX).min(metadata.len());
        self.known -= known as u64;
        let metadata = metadata.get(known..).unwrap_or_default();
        self.described += metadata.len() as u64;
        let file = match &mut self.metadata {
            Some(file) => file,
            none => none.insert(self.target.create_file("metadata")?),
        };
        file.write_all(metadata).map_err(RecoverError::write(&self.target.path().join("metadata")))?;
        self.decoder.grow(metadata);
        Ok(())
    }

    /// Appends the packets of a batch to the files of their streams, and returns the number of their events. A packet that cannot be
    /// decoded, or contradicts the previous one, is reported to `damaged` and left out.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Output`] if they cannot be written, [`DirectoryError::Metadata`] if the metadata is not well formed.
    pub fn batch(&mut self, batch: &EventBatch, mut damaged: impl FnMut(&Damage)) -> Result<u64, DirectoryError> {
        let mut written = 0;
        let uuid = self.decoder.metadata()?.uuid();
        for packet in self.decoder.packets(batch)? {
            let mut packet = match packet {
                Ok(packet) => packet,
                Err(damage) => {
                    damaged(&damage);
                    continue;
                }
            };
            let (header, bytes) = (packet.header, packet.bytes);
            let known = self.streams.len();
            let id = (header.stream.class, header.stream.instance);
            let refuse =
                |reason: &str| Damage { file: self.target.path().to_owned(), offset: 0, reason: reason.to_owned() };
            let mut last = header.begin;
            let counted = packet.events.try_fold(0, |count, event| {
                last = event?.cycles;
                Ok(count + 1)
            });
            let events = match counted {
                Ok(events) if Some(header.stream.uuid) == uuid && last <= header.end => events,
                Ok(_) => {
                    damaged(&refuse("a packet belongs to another trace, or ends before its last event"));
                    continue;
                }
                Err(damage) => {
                    damaged(&damage);
                    continue;
                }
            };
            if known >= MAX_STREAMS && !self.streams.contains_key(&id) {
                damaged(&refuse("there are too many streams"));
                continue;
            }
            let stream = self.streams.entry(id).or_insert_with(|| StreamFile::new(id));
            if !stream.fits(&header) {
                damaged(&refuse("a packet contradicts the previous one"));
                continue;
            }
            self.open += usize::from(!stream.is_open());
            stream.append(self.target.path(), &header, bytes, events)?;
            written += events;
            if self.open >= MAX_OPEN {
                self.streams.values_mut().for_each(StreamFile::close_file);
                self.open = 0;
            }
        }
        Ok(written)
    }

    /// Ends the streams, and writes the account, if there is one, including the events that did not arrive. They count as lost by the network
    /// unless some events may be `absent` for other reasons.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Output`] if a file cannot be written, [`DirectoryError::Metadata`] if the account is not well formed.
    pub fn finish(mut self, account: Option<&[u8]>, absent: AbsentEvents) -> Result<(), DirectoryError> {
        let Some(account) = account else { return Ok(()) };
        let mut account = Account::parse(account)?;
        let unreported = absent.unsent.saturating_sub(reported(&account));
        let reason = if absent.sent_elsewhere > 0 || unreported > 0 { ABSENT } else { NETWORK };
        for channel in &mut account.channels {
            for line in &mut channel.streams {
                let id = u32::try_from(channel.id).ok().map(|class| (class, line.instance));
                let stream = id.and_then(|id| self.streams.get_mut(&id));
                line.file.clear();
                (line.packets, line.written) = (0, 0);
                if let Some(stream) = stream {
                    stream.end(self.target.path(), line.recorded, line.discarded)?;
                    stream.account(line);
                }
                let known = known_losses(line);
                line.sink = line.recorded.saturating_sub(line.written).saturating_sub(line.overwritten);
                if line.sink > known {
                    *line.sink_lost.entry(reason.to_owned()).or_default() += line.sink - known;
                }
            }
        }
        Ok(self.target.finish(&account)?)
    }
}

/// The events lost by the server according to its account. Messages that were too long are lost before they become events of a
/// stream.
fn reported(account: &Account) -> u64 {
    let lines = account.channels.iter().flat_map(|channel| &channel.streams);
    let streams = lines
        .flat_map(|line| &line.sink_lost)
        .filter(|(reason, _)| reason.starts_with("udp_"))
        .map(|(_, count)| *count);
    let ingest = account.channels.iter().filter(|channel| channel.name == INGEST_CHANNEL);
    let messages = ingest.flat_map(|channel| &channel.streams).map(|line| line.discarded);
    streams.chain(messages).fold(0, u64::saturating_add)
}

/// The losses of a stream in the server's sink with a known reason.
fn known_losses(line: &StreamAccount) -> u64 {
    line.sink_lost.values().fold(0, |sum, count| sum.saturating_add(*count))
}
