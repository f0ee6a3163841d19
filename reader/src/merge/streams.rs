//! The streams of traces, each with its files in order.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::continued::StreamStart;
use super::losses::{CountersAtEnd, KnownCounters};
use super::whole::{self, TraceParts};
use super::{Directory, Part};
use crate::account::{Account, PriorCounts};
use crate::checked_packet::{self, DamagedPacket};
use crate::chunk::chunk_number;
use crate::decode::State;
use crate::directories::stream_files;
use crate::dt::DtTrace;
use crate::event::Stream;
use crate::loss::Damage;
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::source::{FileWindow, Source};
use crate::stream::StreamReader;
use crate::window::Window;

/// A stream file and its first packet.
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
    /// Its counters before that time.
    pub(crate) before: KnownCounters,
}

/// The streams of traces, in the order of the merge.
pub(crate) struct Streams {
    pub(crate) all: Vec<TraceStream>,
    /// Files that cannot be read at all.
    pub(crate) damage: Vec<Damage>,
    /// The beginnings of streams in directories, with their indices in `all`.
    beginnings: Vec<(usize, StreamStart)>,
    /// The UUID, class and instance of the streams that have packets in a directory.
    present: BTreeSet<([u8; 16], u64, u64)>,
    since: i64,
}

impl Streams {
    /// The streams of all parts, without packets that end before `since`.
    pub(super) fn of(parts: &[Part], since: i64) -> Self {
        let (all, damage, beginnings, present) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        let mut streams = Self { all, damage, beginnings, present, since };
        let mut traces = whole::traces(parts);
        traces.sort_by_key(|trace| (trace.uuid().is_none(), trace.uuid()));
        for trace in traces {
            match trace {
                TraceParts::Dt(trace) => streams.add_dt(trace),
                TraceParts::Directories(mut parts) => {
                    parts.sort_by_key(|directory| chunk_number(&directory.path));
                    streams.add(&parts);
                }
            }
        }
        streams.continue_counters();
        streams.remove_present();
        streams
    }

    /// Removes the streams without packets that have packets in another directory of the same trace. After a streaming process was killed, the
    /// collector has packets that the recovered trace lacks.
    fn remove_present(&mut self) {
        let present = &self.present;
        let key = |stream: &Stream| Some((stream.metadata.uuid()?, stream.class.id, stream.instance?));
        let is_present = |reader: &StreamReader| {
            reader.stream().and_then(|stream| key(stream)).is_some_and(|key| present.contains(&key))
        };
        self.all.retain(|stream| !(stream.before.is_missing && is_present(&stream.reader)));
    }

    /// Finds the counters of streams that continue in another directory.
    fn continue_counters(&mut self) {
        for (index, beginning) in &self.beginnings {
            if let Some(before) = beginning.before(self.beginnings.iter().map(|(_, other)| other)) {
                let known = &mut self.all[*index].before;
                *known = KnownCounters { at_end: known.at_end, ..before };
            }
        }
    }

    fn add_dt(&mut self, trace: &DtTrace) {
        self.damage.extend(trace.damage().iter().cloned());
        for stream in trace.streams() {
            let (reader, begin) = StreamReader::of_dt(trace, stream);
            self.stream(reader, begin, KnownCounters::default());
        }
    }

