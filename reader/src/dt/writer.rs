//! Writes a trace into a dt file, and accounts for the packets that it overwrites.

use std::collections::{BTreeMap, VecDeque};

use datatrace::{DtWriter, Error, FRAME_SIZE, FileStorage, Layout, Version};

use super::{ACCOUNT_TAG, EDGES_TAG, METADATA_TAG};
use crate::account::Account;
use tracepoint_ring::channel::HEADER_SIZE;

/// Space reserved for empty packets, in bytes.
const EDGES_SIZE: usize = 16 << 10;

/// Identifies a stream: class and instance.
type Key = (u64, u64);

/// The empty packets at the beginning and the end of a stream.
#[derive(Debug, Default)]
struct Edges {
    first: Vec<u8>,
    last: Vec<u8>,
}

/// Overwritten packets.
#[derive(Clone, Copy, Debug, Default)]
struct Overwritten {
    packets: u64,
    events: u64,
}

/// Writes a trace into a dt file, one packet per slot. The newest packets are kept.
///
/// Written packets survive a kill at any instant: the file records which of its slots are complete.
#[derive(Debug)]
pub struct DtTraceWriter {
    file: DtWriter<FileStorage>,
    slots: usize,
    metadata: Vec<u8>,
    edges: BTreeMap<Key, Edges>,
    /// The stream and the number of events of each slot, oldest first.
    kept: VecDeque<(Key, u64)>,
    overwritten: BTreeMap<Key, Overwritten>,
}

impl DtTraceWriter {
    /// Minimum slot size in bytes: large enough for a packet's header.
    pub const SLOT_LEAST: u64 = Self::slot_size(HEADER_SIZE);

    /// The slot size required for packets of up to `packet` bytes. Files with slots smaller than [`SLOT_LEAST`](Self::SLOT_LEAST) are not read as
    /// traces.
    pub const fn slot_size(packet: usize) -> u64 {
        (packet as u64 + FRAME_SIZE as u64).next_multiple_of(4)
    }

    /// Creates a file of `slots` slots with `slot_size` bytes each, at its full size. It has no name before [`publish`](Self::publish).
    ///
    /// # Errors
    /// Those of [`DtWriter::create`].
    pub fn create(storage: FileStorage, slots: u32, slot_size: u32) -> Result<Self, Error> {
        let layout = Layout::new(slot_size, slots).version(Version::Framed).full_size();
        Ok(Self {
            file: DtWriter::create(storage, layout)?,
            slots: slots as usize,
            metadata: Vec::new(),
            edges: BTreeMap::new(),
            kept: VecDeque::new(),
            overwritten: BTreeMap::new(),
        })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// Those of [`DtWriter::publish`].
    pub fn publish(&mut self, replace: bool) -> Result<(), Error> {
        self.file.publish(replace)
    }

    /// Appends to the metadata. Packets that need it may follow. The file keeps two copies of the metadata.
    ///
    /// # Errors
    /// Those of [`DtWriter::put_postamble`]; the file keeps the previous metadata.
    pub fn describe(&mut self, metadata: &[u8]) -> Result<(), Error> {
        let before = self.metadata.len();
        self.metadata.extend_from_slice(metadata);
        let put = self.file.put_postamble(METADATA_TAG, &self.metadata);
        let put = put.and_then(|()| self.file.put_postamble(METADATA_TAG, &self.metadata));
        if put.is_err() {
            self.metadata.truncate(before);
        }
        put
    }

    /// Writes a postamble of the program, twice, because the file has two copies.
    ///
    /// # Errors
    /// Those of [`DtWriter::put_postamble`]; the previous contents remain.
    pub fn put_postamble(&mut self, tag: [u8; 4], contents: &[u8]) -> Result<(), Error> {
        self.file.put_postamble(tag, contents)?;
        self.file.put_postamble(tag, contents)
    }

    /// Reserves space for an account of `bytes` bytes and for the empty packets of several dozen streams, so that [`save`](Self::save)
    /// succeeds on a full disk.
    ///
    /// # Errors
    /// Those of [`DtWriter::reserve_postamble`].
    pub fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        self.file.reserve_postamble(EDGES_TAG, EDGES_SIZE)?;
        self.file.reserve_postamble(ACCOUNT_TAG, bytes)
    }

