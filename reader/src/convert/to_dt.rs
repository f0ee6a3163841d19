//! Converts a CTF directory to a dt file.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use datatrace::{FileStorage, MAX_LOGSIZE};

use super::aligned::aligned;
use super::{ConversionSummary, ConvertError, ConvertOptions, Progress, not_converted};
use crate::account::Account;
use crate::directories::stream_files;
use crate::dt::{DtTraceWriter, stream_name};
use crate::error::ReadError;
use crate::headers::Packets;
use crate::metadata::{MAX_METADATA, Metadata};
use crate::packet::Packet;
use crate::source::{FileWindow, Source, read_bounded};
use crate::stream::{Step, StreamReader};

/// A packet of the directory.
struct ListedPacket {
    file: usize,
    offset: u64,
    size: u64,
    class: u64,
    instance: u64,
    /// True if it has no events, in a stream with counters; it then takes no slot.
    edge: bool,
    /// The number of its events, if counted.
    events: u64,
    time: u64,
}

/// The packets of a directory.
#[derive(Default)]
struct PacketList {
    files: Vec<PathBuf>,
    packets: Vec<ListedPacket>,
    damage: Vec<String>,
}

pub(super) fn convert(
    directory: &Path,
    (metadata, clock_offset): (&Metadata, Option<i64>),
    out: &Path,
    options: ConvertOptions,
    report: &mut dyn FnMut(Progress),
) -> Result<ConversionSummary, ConvertError> {
    if out.symlink_metadata().is_ok() {
        return Err(datatrace::Error::Exists(out.to_owned()).into());
    }
    let metadata_path = directory.join("metadata");
    let text = read_bounded(&metadata_path, MAX_METADATA)?;
    let text = Metadata::text(&text).map_err(|error| error.in_file(&metadata_path))?;
    let aligned = clock_offset.map(|offset| aligned(&text, offset));
    let account = Account::find(directory)?;
    let mut listing = PacketList::of(directory, metadata)?;
    if aligned == Some(None) {
        listing.damage.push(not_converted("the alignment of its clock with that of the collector"));
    }
    let largest = listing.packets.iter().filter(|packet| !packet.edge).map(|packet| packet.size).max().unwrap_or(0);
    let needed = DtTraceWriter::slot_size(largest as usize).max(DtTraceWriter::SLOT_LEAST);
    let size = match options.slot_size {
        Some(size) if u64::from(size) < needed => return Err(ConvertError::SlotSize { size, largest, needed }),
        Some(size) => size,
        None => needed as u32,
    };
    let used = listing.packets.iter().filter(|packet| !packet.edge).count();
    let slots = options.slots.unwrap_or(u32::try_from(used).unwrap_or(u32::MAX).max(1));
    let mut writer = DtTraceWriter::create(FileStorage::begin(out)?, slots, size)?;
    writer.describe(aligned.flatten().as_deref().unwrap_or(&text))?;
    let dropped = (used as u64).saturating_sub(u64::from(slots));
    if dropped > 0 && account.is_some() {
        listing.count(metadata);
    }
    let converted = listing.write(&mut writer, dropped, report)?;
    match account {
        Some(mut account) => {
            rename(&mut account);
            writer.adjust(&mut account);
            writer.finish(&account)?;
        }
        None => writer.save_edges()?,
    }
    writer.publish(false)?;
    Ok(converted)
}

/// Names the streams as in a dt file, regardless of their file names.
fn rename(account: &mut Account) {
    for channel in &mut account.channels {
        for stream in channel.streams.iter_mut().filter(|stream| !stream.file.is_empty()) {
            stream.file = stream_name(&channel.name, Some(stream.instance));
        }
    }
}

