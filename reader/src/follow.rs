//! Follows traces that are still being written, and merges their events by time.
//!
//! A [`Follow`] repeatedly looks for directories, files and packets. Complete packets are read in time order, as in
//! a live session. A stream without an unread packet holds back the others until it cannot have anything earlier. That is derived from the [`Rings`]
//! of the session if they are found. Otherwise the [`Watermark`] is used: sessions hand over the contents of a ring within two seconds, so nothing
//! earlier than what was written at the end of one look can appear two seconds later.
//!
//! ```text
//!   look: rings ─▶ directories ─▶ files, by inode ─▶ metadata, if it has grown ─▶ headers of whole packets ─▶ accounts ─▶ watermark
//!   poll: a stream without an event ─▶ its next packet ─▶ merge ─▶ the earliest events, up to what all streams have reached
//! ```
//!
//! A file is identified by its inode, because a rotation moves a trace into its first chunk. The files of a stream in all chunks are one stream. A
//! trace has ended when each of its directories has an account. Accounts are looked for before directories: in the opposite order, a rotation
//! between the two would look like the end. Metadata that stays unreadable for some seconds is reported as damage; events that it already describes
//! are still shown. Metadata that is readable but fails its checksums is reported separately from the items.

mod directory;
mod files;
mod rings;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::ReadError;
use crate::item::Item;
use crate::loss::Damage;
use crate::merge::{IncrementalMerge, PollResult, traces};
use crate::watermark::Watermark;
use directory::{Directory, MetadataState};
use files::{FileStep, Files, StreamKey};
use rings::{RingProgress, Rings};

/// Maximum time that a packet stays in its ring, which applies to a session whose packets are drained by another process.
const PACKET_DELAY: Duration = Duration::from_secs(2);
/// Interval between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Several traces that are followed.
///
/// Memory is bounded by one packet of each stream, plus 40 bytes for each unread packet.
#[derive(Debug)]
pub struct Follow {
    paths: Vec<PathBuf>,
    /// The same paths without symbolic links.
    canonical: Vec<PathBuf>,
    since: i64,
    directories: BTreeMap<PathBuf, Directory>,
    /// True while metadata is being written.
    is_unread: bool,
    /// The numbers of streams in the merge.
    numbers: HashMap<StreamKey, u64>,
    streams: BTreeMap<u64, Files>,
    merge: IncrementalMerge,
    run_directory: Option<PathBuf>,
    rings: Rings,
    /// The state of the rings at the last look.
    known: RingProgress,
    watermark: Watermark,
    /// The time up to which everything has arrived, by the watermark.
    reached: i64,
    /// The newest time found by the first look.
    first_newest: Option<i64>,
    looked: Option<Instant>,
    /// The number of looks so far.
    looks: u64,
    damage: VecDeque<Damage>,
    /// Damage of metadata that is used nevertheless.
    metadata_damage: Vec<Damage>,
}

impl Follow {
    /// Follows all traces at and below these paths, including traces that begin later. Packets that end before `since`,
    /// in nanoseconds since the epoch, are left out.
    ///
    /// # Errors
    /// [`ReadError::NotATrace`] if there is no trace yet; [`ReadError::Io`], [`ReadError::Metadata`].
    pub fn open(paths: &[PathBuf], since: i64) -> Result<Self, ReadError> {
        for path in paths {
            if path.is_file() {
                let reason = "a file cannot be followed, only a directory".to_owned();
                return Err(ReadError::NotATrace { path: path.clone(), reason });
            }
            for directory in traces(path)? {
                Directory::open(&directory)?.read()?;
            }
        }
        let canonical = paths.iter().map(|path| path.canonicalize().map_err(|error| ReadError::io(path, error)));
        Ok(Self {
            paths: paths.to_vec(),
            canonical: canonical.collect::<Result<_, _>>()?,
            since,
            directories: BTreeMap::new(),
            is_unread: false,
            numbers: HashMap::new(),
            streams: BTreeMap::new(),
            merge: IncrementalMerge::default(),
            run_directory: None,
            rings: Rings::default(),
            known: RingProgress::default(),
            watermark: Watermark::new(PACKET_DELAY),
            reached: i64::MIN,
            first_newest: None,
            looked: None,
            looks: 0,
            damage: VecDeque::new(),
            metadata_damage: Vec::new(),
        })
    }

    /// Uses the rings of the sessions in this run directory. The order then does not depend on how soon packets are written, and events
    /// are delayed by less than a second. Without it, or for rings in memory, events written more than two seconds late are left out.
    #[must_use]
    pub fn run_directory(mut self, path: &Path) -> Self {
        self.run_directory = Some(path.to_owned());
        self
    }

