//! Follows traces that are still being written, and merges their events by time.
//!
//! A [`Follow`] looks again and again which directories, files and packets there are. Whole packets are read in the order of their times, like
//! those of a live session. A stream without an unread packet holds back the others until nothing earlier can come. Where the [`Rings`] of
//! the session are found, they tell. Otherwise the [`Watermark`] does: sessions hand over what is in a ring within two seconds, so that what was
//! written by the end of one look is followed by nothing earlier two seconds later.
//!
//! ```text
//!   look: rings ─▶ directories ─▶ files, by inode ─▶ metadata, if it has grown ─▶ headers of whole packets ─▶ accounts ─▶ watermark
//!   poll: a stream without an event ─▶ its next packet ─▶ merge ─▶ the earliest events, up to what all streams have reached
//! ```
//!
//! A file is known by its inode, because a rotation moves a trace into its first chunk. The files of a stream in all chunks are one stream. A
//! trace has ended when each of its directories has an account. Accounts are looked for before directories are: the other way round, a rotation
//! between the two would look like the end. Metadata that cannot be read for some seconds is reported as damage; what it describes so far is
//! still shown. Metadata that is read, and is not what was written by its checksums, is told beside the items.

mod directory;
mod files;
mod rings;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::ReadError;
use crate::item::Item;
use crate::loss::Damage;
use crate::merge::{IncrementalMerge, Polled, traces};
use crate::watermark::Watermark;
use directory::{Directory, Renewed};
use files::{Files, StreamKey};
use rings::{Known, Rings};

/// The longest time for which a packet stays in its ring: that of a session whose packets another process takes.
const PACKET_DELAY: Duration = Duration::from_secs(2);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Traces that are followed.
///
/// Memory is bounded by one packet of each stream and 40 bytes for each packet that is not read yet.
#[derive(Debug)]
pub struct Follow {
    paths: Vec<PathBuf>,
    /// The same without links.
    canonical: Vec<PathBuf>,
    since: i64,
    directories: BTreeMap<PathBuf, Directory>,
    /// Whether there is metadata that is just being written.
    is_unread: bool,
    /// The numbers of streams in the merge.
    numbers: HashMap<StreamKey, u64>,
    streams: BTreeMap<u64, Files>,
    merge: IncrementalMerge,
    run_directory: Option<PathBuf>,
    rings: Rings,
    /// What the rings said at the last look.
    known: Known,
    watermark: Watermark,
    /// The time up to which everything has come, by the watermark.
    reached: i64,
    /// The newest time that was there at the first look.
    first_newest: Option<i64>,
    looked: Option<Instant>,
    damage: VecDeque<Damage>,
    /// That of metadata that is read all the same.
    metadata_damage: Vec<Damage>,
}

