//! The chunks of a session, and the state of its streams at each chunk's beginning: the basis of its account, and of the next collector's resumption.
//!
//! When a chunk begins it gets an incomplete account with the counters so far, and the file `.account/streams`. That file has one line per stream:
//! class, instance, number of the next packet, and file name. The account is completed when the chunk ends.

use crate::files::{make_directories, put};
use crate::memory::MemoryShare;
use crate::storage::{Files, bytes_below};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracepoint_reader::account::{
    ACCOUNT_PATH, Account, ChannelAccount, Chunk, EventAccount, PriorCounts, RemovedChunks, StreamAccount,
};
use tracepoint_reader::metadata::EnvValue;
use tracepoint_reader::{Metadata, chunk_name, chunk_number};
use tracepoint_wire::relay::METADATA_CHANNEL;

/// The file next to the account.
const STREAMS: &str = ".account/streams";

/// Pause before a failed rotation is retried.
const AGAIN: Duration = Duration::from_secs(1);
/// Pause before a failed removal is retried.
const REMOVE_AGAIN: Duration = Duration::from_secs(60);
/// The streams by class and instance.
pub(super) type Lines = BTreeMap<(u32, u64), Line>;

#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    /// The lowest number that was neither stored nor given up at the beginning of the chunk; updated at its end.
    pub(super) next: u64,
    /// Its counters at the beginning and at the end of the chunk.
    pub(super) before: PriorCounts,
    pub(super) end: PriorCounts,
}

impl Line {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Returns the same stream at the beginning of the next chunk.
    pub(super) fn next_chunk(&self) -> Self {
        Self { before: self.end, ..self.clone() }
    }

    /// Returns whether the stream has packets in the chunk.
    pub(super) const fn has_file(&self) -> bool {
        self.end.packets > self.before.packets
    }

    fn account(&self, instance: u64) -> StreamAccount {
        let mut stream = StreamAccount::default();
        stream.instance = instance;
        if self.has_file() {
            stream.file.clone_from(&self.name);
        }
        (stream.recorded, stream.packets, stream.written) = (self.end.recorded, self.end.packets, self.end.written);
        stream.sink = self.end.recorded.saturating_sub(self.end.written);
        stream.discarded = self.end.discarded;
        stream.before = self.before;
        stream
    }
}

/// When sessions rotate to a new chunk, and how many chunks are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rotation {
    pub(crate) size: Option<u64>,
    pub(crate) every: Option<Duration>,
    pub(crate) keep: Option<usize>,
    pub(crate) quota: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Chunks {
    /// The number of the current chunk, from 1.
    pub(super) number: u64,
    /// Set if other collectors may have chunks of the trace.
    pub(super) is_shared: bool,
    pub(super) began: Instant,
    /// Bytes of packets in the current chunk.
    pub(crate) bytes: u64,
    /// State of the streams at its beginning.
    pub(super) lines: Lines,
    /// Earlier chunks that still exist: number, end, content.
    pub(super) closed: VecDeque<(u64, Instant, RemovedChunks)>,
    /// The chunk that the storage is removing, and totals of those removed.
    pub(super) leaving: Option<(u64, Instant, RemovedChunks)>,
    pub(super) removed: RemovedChunks,
    /// When the removal of the oldest chunk failed.
    pub(super) unremoved: Option<Instant>,
    /// Set while the chunk ends: the storage finishes its queue, and packets and the metadata in `waiting` are held back.
    pub(crate) is_ending: bool,
    pub(super) waiting: Vec<(Vec<u8>, Option<MemoryShare>)>,
    pub(super) failed: Option<Instant>,
}

impl Chunks {
    pub(super) fn new(number: u64, lines: Lines) -> Self {
        Self {
            number,
            is_shared: false,
            began: Instant::now(),
            bytes: 0,
            lines,
            closed: VecDeque::new(),
            leaving: None,
            removed: RemovedChunks::default(),
            unremoved: None,
            is_ending: false,
            waiting: Vec::new(),
            failed: None,
        }
    }

    /// Returns the description of the current chunk.
    pub(super) const fn which(&self) -> ChunkInfo {
        ChunkInfo { number: self.number, removed: self.removed, is_shared: self.is_shared }
    }

    pub(super) fn directory(&self, root: &Path) -> PathBuf {
        root.join(chunk_name(self.number))
    }

