//! The streams of which traces consist, each with its files in their order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::continued::Beginning;
use super::whole::{self, Whole};
use super::{Directory, Part};
use crate::account::Account;
use crate::checked_packet::{self, Damaged};
use crate::chunk::chunk_number;
use crate::decode::State;
use crate::directories::stream_files;
use crate::dt::DtTrace;
use crate::loss::Damage;
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::source::{FileWindow, Source};
use crate::stream::StreamReader;
use crate::window::Window;

/// A stream file, by its first packet.
struct First {
    /// The index of its directory.
    part: usize,
    file: PathBuf,
    packet: Packet,
}

/// A stream of a trace.
#[derive(Clone)]
pub(crate) struct TraceStream {
    pub(crate) reader: StreamReader,
    /// Time of its first packet, in nanoseconds since the epoch.
    pub(crate) begin: i64,
    /// Events that were discarded before that, if known.
    pub(crate) discarded_before: Option<u64>,
}

/// The streams of traces, in the order of the merge.
pub(crate) struct Streams {
    pub(crate) all: Vec<TraceStream>,
    /// Files that cannot be read at all.
    pub(crate) damage: Vec<Damage>,
    /// Those of directories, with their places in `all`.
    beginnings: Vec<(usize, Beginning)>,
    since: i64,
}

impl Streams {
    /// Those of all parts, without the packets that end before `since`.
    pub(super) fn of(parts: &[Part], since: i64) -> Self {
        let mut streams = Self { since, all: Vec::new(), damage: Vec::new(), beginnings: Vec::new() };
        let mut traces = whole::traces(parts);
        traces.sort_by_key(|trace| (trace.uuid().is_none(), trace.uuid()));
        for trace in traces {
            match trace {
                Whole::Dt(trace) => streams.add_dt(trace),
                Whole::Directories(mut parts) => {
                    parts.sort_by_key(|directory| chunk_number(&directory.path));
                    streams.add(&parts);
                }
            }
        }
        streams.continue_counters();
        streams
    }

    /// Finds the counters of streams that go on in another directory.
    fn continue_counters(&mut self) {
        for (index, beginning) in &self.beginnings {
            let stream = &mut self.all[*index];
            if stream.discarded_before.is_none() {
                stream.discarded_before = beginning.discarded_before(self.beginnings.iter().map(|(_, other)| other));
            }
        }
    }

    fn add_dt(&mut self, trace: &DtTrace) {
        self.damage.extend(trace.damage().iter().cloned());
        for stream in trace.streams() {
            let (reader, begin) = trace.read(stream);
            self.stream(reader, begin, None);
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
                    self.damage.push(Damage { file: part.path.clone(), offset: 0, reason });
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
                    Err(damage) => self.damage.push(damage),
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
            let paths = files.iter().map(|first| first.file.clone()).collect();
            let reader = StreamReader::of_files(metadata, paths);
            let beginning = Beginning::new(metadata, &reader, &files[0].file, begin, &files[0].packet);
            self.beginnings.extend(beginning.map(|beginning| (self.all.len(), beginning)));
            self.stream(reader, begin, before);
        }
    }

    fn stream(&mut self, mut reader: StreamReader, begin: i64, discarded_before: Option<u64>) {
        let passed = if self.since > begin { reader.pass_before(self.since) } else { None };
        let discarded_before = passed.map_or(discarded_before, |packet| packet.discarded);
        self.all.push(TraceStream { reader, begin, discarded_before });
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