impl Follow {
    /// Follows all traces at these paths: directories, and those below them, also such that are begun later. Packets that end before `since`,
    /// in nanoseconds since the epoch, are left out.
    ///
    /// # Errors
    /// [`ReadError::NotATrace`] if there is none yet; [`ReadError::Io`], [`ReadError::Metadata`].
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
            known: Known::default(),
            watermark: Watermark::new(PACKET_DELAY),
            reached: i64::MIN,
            first_newest: None,
            looked: None,
            damage: VecDeque::new(),
            metadata_damage: Vec::new(),
        })
    }

    /// Looks for the rings of the sessions in this run directory. Then the order does not depend on how soon packets are written, and events
    /// are delayed by less than a second. Without it, or for rings in memory, events that are written two seconds late are left out.
    #[must_use]
    pub fn run_directory(mut self, path: &Path) -> Self {
        self.run_directory = Some(path.to_owned());
        self
    }

    /// The next item, if there is one. Does not wait.
    ///
    /// # Errors
    /// [`ReadError::Io`] if a path cannot be read any more.
    pub fn poll(&mut self) -> Result<Polled, ReadError> {
        loop {
            if let Some(damage) = self.damage.pop_front() {
                return Ok(Polled::Item(Item::Damage(damage)));
            }
            if let Some(item) = self.merge.pop() {
                return Ok(Polled::Item(item));
            }
            if self.supply() {
                continue;
            }
            if self.has_ended() {
                return Ok(Polled::Ended);
            }
            if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
                return Ok(Polled::Wait);
            }
            self.look()?;
        }
    }

    /// Whether everything has been returned that was there at the first look.
    pub fn has_caught_up(&self) -> bool {
        self.first_newest.is_some_and(|newest| newest <= self.reached) || self.has_ended()
    }

    /// How many events arrived later than the time that was reached by then. They were left out, so that time never goes back.
    pub fn late(&self) -> u64 {
        self.merge.late()
    }

    /// How many packets so far have no checksum, although the tracer's packets have a place for it.
    pub fn unchecked(&self) -> u64 {
        self.merge.unchecked()
    }

    /// Metadata that is not what was written, by its checksums, of which this was not returned before. Events are read with it all the same. While a
    /// trace is being written, it is told after five seconds.
    pub fn take_metadata_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.metadata_damage)
    }

    /// Whether all traces have ended, and all of them was returned.
    fn has_ended(&self) -> bool {
        self.merge.is_empty() && self.is_complete()
    }

    /// Whether all traces have ended, and each of their directories is known.
    fn is_complete(&self) -> bool {
        self.looked.is_some() && !self.is_unread && self.directories.values().all(|directory| directory.has_ended)
    }

    /// Gives each stream that has no event its next packet, or what is known instead. Whether anything can leave now that could not before.
    fn supply(&mut self) -> bool {
        let mut has_gained = false;
        let starving: Vec<u64> = self.merge.starving().collect();
        for number in starving {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            match stream.next() {
                Some(Ok((directory, bytes))) => {
                    if let Some(metadata) = self.directories.get(&directory).and_then(|it| it.metadata.as_ref()) {
                        self.merge.feed(number, metadata, bytes);
                    }
                    has_gained = true;
                }
                Some(Err(damage)) => {
                    self.damage.push_back(damage);
                    has_gained = true;
                }
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

    /// Finds what is new.
    fn look(&mut self) -> Result<(), ReadError> {
        // What is in no ring now is in the files by now.
        if let Some(run_directory) = &self.run_directory {
            self.known = self.rings.look(run_directory, &self.canonical);
        }
        self.is_unread = false;
        for path in self.paths.clone() {
            // A chunk gets its account after the next chunk has been created, so that this search finds every chunk that follows these.
            let with_account: Vec<_> =
                self.directories.keys().filter(|known| Directory::has_account(known)).cloned().collect();
            let found = match traces(&path) {
                // Directories come and go while they are searched.
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
        Ok(())
    }

    /// The time before which nothing comes in streams that are yet to be found; none if nothing comes any more.
    fn floor(&self) -> Option<i64> {
        if self.is_complete() {
            return None;
        }
        let mut recording = self.directories.values().filter(|directory| !directory.has_ended);
        let is_known = !self.is_unread && recording.all(|directory| self.known.covers(&directory.root));
        Some(self.known.bound.filter(|_| is_known).unwrap_or(self.reached))
    }

    /// Finds what is new in a directory; `has_ended`: whether it had its account before the directories were searched.
    fn look_into(&mut self, path: &Path, has_ended: bool) {
        if !self.directories.contains_key(path) {
            // It was removed since it was found.
            let Ok(directory) = Directory::open(path) else {
                self.is_unread = true;
                return;
            };
            self.directories.insert(path.to_owned(), directory);
        }
        let Some(directory) = self.directories.get_mut(path) else { return };
        // An account is written behind the last packet: once it is there, the files are complete.
        directory.has_ended |= has_ended;
        // The lengths of files come before metadata, which is written before the events that it describes.
        let files = directory.files();
        match directory.renew() {
            Renewed::Current => {}
            Renewed::Waiting => {
                self.is_unread = true;
                return;
            }
            Renewed::Damaged(damage) => self.damage.extend(damage),
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

    /// Ends the streams of traces of which each directory has an account.
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