    /// Writes a packet of a stream with `events` events. It replaces the oldest packet if all slots are used. A packet without events takes no
    /// slot: the first and the last one of each stream are kept for [`save`](Self::save).
    ///
    /// # Errors
    /// Those of [`DtWriter::put_slot`]: the packet is not in the file.
    pub fn packet(&mut self, class: u64, instance: u64, bytes: &[u8], events: u64) -> Result<(), Error> {
        let key = (class, instance);
        if events == 0 {
            let edges = self.edges.entry(key).or_default();
            let place = if edges.first.is_empty() { &mut edges.first } else { &mut edges.last };
            place.clear();
            place.extend_from_slice(bytes);
            return Ok(());
        }
        let put = self.file.put_slot(bytes);
        let begun = put.is_ok() || self.file.header().in_progress().is_some();
        if begun
            && self.kept.len() == self.slots
            && let Some((key, events)) = self.kept.pop_front()
        {
            let overwritten = self.overwritten.entry(key).or_default();
            overwritten.packets += 1;
            overwritten.events += events;
        }
        if put.is_ok() {
            self.kept.push_back((key, events));
        }
        put
    }

    /// Adjusts an account of all packets to those in the file: events overwritten here are counted as overwritten.
    pub fn adjust(&self, account: &mut Account) {
        for channel in &mut account.channels {
            for stream in &mut channel.streams {
                let overwritten = self.overwritten.get(&(channel.id, stream.instance)).copied().unwrap_or_default();
                stream.packets = stream.packets.saturating_sub(overwritten.packets);
                stream.written = stream.written.saturating_sub(overwritten.events);
                stream.overwritten = stream.overwritten.saturating_add(overwritten.events);
            }
        }
    }

    /// Writes the adjusted account and the empty packets of the streams. A failure of one does not prevent the other.
    ///
    /// # Errors
    /// Those of [`DtWriter::put_postamble`]: the file keeps the previous version of the part that failed.
    pub fn save(&mut self, account: &Account) -> Result<(), Error> {
        let edges = self.save_edges();
        let account = self.file.put_postamble(ACCOUNT_TAG, &account.to_json());
        edges.and(account)
    }

    /// Writes the empty packets of the streams, for a trace without an account.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn save_edges(&mut self) -> Result<(), Error> {
        let edges = self.edges.values().flat_map(|edges| [edges.first.as_slice(), &edges.last]);
        let edges = edges.collect::<Vec<_>>().concat();
        self.file.put_postamble(EDGES_TAG, &edges)
    }

    /// Writes them for the last time, twice, because the file has two copies.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn finish(&mut self, account: &Account) -> Result<(), Error> {
        let first = self.save(account);
        let second = self.save(account);
        first.and(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datatrace::{DtReader, MAX_TAGGED};

    #[test]
    fn the_account_is_written_without_edges() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let path = place.path().join("edges.dt");
        let mut writer = DtTraceWriter::create(FileStorage::begin(&path)?, 1, 104)?;
        writer.publish(false)?;
        writer.packet(0, 0, &vec![0; MAX_TAGGED as usize], 0)?;
        let account = Account::new([7; 16], "session", 1);
        assert!(matches!(writer.finish(&account), Err(Error::Limit { .. })));
        let reader = DtReader::open(&path)?;
        let found = reader.tagged_postamble(ACCOUNT_TAG)?.ok_or("no account")?;
        assert_eq!(Account::parse(&found.contents)?, account);
        assert_eq!(reader.tagged_postamble(EDGES_TAG)?, None);
        Ok(())
    }
}
