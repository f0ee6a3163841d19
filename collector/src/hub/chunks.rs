//! The chunks of a session, and where its streams were when each began: what its account says, and what the next collector goes on with.
//!
//! A chunk gets an account when it begins, which is not complete and has the counters up to there, and the file `.account/streams`: for each
//! stream a line of class, instance, the number of the next packet, and the name of its file. Its end makes the account complete.

use super::directory::{make_directories, put};
use crate::memory::MemoryShare;
use crate::storage::{Files, bytes_below};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracepoint_reader::account::{
    ACCOUNT_PATH, Account, Before, ChannelAccount, Chunk, EventAccount, Removed, StreamAccount,
};
use tracepoint_reader::metadata::EnvValue;
use tracepoint_reader::{Metadata, chunk_name, chunk_number};
use tracepoint_wire::relay::METADATA_CHANNEL;

/// The file beside the account.
const STREAMS: &str = ".account/streams";

/// The pause before a failed rotation is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// The pause before a failed removal is tried again.
const REMOVE_AGAIN: Duration = Duration::from_secs(60);
/// The streams by class and instance.
pub(super) type Lines = BTreeMap<(u32, u64), Line>;

/// One stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The name of its file.
    pub(super) name: String,
    /// The lowest number that was neither stored nor given up when the chunk began; at its end, then.
    pub(super) next: u64,
    /// Its counters at the beginning and at the end of the chunk.
    pub(super) before: Before,
    pub(super) end: Before,
}

impl Line {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The same stream at the beginning of the next chunk.
    pub(super) fn next_chunk(&self) -> Self {
        Self { before: self.end, ..self.clone() }
    }

    /// Whether it has packets in the chunk.
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

/// When sessions go on in another chunk, and how many chunks are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rotation {
    pub(crate) size: Option<u64>,
    pub(crate) every: Option<Duration>,
    pub(crate) keep: Option<usize>,
    pub(crate) quota: Option<u64>,
}

/// The chunks of a session.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// The number of the present chunk, from 1 on.
    pub(super) number: u64,
    /// Whether other collectors may have chunks of the trace.
    pub(super) is_shared: bool,
    pub(super) began: Instant,
    /// Bytes of packets in it.
    pub(crate) bytes: u64,
    /// Where the streams were when it began.
    pub(super) lines: Lines,
    /// The chunks before it that are there: number, when it ended, content.
    pub(super) closed: VecDeque<(u64, Instant, Removed)>,
    /// The one before them, which the storage is to remove; and what is removed.
    pub(super) leaving: Option<(u64, Instant, Removed)>,
    pub(super) removed: Removed,
    /// When the removal of the oldest one failed.
    pub(super) unremoved: Option<Instant>,
    /// It ends when the storage has done what it was given. Packets wait until then, and this metadata.
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
            removed: Removed::default(),
            unremoved: None,
            is_ending: false,
            waiting: Vec::new(),
            failed: None,
        }
    }

    /// Which one the present chunk is.
    pub(super) const fn which(&self) -> Which {
        Which { number: self.number, removed: self.removed, is_shared: self.is_shared }
    }

    /// The directory of the present chunk.
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

    /// Whether the oldest chunk may be removed: an attempt that failed is repeated after a pause.
    pub(super) fn may_remove(&self, now: Instant) -> bool {
        self.unremoved.is_none_or(|failed| now.saturating_duration_since(failed) >= REMOVE_AGAIN)
    }

    /// The storage has removed the chunk that leaves, or, if it is not gone, could not: then that stays the oldest one.
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

    /// Metadata waits if the chunk ends; otherwise it is given back.
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

/// Which chunk of a trace it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Which {
    pub(super) number: u64,
    /// Those that were removed before it.
    pub(super) removed: Removed,
    /// Whether other collectors may have chunks of the trace.
    pub(super) is_shared: bool,
}

impl Which {
    pub(super) fn chunk(&self, last: bool) -> Chunk {
        let mut chunk = Chunk::default();
        (chunk.number, chunk.last, chunk.removed) = (self.number, last, self.removed);
        chunk.shared = self.is_shared;
        chunk
    }
}

/// The account of a chunk before the last one.
pub(super) fn closed(metadata: &Metadata, session: &str, which: Which, lines: &Lines) -> Account {
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

/// Writes what is known of a chunk when it begins.
pub(super) fn write(directory: &Path, metadata: &Metadata, session: &str, of: Which, lines: &Lines) -> io::Result<()> {
    let mut account = closed(metadata, session, of, lines);
    account.complete = false;
    put(directory, ACCOUNT_PATH, &account.to_json())?;
    let mut text = String::new();
    for ((class, instance), line) in lines {
        let _ = writeln!(text, "{class} {instance} {} {}", line.next, line.name);
    }
    put(directory, STREAMS, text.as_bytes())
}

/// What is known of a chunk since it began.
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

/// The content of a chunk that has ended.
pub(super) fn content(lines: &Lines, bytes: u64) -> Removed {
    let mut content = Removed::default();
    content.bytes = bytes;
    for line in lines.values() {
        content.packets += line.end.packets.saturating_sub(line.before.packets);
        content.events += line.end.written.saturating_sub(line.before.written);
    }
    content
}

/// The chunks in the directory of a session of an earlier collector, which goes on in the last one; `None`: it has none.
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
    // The only chunk has no metadata yet; the removal of others did not get further.
    if numbers.is_empty() && bare == [1] {
        numbers = std::mem::take(&mut bare);
    }
    for number in bare {
        fs::remove_dir_all(root.join(chunk_name(number)))?;
    }
    let Some((last, before)) = numbers.split_last() else { return Ok(None) };
    let directory = root.join(chunk_name(*last));
    let (mut lines, account) = read(&directory);
    let Which { removed, is_shared, .. } = which(*last, account.as_ref());
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
    // Chunks are removed from the first one on.
    chunks.removed.chunks = numbers[0] - 1;
    chunks.removed.packets = after.values().map(|line| line.before.packets).sum();
    chunks.removed.events = after.values().map(|line| line.before.written).sum();
    Ok(Some(chunks))
}

/// Which chunk it is, by its account.
pub(super) fn which(number: u64, account: Option<&Account>) -> Which {
    let chunk = account.and_then(|account| account.chunk.as_ref());
    let removed = chunk.map_or_else(Removed::default, |chunk| chunk.removed);
    Which { number, removed, is_shared: chunk.is_some_and(|chunk| chunk.shared) }
}

/// Adds the streams that began in a chunk, by their files.
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

/// Creates the first chunk of a session.
pub(super) fn create(root: &Path, is_shared: bool) -> io::Result<Chunks> {
    make_directories(root, Path::new(&chunk_name(1)))?;
    Ok(Chunks { is_shared, ..Chunks::new(1, Lines::new()) })
}
