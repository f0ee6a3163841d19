//! Opens traces and merges the events of their streams by time.

mod alignment;
mod cursor;
mod directory;
mod incremental;
mod spans;
mod watermark;
mod whole;

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::checked_packet::{self, Damaged};
use crate::chunk::chunk_number;
use crate::clock_alignment::ClockAlignment;
use crate::decode::State;
use crate::dt::DtTrace;
use crate::error::ReadError;
use crate::event::Event;
use crate::loss::{Damage, Loss};
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::source::{FileWindow, Source};
use crate::stream::StreamReader;
use crate::window::Window;
use cursor::StreamCursor;
use whole::Whole;

pub use directory::stream_files;
pub(crate) use directory::traces;
pub(crate) use incremental::IncrementalMerge;
pub use incremental::Polled;
pub use watermark::Watermark;

/// An item of a merged trace.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Item {
    /// An event.
    Event(Event),
    /// Events or packets are missing here.
    Loss(Loss),
    /// Reading of a stream ended here.
    Damage(Damage),
}

/// One or several traces that were recorded into one directory tree.
#[derive(Debug)]
pub struct Trace {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Directory(Directory),
    Dt(DtTrace),
}

impl Part {
    fn path(&self) -> &Path {
        match self {
            Self::Directory(directory) => &directory.path,
            Self::Dt(trace) => trace.path(),
        }
    }
}

/// A directory with a CTF trace.
#[derive(Debug)]
struct Directory {
    metadata: Metadata,
    path: PathBuf,
    /// How its clock was aligned, if it was.
    alignment: Option<ClockAlignment>,
}

impl Directory {
    /// Identifies its clock.
    fn clock(&self) -> Option<[u8; 16]> {
        self.metadata.clocks().first().and_then(|clock| clock.uuid)
    }
}

/// A stream file, by its first packet.
struct First {
    /// The index of its directory.
    part: usize,
    file: PathBuf,
    packet: Packet,
}