    pub(super) fn is_due(&self, rotation: &Rotation, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.began);
        let is_due =
            rotation.size.is_some_and(|size| self.bytes >= size) || rotation.every.is_some_and(|every| age >= every);
        let is_again = self.failed.is_none_or(|failed| now.saturating_duration_since(failed) >= AGAIN);
        is_due && self.bytes > 0 && is_again && !self.is_ending
    }

    /// Returns whether the oldest chunk may be removed; a failed attempt is retried after a pause.
    pub(super) fn may_remove(&self, now: Instant) -> bool {
        self.unremoved.is_none_or(|failed| now.saturating_duration_since(failed) >= REMOVE_AGAIN)
    }

    /// Handles the end of a removal. If the chunk is not gone, it becomes the oldest one again.
    pub(super) fn removal_done(&mut self, is_gone: bool, now: Instant) {
        let Some((number, ended, content)) = self.leaving.take() else { return };
        if !is_gone {
            self.unremoved = Some(now);
            return self.closed.push_front((number, ended, content));
        }
        self.removed.chunks += 1;
        self.removed.packets += content.packets;
        self.removed.events += content.events;
        self.removed.bytes += content.bytes;
    }

    /// Keeps metadata while the chunk ends; otherwise returns it.
    pub(super) fn hold(
        &mut self,
        bytes: Vec<u8>,
        memory: Option<MemoryShare>,
    ) -> Option<(Vec<u8>, Option<MemoryShare>)> {
        if !self.is_ending {
            return Some((bytes, memory));
        }
        self.waiting.push((bytes, memory));
        None
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkInfo {
    pub(super) number: u64,
    /// Totals of the chunks removed before it.
    pub(super) removed: RemovedChunks,
    /// Set if other collectors may have chunks of the trace.
    pub(super) is_shared: bool,
}

impl ChunkInfo {
    pub(super) fn chunk(&self, last: bool) -> Chunk {
        let mut chunk = Chunk::default();
        (chunk.number, chunk.last, chunk.removed) = (self.number, last, self.removed);
        chunk.shared = self.is_shared;
        chunk
    }
}

/// Returns the account of a chunk that is not the last one.
pub(super) fn closed(metadata: &Metadata, session: &str, which: ChunkInfo, lines: &Lines) -> Account {
    let pid = match metadata.env_value("vpid") {
        Some(EnvValue::Integer(pid)) => u32::try_from(*pid).unwrap_or_default(),
        _ => 0,
    };
    let mut account = Account::new(metadata.uuid().unwrap_or_default(), session, pid);
    for class in metadata.streams() {
        let streams = || lines.iter().filter(|((id, _), _)| u64::from(*id) == class.id);
        let mut channel = ChannelAccount::default();
        channel.id = class.id;
        channel.name = streams()
            .find_map(|((_, instance), line)| line.name.strip_suffix(&format!("_{instance}")))
            .map_or_else(|| format!("channel {}", class.id), str::to_owned);
        channel.events = class
            .events
            .values()
            .map(|class| {
                let mut event = EventAccount::default();
                (event.id, event.name) = (class.id, class.name.clone());
                event
            })
            .collect();
        channel.streams = streams().map(|((_, instance), line)| line.account(*instance)).collect();
        account.channels.push(channel);
    }
    account.complete = true;
    account.chunk = Some(which.chunk(false));
    account
}

/// Writes the state at the beginning of a chunk.
pub(super) fn write(
    directory: &Path,
    metadata: &Metadata,
    session: &str,
    of: ChunkInfo,
    lines: &Lines,
) -> io::Result<()> {
    let mut account = closed(metadata, session, of, lines);
    account.complete = false;
    put(directory, ACCOUNT_PATH, &account.to_json())?;
    let mut text = String::new();
    for ((class, instance), line) in lines {
        let _ = writeln!(text, "{class} {instance} {} {}", line.next, line.name);
    }
    put(directory, STREAMS, text.as_bytes())
}

/// Reads the state at the beginning of a chunk, and its account.
pub(super) fn read(directory: &Path) -> (Lines, Option<Account>) {
    let text = fs::read_to_string(directory.join(STREAMS)).unwrap_or_default();
    let mut lines: Lines = text
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(4, ' ');
            let mut number = || fields.next()?.parse().ok();
            let (class, instance, next): (u64, u64, u64) = (number()?, number()?, number()?);
            let line = Line { next, ..Line::new(fields.next()?) };
            Some(((u32::try_from(class).ok()?, instance), line))
        })
        .collect();
    let account = Account::open(directory).ok();
    for channel in account.iter().flat_map(|account| &account.channels) {
        for stream in &channel.streams {
            let key = u32::try_from(channel.id).map(|class| (class, stream.instance));
            if let Some(line) = key.ok().and_then(|key| lines.get_mut(&key)) {
                (line.before, line.end) = (stream.before, stream.before);
            }
        }
    }
    (lines, account)
}