    /// Adds directories that form one trace: a complete trace, or its chunks.
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
                        // A file without an instance, or without a time to order several files by, is a separate stream.
                        let alone = (packet.instance.is_none() || packet.begin.is_none()).then(|| file.clone());
                        let key = (packet.class.id, packet.instance, alone);
                        streams.entry(key).or_default().push(First { part: index, file, packet });
                    }
                    Ok(None) => {}
                    Err(damage) => self.damage.push(damage),
                }
            }
        }
        // The account of a part says how much was recorded before it, and how much at its end.
        let accounts: Vec<_> = parts.iter().map(|part| Account::open(&part.path).ok()).collect();
        let known: BTreeSet<_> = streams.keys().map(|(class, instance, _)| (*class, *instance)).collect();
        let uuid = parts.first().and_then(|part| part.metadata.uuid());
        let keys = known.iter().filter_map(|(class, instance)| Some((uuid?, *class, (*instance)?)));
        self.present.extend(keys);
        let begin = self.all.len();
        for mut files in streams.into_values() {
            files.sort_by(|a, b| (a.part, a.packet.begin, &a.file).cmp(&(b.part, b.packet.begin, &b.file)));
            // The metadata grows from chunk to chunk.
            let metadata = files.last().map_or(&parts[0].metadata, |last| &parts[last.part].metadata);
            let First { file, packet, .. } = &files[0];
            let stream = Stream {
                metadata: metadata.clone(),
                class: packet.class.clone(),
                instance: packet.instance,
                file: file.clone(),
            };
            let begin = stream.nanoseconds(packet.begin.unwrap_or(0));
            let stream = (packet.class.id, packet.instance);
            let of = |account: &'_ Account| account.stream(stream.0, stream.1?).cloned();
            let (first, last) = (files[0].part, files[files.len() - 1].part);
            // Without an account, a sink may have been added after the stream had begun.
            let of_chunk = accounts[first].as_ref().filter(|account| account.chunk.is_some());
            let of_account = of_chunk.and_then(of).map(|stream| stream.before);
            let mut before = match (&of_account, &accounts[first]) {
                (Some(before), _) => KnownCounters {
                    events: packet.events_before.map(|_| before.recorded),
                    discarded: Some(before.discarded),
                    ..KnownCounters::default()
                },
                (None, Some(account)) if account.chunk.is_none() => KnownCounters::of_beginning(packet),
                _ => KnownCounters::default(),
            };
            // Only packets lost by a sink may be missing at the end.
            let ended = accounts[last].as_ref().filter(|account| account.complete || account.snapshot).and_then(of);
            before.at_end = ended
                .filter(|stream| stream.sink_packets > 0)
                .map(|stream| CountersAtEnd { events: stream.recorded, discarded: stream.discarded });
            let paths = files.iter().map(|first| first.file.clone()).collect();
            let reader = StreamReader::of_files(metadata, paths);
            let beginning = StreamStart::new(metadata, &reader, &files[0].file, begin, &files[0].packet);
            // An account is more reliable than the other directories.
            let beginning = beginning.filter(|_| of_account.is_none());
            self.beginnings.extend(beginning.map(|beginning| (self.all.len(), beginning)));
            self.stream(reader, begin, before);
        }
        let begin = self.all[begin..].iter().map(|stream| stream.begin).min();
        self.add_missing(parts, &accounts, known, begin);
    }

    /// Adds the streams of an account of which the sink has lost all packets. A trace without another stream begins with its clock.
    fn add_missing(
        &mut self,
        parts: &[&Directory],
        accounts: &[Option<Account>],
        mut known: BTreeSet<(u64, Option<u64>)>,
        begin: Option<i64>,
    ) {
        let last = parts.iter().zip(accounts).rev().find_map(|(part, account)| Some((part, account.as_ref()?)));
        let Some((part, account)) = last.filter(|(_, account)| account.complete || account.snapshot) else { return };
        // The account of the first directory that has a stream contains the counters before it. Found by key: accounts may list very many streams.
        let first = LazyCell::new(|| {
            let mut first: BTreeMap<_, PriorCounts> = BTreeMap::new();
            for channel in accounts.iter().flatten().flat_map(|account| &account.channels) {
                for stream in &channel.streams {
                    first.entry((channel.id, stream.instance)).or_insert(stream.before);
                }
            }
            first
        });
        for channel in &account.channels {
            let Some(class) = part.metadata.stream(channel.id) else { continue };
            for counts in channel.streams.iter().filter(|stream| stream.sink > 0) {
                if !known.insert((channel.id, Some(counts.instance))) {
                    continue;
                }
                let stream = Stream {
                    metadata: part.metadata.clone(),
                    class: class.clone(),
                    instance: Some(counts.instance),
                    file: part.path.join(&counts.file),
                };
                let begin = begin.unwrap_or_else(|| stream.nanoseconds(0));
                if begin < self.since {
                    continue;
                }
                let before = first.get(&(channel.id, counts.instance)).copied().unwrap_or_default();
                // Events that the sink has written are not lost: their packets are damaged, and reported as such.
                let recorded = counts.recorded.saturating_sub(counts.overwritten).saturating_sub(before.recorded);
                let at_end = CountersAtEnd {
                    events: before.recorded.saturating_add(recorded.min(counts.sink)),
                    discarded: counts.discarded,
                };
                let counters = KnownCounters {
                    events: Some(before.recorded),
                    discarded: Some(before.discarded),
                    at_end: Some(at_end),
                    is_missing: true,
                    ..KnownCounters::default()
                };
                self.all.push(TraceStream { reader: StreamReader::of_missing(stream), begin, before: counters });
            }
        }
    }

    fn stream(&mut self, mut reader: StreamReader, begin: i64, before: KnownCounters) {
        let passed = if self.since > begin { reader.pass_before(self.since) } else { None };
        let of_passed = |packet: Packet| KnownCounters {
            discarded: packet.discarded,
            at_end: before.at_end,
            ..KnownCounters::default()
        };
        let before = passed.map_or(before, of_passed);
        self.all.push(TraceStream { reader, begin, before });
    }
}

/// Reads the header of the first undamaged packet; `None` for an empty file. The file is closed again, because a trace may have more streams
/// than a process may have open files.
fn first_packet(metadata: &Metadata, file: &Path) -> Result<Option<Packet>, Damage> {
    let damage = |offset, reason| Damage { file: file.to_owned(), offset, reason };
    let window = FileWindow::open(file).map_err(|error| damage(0, format!("cannot be opened: {error}")))?;
    if window.length() == 0 {
        return Ok(None);
    }
    let (mut window, mut state) = (Window::File(window), State::new(metadata.slots()));
    let mut first = checked_packet::open(&mut window, metadata, &mut state, 0, 1);
    while let Err(DamagedPacket { next: Some(next), .. }) = first {
        first = checked_packet::open(&mut window, metadata, &mut state, next, 1);
    }
    first.map(Some).map_err(|damaged| damage(damaged.offset, damaged.reason))
}