impl PacketList {
    /// Lists the packets of all streams, ordered by their end times.
    fn of(directory: &Path, metadata: &Metadata) -> Result<Self, ConvertError> {
        let mut listing = Self::default();
        let mut streams = BTreeSet::new();
        for path in stream_files(directory).map_err(|error| ReadError::io(directory, error))? {
            let file = listing.files.len();
            listing.files.push(path.clone());
            for packet in Packets::open(metadata, &path)? {
                let packet = match packet {
                    Ok(packet) => packet,
                    Err(damage) => {
                        listing.damage.push(not_converted(damage));
                        continue;
                    }
                };
                streams.insert((packet.class.id, packet.instance, packet.instance.is_none().then_some(file)));
                listing.add(file, &packet)?;
            }
        }
        let unnamed = streams.iter().filter(|(_, instance, _)| instance.is_none());
        let mut classes = BTreeSet::new();
        if !unnamed.into_iter().all(|(class, ..)| classes.insert(*class)) {
            return Err(ConvertError::NoInstance(directory.to_owned()));
        }
        listing.packets.sort_by_key(|packet| (packet.time, packet.file, packet.offset));
        Ok(listing)
    }

    fn add(&mut self, file: usize, packet: &Packet) -> Result<(), ConvertError> {
        let size = packet.size();
        if DtTraceWriter::slot_size(size as usize) > u64::from(MAX_LOGSIZE) {
            let path = self.files[file].clone();
            return Err(ConvertError::TooLarge { path, offset: packet.offset, size });
        }
        let counted = packet.sequence.is_some() && packet.events_before.is_some() && packet.instance.is_some();
        self.packets.push(ListedPacket {
            file,
            offset: packet.offset,
            size,
            class: packet.class.id,
            instance: packet.instance.unwrap_or(0),
            edge: counted && packet.content_bits == packet.header_bits,
            events: 1,
            // A packet that was never closed has no end.
            time: packet.end.max(packet.begin).unwrap_or(0),
        });
        Ok(())
    }

    /// Counts the events of the packets. In the account, events without a slot are moved from written to overwritten.
    fn count(&mut self, metadata: &Metadata) {
        let mut events = HashMap::new();
        for (file, path) in self.files.iter().enumerate() {
            let mut begun = None;
            for step in StreamReader::new(metadata, path) {
                match step {
                    Step::Begin(packet) => begun = Some(packet.offset),
                    Step::End(end) => drop(begun.map(|offset| events.insert((file, offset), end.events))),
                    Step::Event(_) | Step::Damage(_) => {}
                }
            }
        }
        for packet in &mut self.packets {
            packet.events = events.get(&(packet.file, packet.offset)).copied().unwrap_or(packet.events);
        }
    }

    /// Writes all packets. The first `dropped` packets that take a slot are overwritten by later ones.
    fn write(
        self,
        writer: &mut DtTraceWriter,
        dropped: u64,
        report: &mut dyn FnMut(Progress),
    ) -> Result<ConversionSummary, ConvertError> {
        let total = self.packets.iter().map(|packet| packet.size).sum();
        let mut converted = ConversionSummary { damage: self.damage, dropped, ..ConversionSummary::default() };
        let (mut done, mut overwritten) = (0, 0);
        let mut streams = BTreeSet::new();
        let mut open: Option<(usize, FileWindow)> = None;
        for packet in &self.packets {
            let path = &self.files[packet.file];
            let failed = |error| ConvertError::Read(ReadError::io(path, error));
            let window = match open.take() {
                Some((file, window)) if file == packet.file => window,
                _ => FileWindow::open(path).map_err(failed)?,
            };
            let (_, window) = open.insert((packet.file, window));
            let bytes = window.bytes(packet.offset, packet.size as usize).map_err(failed)?;
            let Some(bytes) = bytes.get(..packet.size as usize) else {
                let (path, offset) = (path.display(), packet.offset);
                converted
                    .damage
                    .push(not_converted(format_args!("{path}: byte {offset}: the file ends within a packet")));
                continue;
            };
            streams.insert((packet.class, packet.instance));
            let events = if packet.edge { 0 } else { packet.events.max(1) };
            writer.packet(packet.class, packet.instance, bytes, events)?;
            done += packet.size;
            report(Progress { done, total });
            if !packet.edge && overwritten < dropped {
                overwritten += 1;
                continue;
            }
            converted.packets += u64::from(!packet.edge);
            converted.bytes += packet.size;
        }
        converted.streams = streams.len() as u64;
        Ok(converted)
    }
}