/// Returns the totals of a chunk that has ended.
pub(super) fn content(lines: &Lines, bytes: u64) -> RemovedChunks {
    let mut content = RemovedChunks::default();
    content.bytes = bytes;
    for line in lines.values() {
        content.packets += line.end.packets.saturating_sub(line.before.packets);
        content.events += line.end.written.saturating_sub(line.before.written);
    }
    content
}

/// Reads the chunks left by an earlier collector in a session's directory; the session continues in the last one. `None` if there are no chunks.
pub(super) fn reopen(root: &Path, session: &str) -> io::Result<Option<Chunks>> {
    let (mut numbers, mut bare) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if let Some(number) = chunk_number(&path) {
            let list = if path.join(METADATA_CHANNEL).exists() { &mut numbers } else { &mut bare };
            list.push(number);
        }
    }
    numbers.sort_unstable();
    // A chunk without metadata is the only chunk, or one whose removal was interrupted.
    if numbers.is_empty() && bare == [1] {
        numbers = std::mem::take(&mut bare);
    }
    for number in bare {
        fs::remove_dir_all(root.join(chunk_name(number)))?;
    }
    let Some((last, before)) = numbers.split_last() else { return Ok(None) };
    let directory = root.join(chunk_name(*last));
    let (mut lines, account) = read(&directory);
    let ChunkInfo { removed, is_shared, .. } = which(*last, account.as_ref());
    let begins = lines.clone();
    add_files(&directory, &mut lines)?;
    let mut chunks = Chunks { is_shared, ..Chunks::new(*last, lines) };
    chunks.bytes = bytes_below(&directory);
    let mut after = begins;
    for number in before.iter().rev() {
        let directory = root.join(chunk_name(*number));
        let (begins, account) = read(&directory);
        let mut lines: Lines = after.clone();
        for (key, line) in &mut lines {
            line.end = line.before;
            line.before = begins.get(key).map(|line| line.before).unwrap_or_default();
        }
        let which = which(*number, account.as_ref());
        if !account.is_some_and(|account| account.complete) {
            let metadata = Metadata::open(&directory.join(METADATA_CHANNEL)).map_err(io::Error::other)?;
            put(&directory, ACCOUNT_PATH, &closed(&metadata, session, which, &lines).to_json())?;
        }
        chunks.closed.push_front((*number, Instant::now(), content(&lines, bytes_below(&directory))));
        after = begins;
    }
    if is_shared {
        chunks.removed = removed;
        return Ok(Some(chunks));
    }
    // Chunks are removed in order, from the first one.
    chunks.removed.chunks = numbers[0] - 1;
    chunks.removed.packets = after.values().map(|line| line.before.packets).sum();
    chunks.removed.events = after.values().map(|line| line.before.written).sum();
    Ok(Some(chunks))
}

/// Returns the description of a chunk, from its account.
pub(super) fn which(number: u64, account: Option<&Account>) -> ChunkInfo {
    let chunk = account.and_then(|account| account.chunk.as_ref());
    let removed = chunk.map_or_else(RemovedChunks::default, |chunk| chunk.removed);
    ChunkInfo { number, removed, is_shared: chunk.is_some_and(|chunk| chunk.shared) }
}

/// Adds the streams that began in a chunk, found by their files.
fn add_files(directory: &Path, lines: &mut Lines) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().filter(|name| *name != METADATA_CHANNEL).map(str::to_owned) else {
            continue;
        };
        if !entry.file_type()?.is_file() || lines.values().any(|line| line.name == name) {
            continue;
        }
        let Ok(files) = Files::reopen(&entry.path(), true) else { continue };
        let Ok((_, index)) = files.segment().entry(0) else { continue };
        if let Ok(class) = u32::try_from(index.stream_class) {
            lines.insert((class, index.stream_instance), Line::new(&name));
        }
    }
    Ok(())
}

pub(super) fn create(root: &Path, is_shared: bool) -> io::Result<Chunks> {
    make_directories(root, Path::new(&chunk_name(1)))?;
    Ok(Chunks { is_shared, ..Chunks::new(1, Lines::new()) })
}