impl Trace {
    /// Opens all traces at these paths as one: see [`Trace::open`]. A trace that several paths lead to is opened once.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn open_all(paths: &[PathBuf]) -> Result<Self, ReadError> {
        let mut parts: Vec<Part> = Vec::new();
        for path in paths {
            for part in Self::find(path)? {
                let is_known = parts.iter().any(|known| known.path() == part.path());
                if !is_known {
                    parts.push(part);
                }
            }
        }
        Ok(Self::of_parts(parts))
    }

    /// The traces, with their clocks aligned.
    fn of_parts(mut parts: Vec<Part>) -> Self {
        alignment::align(parts.iter_mut().filter_map(|part| match part {
            Part::Directory(directory) => Some(directory),
            Part::Dt(_) => None,
        }));
        Self { parts }
    }

    /// Opens the trace in a directory, all traces in the tree below it, or the trace in a dt file, and reads the metadata. Where a collector has
    /// stored how the clock of a trace differs from its own, times are those of the collector: see [`Trace::alignments`].
    ///
    /// # Errors
    /// [`ReadError::NotATrace`] if there is no metadata, [`ReadError::Io`] and [`ReadError::Metadata`] if it cannot be
    /// read; those of [`DtTrace::open`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Ok(Self::of_parts(Self::find(path)?))
    }

    fn find(path: &Path) -> Result<Vec<Part>, ReadError> {
        if path.is_file() {
            return match DtTrace::open(path) {
                Err(ReadError::Dt(datatrace::ReadError::Header { reason, .. })) => Err(ReadError::NotATrace {
                    path: path.to_owned(),
                    reason: format!("this is neither a directory nor a dt file ({reason})"),
                }),
                opened => Ok(vec![Part::Dt(opened?)]),
            };
        }
        let mut parts = Vec::new();
        for directory in traces(path)? {
            let metadata = Metadata::open(&directory.join("metadata"))?;
            parts.push(Part::Directory(Directory { metadata, path: directory, alignment: None }));
        }
        Ok(parts)
    }

    /// The clock of each trace, by its directory: how it was aligned with that of a collector, which the metadata has already; `None` if it was not.
    pub fn alignments(&self) -> impl Iterator<Item = (&Path, Option<ClockAlignment>)> {
        self.parts.iter().map(|part| match part {
            Part::Directory(directory) => (directory.path.as_path(), directory.alignment),
            Part::Dt(trace) => (trace.path(), None),
        })
    }

    /// The metadata of each trace, with its directory or dt file.
    pub fn metadata(&self) -> impl Iterator<Item = (&Path, &Metadata)> {
        self.parts.iter().map(|part| match part {
            Part::Directory(directory) => (directory.path.as_path(), &directory.metadata),
            Part::Dt(trace) => (trace.path(), trace.metadata()),
        })
    }

    /// The dt file that was opened; `None` if it was a directory.
    pub fn dt(&self) -> Option<&DtTrace> {
        self.dt_files().next()
    }

    /// All dt files that were opened.
    pub fn dt_files(&self) -> impl Iterator<Item = &DtTrace> {
        self.parts.iter().filter_map(|part| match part {
            Part::Directory(_) => None,
            Part::Dt(trace) => Some(trace),
        })
    }

    /// The dt file that was opened.
    ///
    /// # Errors
    /// Returns the trace if it was a directory.
    pub fn into_dt(mut self) -> Result<DtTrace, Self> {
        match self.parts.pop() {
            Some(Part::Dt(trace)) => Ok(trace),
            other => {
                self.parts.extend(other);
                Err(self)
            }
        }
    }

    /// Everything in the traces, merged by time. At equal times, streams keep the order of their trace's UUID (without one: last, by path),
    /// of their class and of their instance, as in babeltrace2, and each stream its own order. Files that cannot be read at all come first.
    pub fn items(&self) -> Items {
        self.items_since(i64::MIN)
    }

    /// The same without the packets that end before `since`, in nanoseconds since the epoch: of the packets of files only the headers are
    /// read before that. Events before `since` may come all the same, if they are in a packet with later ones.
    pub fn items_since(&self, since: i64) -> Items {
        let mut items = Items { since, cursors: Vec::new(), heap: BinaryHeap::new(), damage: VecDeque::new() };
        let mut traces = whole::traces(&self.parts);
        traces.sort_by_key(|trace| (trace.uuid().is_none(), trace.uuid()));
        for trace in traces {
            match trace {
                Whole::Dt(trace) => items.add_dt(trace),
                Whole::Directories(mut parts) => {
                    parts.sort_by_key(|directory| chunk_number(&directory.path));
                    items.add(&parts);
                }
            }
        }
        items
    }
}

impl From<DtTrace> for Trace {
    fn from(trace: DtTrace) -> Self {
        Self { parts: vec![Part::Dt(trace)] }
    }
}

/// The iterator that [`Trace::items`] returns.
#[derive(Debug)]
pub struct Items {
    since: i64,
    cursors: Vec<StreamCursor>,
    /// The time of the next item of each cursor, and its index: equal times are ordered by index.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    damage: VecDeque<Damage>,
}

impl Items {
    /// How many packets so far have no checksum, although the tracer's packets have a place for it: they are of an older trace, or of rings.
    pub fn unchecked(&self) -> u64 {
        self.cursors.iter().map(StreamCursor::unchecked).sum()
    }

    fn add_dt(&mut self, trace: &DtTrace) {
        self.damage.extend(trace.damage().iter().cloned());
        for stream in trace.streams() {
            let (reader, begin) = trace.read(stream);
            self.cursor(reader, begin, None);
        }
    }

