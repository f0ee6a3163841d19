//! A dt file that holds a trace.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datatrace::{DtReader, Version};
use serde::Serialize;

use super::index::{DtStream, Index, Part, stream_name};
use super::packet::DtPacket;
use super::window::SlotsWindow;
use super::{ACCOUNT_TAG, DtTraceWriter, EDGES_TAG, METADATA_TAG};
use crate::account::Account;
use crate::error::ReadError;
use crate::loss::Damage;
use crate::metadata::Metadata;

/// A dt file that holds a trace: its metadata, its account, and an index of its packets.
///
/// Opening it reads the whole file once. Slots that are torn or being overwritten are left out; torn ones are reported.
#[derive(Debug)]
pub struct DtTrace {
    reader: Arc<DtReader>,
    text: Vec<u8>,
    metadata: Metadata,
    account: Option<Vec<u8>>,
    streams: Vec<DtStream>,
    damage: Vec<Damage>,
}

/// The contents and losses of a trace in a dt file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DtSummary {
    /// Slots of the file.
    pub slots: u64,
    /// Number of packets in slots.
    pub packets: u64,
    /// The number of streams.
    pub streams: u64,
    /// Number of packets before those in the file: overwritten, or never written.
    pub gone_packets: u64,
    /// Number of events in these packets.
    pub gone_events: u64,
    /// Events that were lost before and after the rings, by reason, according to the account; excludes overwritten events.
    pub lost: BTreeMap<String, u64>,
    /// True if the account is complete. Otherwise it has the state of the last time it was written.
    pub complete: bool,
}

impl DtTrace {
    /// Opens a dt file, and indexes its packets.
    ///
    /// # Errors
    /// [`ReadError::Dt`] if it is not a dt file, or its description is damaged; [`ReadError::PlainDt`] if it has no metadata, or
    /// slots that are too small for packets; [`ReadError::Metadata`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::new(DtReader::open(path)?)
    }

    /// Opens a dt file that is in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ReadError> {
        Self::new(DtReader::from_bytes(bytes)?)
    }

    fn new(reader: DtReader) -> Result<Self, ReadError> {
        // A file whose slots are too small for a packet, or have no checksum, is not a trace. Each of up to 2^31 slots would be reported as damaged.
        let size = u64::from(reader.header().buffer_size());
        if reader.header().version() != Version::Framed || size < DtTraceWriter::SLOT_LEAST {
            return Err(ReadError::PlainDt(reader.path().to_owned()));
        }
        let contents = |tag| Ok::<_, ReadError>(reader.tagged_postamble(tag)?.map(|tagged| tagged.contents));
        let Some(text) = contents(METADATA_TAG)? else {
            return Err(ReadError::PlainDt(reader.path().to_owned()));
        };
        let metadata = Metadata::parse(&text).map_err(|error| error.in_file(reader.path()))?;
        let edges = contents(EDGES_TAG)?.unwrap_or_default();
        let account = contents(ACCOUNT_TAG)?;
        let Index { mut streams, damage } = Index::of(&reader, &metadata, &edges);
        // An unreadable account is an error only in `account`.
        let named = account.as_ref().and_then(|bytes| Account::parse(bytes).ok());
        for stream in &mut streams {
            let channels = named.iter().flat_map(|account| &account.channels);
            if let Some(channel) = channels.clone().find(|channel| channel.id == stream.class.id) {
                stream.name = stream_name(&channel.name, stream.instance);
            }
        }
        Ok(Self { reader: Arc::new(reader), text, metadata, account, streams, damage })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.reader.path()
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The text of its metadata.
    pub fn metadata_text(&self) -> &[u8] {
        &self.text
    }

    /// Its account; `None` if there is none.
    ///
    /// # Errors
    /// [`ReadError::Account`].
    pub fn account(&self) -> Result<Option<Account>, ReadError> {
        self.account.as_ref().map(|bytes| Account::parse_named(bytes, self.path())).transpose()
    }

    /// Its contents and losses.
    ///
    /// # Errors
    /// As [`account`](Self::account).
    pub fn summary(&self) -> Result<DtSummary, ReadError> {
        let account = self.account()?;
        let mut summary = DtSummary {
            slots: u64::from(self.reader.header().number_buffers()),
            streams: self.streams.len() as u64,
            complete: account.as_ref().is_some_and(|account| account.complete),
            ..DtSummary::default()
        };
        for stream in &self.streams {
            summary.packets += stream.parts.iter().filter(|part| part.is_slot()).count() as u64;
            let kept = stream.parts.iter().find(|part| part.is_slot()).or(stream.parts.last());
            let number = |of: fn(&Part) -> Option<u64>| kept.and_then(of).unwrap_or(0);
            summary.gone_packets = summary.gone_packets.saturating_add(number(|part| part.sequence).saturating_sub(1));
            summary.gone_events = summary.gone_events.saturating_add(number(|part| part.before));
        }
        for channel in account.iter().flat_map(|account| &account.channels) {
            for (reason, count) in channel.events.iter().flat_map(|event| &event.lost).filter(|(_, count)| **count > 0)
            {
                let sum = summary.lost.entry(reason.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        Ok(summary)
    }

    /// Returns whether the file was written to since it was opened.
    ///
    /// # Errors
    /// [`ReadError::Dt`].
    pub fn has_changed(&self) -> Result<bool, ReadError> {
        Ok(self.reader.has_changed()?)
    }

    /// All packets, sorted by begin time; those of a stream in order. Their bytes stay in the file.
    pub fn packets(&self) -> impl Iterator<Item = DtPacket<'_>> {
        let mut packets = Vec::new();
        for stream in &self.streams {
            let mut latest = 0;
            packets.extend(stream.parts.iter().map(|part| {
                latest = part.begin.max(latest);
                (latest, DtPacket { reader: &self.reader, stream, part })
            }));
        }
        packets.sort_by_key(|(begin, _)| *begin);
        packets.into_iter().map(|(_, packet)| packet)
    }

    /// Slots that are torn, or do not hold a packet of this trace.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    pub(crate) fn streams(&self) -> &[DtStream] {
        &self.streams
    }

    /// The packets of a stream.
    pub(crate) fn window(&self, stream: &DtStream) -> SlotsWindow {
        SlotsWindow::new(Arc::clone(&self.reader), Arc::clone(&stream.parts))
    }
}