    /// The next item, if one is ready. Does not block.
    ///
    /// # Errors
    /// [`ReadError::Io`] if a path can no longer be read.
    pub fn poll(&mut self) -> Result<PollResult, ReadError> {
        loop {
            if let Some(damage) = self.damage.pop_front() {
                return Ok(PollResult::Item(Item::Damage(damage)));
            }
            if let Some(item) = self.merge.pop() {
                return Ok(PollResult::Item(item));
            }
            if self.supply() {
                continue;
            }
            if self.has_ended() {
                return Ok(PollResult::Ended);
            }
            if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
                return Ok(PollResult::Wait);
            }
            self.look()?;
        }
    }

    /// True once everything found by the first look has been returned.
    pub fn has_caught_up(&self) -> bool {
        self.first_newest.is_some_and(|newest| newest <= self.reached) || self.has_ended()
    }

    /// Number of events that arrived after a later time had been returned. They were left out, so that time never goes backwards.
    pub fn late(&self) -> u64 {
        self.merge.late()
    }

    /// Number of packets so far without a checksum, although the tracer's packets have a place for it.
    pub fn unchecked(&self) -> u64 {
        self.merge.unchecked()
    }

    /// Returns damage of metadata that fails its checksums, once each. Its events are read nevertheless. While a
    /// trace is being written, the damage is reported after five seconds.
    pub fn take_metadata_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.metadata_damage)
    }

    /// True if all traces have ended and everything was returned.
    fn has_ended(&self) -> bool {
        self.merge.is_empty() && self.is_complete()
    }

    /// True if all traces have ended, and each of their directories is known.
    fn is_complete(&self) -> bool {
        self.looked.is_some() && !self.is_unread && self.directories.values().all(|directory| directory.has_ended)
    }

    /// Gives each stream without an event its next packet, or a bound. Returns true if items may have become available.
    fn supply(&mut self) -> bool {
        let mut has_gained = false;
        let starving: Vec<u64> = self.merge.starving().collect();
        for number in starving {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            match stream.next(self.looks) {
                Some(FileStep::Packet(directory, bytes)) => {
                    if let Some(metadata) = self.directories.get(&directory).and_then(|it| it.metadata.as_ref()) {
                        self.merge.feed(number, metadata, bytes);
                    }
                    has_gained = true;
                }
                Some(FileStep::Damage(damage)) => {
                    self.damage.push_back(damage);
                    has_gained = true;
                }
                // The packet is still to come: others wait for it.
                Some(FileStep::Moved) => {}
                None if stream.has_ended => {
                    self.damage.extend(self.streams.remove(&number).iter().flat_map(Files::rest));
                    self.merge.end(number);
                    has_gained = true;
                }
                None => {
                    let bound = self.known.bound.filter(|_| self.known.covers(&stream.root)).unwrap_or(self.reached);
                    has_gained |= self.merge.quiet_until(number, bound);
                }
            }
        }
        has_gained
    }

    /// Looks for new directories, files and packets.
    fn look(&mut self) -> Result<(), ReadError> {
        // Packets that are in no ring at this time are already in the files.
        if let Some(run_directory) = &self.run_directory {
            self.known = self.rings.look(run_directory, &self.canonical);
        }
        self.is_unread = false;
        for path in self.paths.clone() {
            // A chunk gets its account after the next chunk was created, so this search finds every chunk that follows these.
            let with_account: Vec<_> =
                self.directories.keys().filter(|known| Directory::has_account(known)).cloned().collect();
            let found = match traces(&path) {
                // Directories appear and disappear during the search.
                Err(_) if !self.directories.is_empty() => continue,
                found => found?,
            };
            // A trace moves into its first chunk, and old chunks are removed.
            self.directories.retain(|known, _| !known.starts_with(&path) || found.contains(known));
            for path in found {
                self.look_into(&path, with_account.contains(&path));
            }
        }
        self.end_streams();
        let newest = self.streams.values().map(|stream| stream.newest).max().unwrap_or(i64::MIN);
        self.watermark.observe(newest);
        self.first_newest.get_or_insert(newest);
        let now = Instant::now();
        self.reached = self.watermark.advance(now);
        self.merge.set_floor(self.floor());
        self.looked = Some(now);
        self.looks += 1;
        Ok(())
    }

    /// The time before which streams that are still to be found have nothing; none if nothing more can appear.
    fn floor(&self) -> Option<i64> {
        if self.is_complete() {
            return None;
        }
        let mut recording = self.directories.values().filter(|directory| !directory.has_ended);
        let is_known = !self.is_unread && recording.all(|directory| self.known.covers(&directory.root));
        Some(self.known.bound.filter(|_| is_known).unwrap_or(self.reached))
    }

    /// Looks for new packets in a directory. `has_ended`: it had its account before the directories were searched.
    fn look_into(&mut self, path: &Path, has_ended: bool) {
        if !self.directories.contains_key(path) {
            // The directory was removed since it was found.
            let Ok(directory) = Directory::open(path) else {
                self.is_unread = true;
                return;
            };
            self.directories.insert(path.to_owned(), directory);
        }
        let Some(directory) = self.directories.get_mut(path) else { return };
        // An account is written after the last packet: once it exists, the files are complete.
        directory.has_ended |= has_ended;
        // File lengths are read before the metadata, which is written before the events that it describes.
        let files = directory.files();
        match directory.renew() {
            MetadataState::Current => {}
            MetadataState::Waiting => {
                self.is_unread = true;
                return;
            }
            MetadataState::Damaged(damage) => self.damage.extend(damage),
        }
        self.metadata_damage.extend(directory.metadata_damage());
        for file in files {
            let (Some(key), Some(metadata)) = (directory.key(&file), &directory.metadata) else { continue };
            let number = self.numbers.len() as u64;
            let number = *self.numbers.entry(key).or_insert(number);
            let is_new = !self.streams.contains_key(&number);
            let root = &directory.root;
            let stream = self.streams.entry(number).or_insert_with(|| Files::new(root.clone()));
            stream.grow(metadata, path, &file, self.since);
            if is_new {
                self.merge.add(number, metadata, file.path, stream.before);
            }
        }
    }

    /// Ends the streams of traces whose directories all have an account.
    fn end_streams(&mut self) {
        if self.is_unread {
            return;
        }
        let mut ended: HashMap<&PathBuf, bool> = HashMap::new();
        for directory in self.directories.values() {
            *ended.entry(&directory.root).or_insert(true) &= directory.has_ended;
        }
        for (key, number) in &self.numbers {
            if let Some(stream) = self.streams.get_mut(number).filter(|_| ended.get(&key.root) == Some(&true)) {
                stream.has_ended = true;
            }
        }
    }
}