    /// Adds directories that are one trace: a whole one, or chunks of it.
    fn add(&mut self, parts: &[&Directory]) {
        // Files of the same class and instance are one stream: ordered by chunk, then by their first packets.
        let mut streams: BTreeMap<_, Vec<First>> = BTreeMap::new();
        for (index, part) in parts.iter().enumerate() {
            let files = match stream_files(&part.path) {
                Ok(files) => files,
                Err(error) => {
                    let reason = format!("cannot be listed: {error}");
                    self.damage.push_back(Damage { file: part.path.clone(), offset: 0, reason });
                    continue;
                }
            };
            for file in files {
                match first_packet(&part.metadata, &file) {
                    Ok(Some(packet)) => {
                        // A file is a stream of its own without an instance, or without a time by which several can be ordered.
                        let alone = (packet.instance.is_none() || packet.begin.is_none()).then(|| file.clone());
                        let key = (packet.class.id, packet.instance, alone);
                        streams.entry(key).or_default().push(First { part: index, file, packet });
                    }
                    Ok(None) => {}
                    Err(damage) => self.damage.push_back(damage),
                }
            }
        }
        // The account of a part tells how much was recorded before it and is not here.
        let goes_on = |part: &&Directory| chunk_number(&part.path).is_none_or(|number| number > 1);
        let account = |part: &&Directory| goes_on(part).then(|| Account::open(&part.path).ok()).flatten();
        let account = |part: &&Directory| account(part).filter(|account| account.chunk.is_some());
        let accounts: Vec<_> = parts.iter().map(account).collect();
        for mut files in streams.into_values() {
            files.sort_by(|a, b| (a.part, a.packet.begin, &a.file).cmp(&(b.part, b.packet.begin, &b.file)));
            // The metadata grows from chunk to chunk.
            let metadata = files.last().map_or(&parts[0].metadata, |last| &parts[last.part].metadata);
            let First { file, packet, .. } = &files[0];
            let stream = crate::event::Stream {
                metadata: metadata.clone(),
                class: packet.class.clone(),
                instance: packet.instance,
                file: file.clone(),
            };
            let begin = stream.nanoseconds(packet.begin.unwrap_or(0));
            let stream = (packet.class.id, packet.instance);
            let before = accounts[files[0].part].as_ref();
            let before = before.and_then(|account| account.discarded_before(stream.0, stream.1?));
            let paths = files.into_iter().map(|first| first.file).collect();
            self.cursor(StreamReader::of_files(metadata, paths), begin, before);
        }
    }

    fn cursor(&mut self, mut reader: StreamReader, begin: i64, discarded_before: Option<u64>) {
        let passed = if self.since > begin { reader.pass_before(self.since) } else { None };
        let discarded_before = passed.map_or(discarded_before, |packet| packet.discarded);
        self.heap.push(Reverse((begin, self.cursors.len())));
        self.cursors.push(StreamCursor::new(reader, begin, discarded_before));
    }
}

impl Iterator for Items {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if let Some(damage) = self.damage.pop_front() {
            return Some(Item::Damage(damage));
        }
        loop {
            let Reverse((_, index)) = self.heap.pop()?;
            let cursor = &mut self.cursors[index];
            // A cursor that has not begun is put back at the time of its first item.
            let item = cursor.take();
            if let Some(time) = cursor.advance() {
                self.heap.push(Reverse((time, index)));
            }
            if item.is_some() {
                return item;
            }
        }
    }
}

/// Reads the header of the first packet that is not damaged; `None` for an empty file. The file is closed again, because a trace may have more streams than a
/// process may have open files.
fn first_packet(metadata: &Metadata, file: &Path) -> Result<Option<Packet>, Damage> {
    let damage = |offset, reason| Damage { file: file.to_owned(), offset, reason };
    let window = FileWindow::open(file).map_err(|error| damage(0, format!("cannot be opened: {error}")))?;
    if window.length() == 0 {
        return Ok(None);
    }
    let (mut window, mut state) = (Window::File(window), State::new(metadata.slots()));
    let mut first = checked_packet::open(&mut window, metadata, &mut state, 0, 1);
    while let Err(Damaged { next: Some(next), .. }) = first {
        first = checked_packet::open(&mut window, metadata, &mut state, next, 1);
    }
    first.map(Some).map_err(|damaged| damage(damaged.offset, damaged.reason))
}
