//! Opens traces and merges the events of their streams by time.
//!
//! `directory` finds traces below a path, and `whole` groups directories, dt files and chunks that belong to one trace; `streams` has the files of
//! each stream in order, and `continued` those that continue in another directory. A `cursor` per stream yields events and losses, in a heap by time.
//! Traces of several hosts are put on one clock first (`alignment`). `incremental` merges packets that arrive, from live sessions or followed
//! directories.

mod alignment;
mod by_packet;
mod continued;
mod cursor;
mod directory;
mod incremental;
mod index;
mod losses;
mod spans;
mod streams;
mod whole;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};

use crate::clock_alignment::ClockAlignment;
use crate::dt::DtTrace;
use crate::error::ReadError;
use crate::item::Item;
use crate::loss::Damage;
use crate::metadata::Metadata;
use cursor::StreamCursor;

pub use by_packet::TraceVisitor;
pub(crate) use directory::traces;
pub(crate) use incremental::IncrementalMerge;
pub use incremental::PollResult;
pub use index::{IndexedPacket, PacketRun, StreamIndex, TraceIndex};
pub(crate) use losses::{KnownCounters, LossFinder};
pub(crate) use streams::{Streams, TraceStream};

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
    /// The alignment of its clock, if any.
    alignment: Option<ClockAlignment>,
}

impl Directory {
    /// Identifies its clock.
    fn clock(&self) -> Option<[u8; 16]> {
        self.metadata.clocks().first().and_then(|clock| clock.uuid)
    }
}

impl Trace {
    /// Opens all traces at these paths as one: see [`Trace::open`]. A trace reachable through several paths is opened once.
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

    /// Opens the trace in a directory, all traces in the tree below it, or the trace in a dt file, and reads the metadata. If a collector has
    /// stored the difference between the clock of a trace and its own, times are those of the collector: see [`Trace::alignments`].
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

    /// The alignment of each trace's clock with a collector, by the trace's directory; `None` if it was not aligned. The metadata already includes
    /// it.
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

    /// Damage of metadata that fails its checksums. Its events are read nevertheless.
    pub fn metadata_damage(&self) -> impl Iterator<Item = Damage> {
        self.parts.iter().filter_map(|part| match part {
            Part::Directory(directory) => Damage::of_metadata(&directory.path.join("metadata"), &directory.metadata),
            Part::Dt(trace) => Damage::of_metadata(trace.path(), trace.metadata()),
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

    /// All items of the traces, merged by time. At equal times, streams are ordered by their trace's UUID (without one: last, by path),
    /// then by class and instance, as in babeltrace2; each stream keeps its own order. Files that cannot be read at all come first.
    pub fn items(&self) -> Items {
        self.items_since(i64::MIN)
    }

    /// The same without packets that end before `since`, in nanoseconds since the epoch; only the headers of these packets are read
    /// from files. Events before `since` may be included if their packet also has later ones.
    pub fn items_since(&self, since: i64) -> Items {
        let Streams { all, damage, .. } = Streams::of(&self.parts, since);
        let mut items = Items { cursors: Vec::new(), heap: BinaryHeap::new(), damage: damage.into() };
        for (index, TraceStream { reader, begin, before }) in all.into_iter().enumerate() {
            items.heap.push(Reverse((begin, index)));
            items.cursors.push(StreamCursor::new(reader, begin, before));
        }
        items
    }

    /// The streams for [`items_since`](Self::items_since).
    pub(crate) fn streams_since(&self, since: i64) -> Streams {
        Streams::of(&self.parts, since)
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
    cursors: Vec<StreamCursor>,
    /// The time of the next item of each cursor, and its index: equal times are ordered by index.
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    damage: VecDeque<Damage>,
}

impl Items {
    /// Number of packets so far without a checksum, although the tracer's packets have a place for it: they are from an older version, or from rings.
    pub fn unchecked(&self) -> u64 {
        self.cursors.iter().map(StreamCursor::unchecked).sum()
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
            // A cursor that has not started is put back at the time of its first item.
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
