//! Rotation of a session's chunks: a chunk that is too large or too old is followed by another, and the oldest ones are removed.
//!
//! ```text
//!   due ──▶ ending: packets and metadata wait, and the storage finishes its queue
//!       ──marked──▶ the next chunk is prepared as `.next-chunk`: metadata, files, state of each stream ──renamed──▶ the account of the old chunk
//!       ──▶ streams continue in the next chunk ──▶ the storage removes the oldest chunk, its metadata first
//! ```
//!
//! If the collector is killed before the rename, no rotation took place, and [repair](crate::storage::repair) removes the prepared directory. If it
//! is killed after the rename, the next collector writes the account of the old chunk.

#[cfg(test)]
mod tests;

use crate::files::{make_directories, put};
use crate::hub::Hub;
use crate::hub::chunks::{self, Chunks, Line, Lines};
use crate::hub::place::Place;
use crate::hub::session::Session;
use crate::hub::streamed::StreamedSession;
use crate::hub::tally::{self, Tally};
use crate::storage::repair::NEXT_CHUNK;
use crate::storage::{Files, Job};
use crate::view::View;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tracepoint_reader::account::{ACCOUNT_PATH, Account, RemovedChunks};
use tracepoint_reader::{Metadata, chunk_name};
use tracepoint_wire::relay::METADATA_CHANNEL;

/// Chunks are removed while less than one part in this many of the quota is free.
const FREE: u64 = 8;

impl Hub {
    /// Returns the directory of a session's trace: that of its current chunk.
    pub(in crate::hub) fn trace_directory(&self, id: u64) -> Option<PathBuf> {
        let session = self.session(id)?;
        let root = session.directory.as_ref()?.borrow().path().to_owned();
        let chunks = session.streamed.as_ref()?.chunks.as_ref();
        Some(chunks.map_or_else(|| root.clone(), |chunks| chunks.directory(&root)))
    }

    /// Returns whether packets of a session wait for its next chunk.
    pub(in crate::hub) fn is_rotating(&self, id: u64) -> bool {
        let chunks = self.session(id).and_then(|session| session.streamed.as_ref()?.chunks.as_ref());
        chunks.is_some_and(|chunks| chunks.is_ending)
    }

    /// Begins to end the current chunk if that is due.
    pub(in crate::hub) fn rotate_if_due(&mut self, id: u64, now: Instant) {
        let rotation = self.rotation;
        let Some(streamed) = self.sessions.get_mut(&id).filter(|it| it.is_open()).and_then(|it| it.streamed.as_mut())
        else {
            return;
        };
        let (handle, is_last) = (streamed.metadata, streamed.has_account());
        if let Some(chunks) = streamed.chunks.as_mut().filter(|chunks| !is_last && chunks.is_due(&rotation, now)) {
            chunks.is_ending = true;
            self.storage.give(handle, Job::Mark);
        }
    }

    /// Continues a rotation once the storage has finished the jobs from before the end of the chunk.
    pub(in crate::hub) fn rotated(&mut self, id: u64, now: Instant) {
        // If the sender's account is there, it describes the current chunk, which stays the last one.
        let goes_on = |session: &Session| {
            session.is_open() && !session.streamed.as_ref().is_some_and(StreamedSession::has_account)
        };
        if self.session(id).is_some_and(goes_on)
            && let Err(error) = self.next_chunk(id)
        {
            self.say(format!("cannot begin another chunk: {error}; it is tried again"));
            if let Some(chunks) = self.chunks(id) {
                chunks.failed = Some(now);
            }
        }
        self.give_waiting(id);
        let Some(streamed) = self.streamed(id) else { return };
        let (metadata, mut handles) = (streamed.metadata, streamed.streams.values().copied().collect::<Vec<_>>());
        if let Some(chunks) = &mut streamed.chunks {
            chunks.is_ending = false;
        }
        handles.push(metadata);
        for handle in handles {
            self.advance(handle, now);
        }
        self.retain(id, now);
    }

    /// Gives the storage the metadata that has waited for the next chunk.
    pub(in crate::hub) fn give_waiting(&mut self, id: u64) {
        let Some(streamed) = self.streamed(id) else { return };
        let metadata = streamed.metadata;
        let waiting = streamed.chunks.as_mut().map(|chunks| std::mem::take(&mut chunks.waiting));
        for (bytes, memory) in waiting.into_iter().flatten() {
            self.give_metadata(metadata, bytes, memory);
        }
    }

    fn chunks(&mut self, id: u64) -> Option<&mut Chunks> {
        self.streamed(id)?.chunks.as_mut()
    }

    /// Returns the state of the streams at the end of the current chunk.
    pub(in crate::hub) fn ends(&mut self, id: u64, directory: &Path, metadata: &Metadata) -> Lines {
        let Some(streamed) = self.sessions.get_mut(&id).and_then(|session| session.streamed.as_mut()) else {
            return Lines::new();
        };
        let mut lines = streamed.chunks.as_ref().map(|chunks| chunks.lines.clone()).unwrap_or_default();
        for (key, handle) in &streamed.streams {
            let Some(stream) = self.streams.get_mut(handle) else { continue };
            let Some(ordered) = &mut stream.ordered else { continue };
            let line = lines.entry(*key).or_insert_with(|| Line::new(&stream.place.channel));
            line.end = ordered.tally.settle(&stream.view, metadata);
            line.next = ordered.next_stored();
        }
        // Streams stored by an earlier collector and not announced since.
        for (_, line) in lines.iter_mut().filter(|(key, _)| !streamed.streams.contains_key(*key)) {
            if let Ok(files) = Files::reopen(&directory.join(&line.name), true) {
                let view = View::new(files.segment());
                line.end = Tally::of(&view, line.before).settle(&view, metadata);
                line.next = files.last_number().map_or(line.next, |last| last + 1);
            }
        }
        lines
    }

    /// Creates the next chunk and continues there.
    fn next_chunk(&mut self, id: u64) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let session = self.session(id).ok_or_else(gone)?;
        let (name, streamed) = (session.name.clone(), session.streamed.as_ref().ok_or_else(gone)?);
        let root = session.directory.as_ref().ok_or_else(gone)?.borrow().path().to_owned();
        let (handle, alignment) = (streamed.metadata, streamed.alignment);
        let which = streamed.chunks.as_ref().map(Chunks::which).ok_or_else(gone)?;
        let number = which.number;
        let handles: Vec<u64> = streamed.streams.values().copied().collect();
        let old = root.join(chunk_name(number));
        let text = self.stream(handle).and_then(|stream| tally::text(&stream.view)).ok_or_else(gone)?;
        let metadata = Metadata::parse(&text).map_err(io::Error::other)?;
        let ended = self.ends(id, &old, &metadata);
        let begun: Lines = ended.iter().map(|(key, line)| (*key, line.next_chunk())).collect();

        let next = root.join(NEXT_CHUNK);
        if next.exists() {
            fs::remove_dir_all(&next)?;
        }
        make_directories(&root, Path::new(NEXT_CHUNK))?;
        fs::write(next.join(METADATA_CHANNEL), &text)?;
        let next_one = chunks::ChunkInfo { number: number + 1, ..which };
        chunks::write(&next, &metadata, &name, next_one, &begun)?;
        if alignment.is_some() {
            let known = fs::read_to_string(old.join(super::clocks::FILE))?;
            put(
                &next,
                super::clocks::FILE,
                known.lines().last().map(|line| format!("{line}\n")).unwrap_or_default().as_bytes(),
            )?;
        }
        let mut files = vec![(handle, Files::reopen(&next.join(METADATA_CHANNEL), false)?)];
        for handle in handles {
            if let Some(stream) = self.streams.get(&handle).filter(|stream| stream.is_open()) {
                let place = Place { directory: next.clone(), ..stream.place.clone() };
                files.push((handle, place.create(0)?));
            }
        }
        let directory = root.join(chunk_name(number + 1));
        fs::rename(&next, &directory)?;

        self.storage.resized(text.len() as u64, 0);
        for (handle, files) in files {
            if let Some(stream) = self.streams.get_mut(&handle) {
                stream.go_on(directory.clone(), files, |job| self.storage.give(handle, job));
            }
        }
        let account = chunks::closed(&metadata, &name, which, &ended);
        if let Err(error) = put(&old, ACCOUNT_PATH, &account.to_json()) {
            self.say(format!("cannot write the account of {}: {error}", old.display()));
        }
        for line in ended.values().filter(|line| !line.has_file()) {
            // The stream has no packet in the chunk; if this fails, readers ignore an empty file.
            let _ = fs::remove_file(old.join(&line.name));
            let _ = fs::remove_file(old.join("index").join(format!("{}.idx", line.name)));
        }
        if let Some(chunks) = self.chunks(id) {
            chunks.closed.push_back((number, Instant::now(), chunks::content(&ended, chunks.bytes)));
            (chunks.number, chunks.began, chunks.bytes, chunks.failed) = (number + 1, Instant::now(), 0, None);
            chunks.lines = begun;
        }
        Ok(())
    }

    /// Removes surplus chunks of a session, one at a time, oldest first.
    fn retain(&mut self, id: u64, now: Instant) {
        let Some(keep) = self.rotation.keep else { return };
        let is_over = |chunks: &mut Chunks| {
            chunks.closed.len() + 1 > keep.max(1) && chunks.may_remove(now) && chunks.leaving.is_none()
        };
        if self.chunks(id).is_some_and(is_over) {
            self.remove_chunk(id);
        }
    }

    /// Removes the oldest chunks of all sessions while the quota is nearly used up. Returns whether that frees space.
    pub(in crate::hub) fn make_room(&mut self, now: Instant) -> bool {
        let (Some(quota), Some(_)) = (self.rotation.quota, self.rotation.keep) else { return false };
        while self.storage.used().saturating_sub(self.leaving) > quota - quota / FREE {
            let open = self.sessions.iter().filter(|(_, session)| session.is_open());
            let oldest = open.filter_map(|(id, session)| {
                let chunks = session.streamed.as_ref()?.chunks.as_ref().filter(|chunks| chunks.may_remove(now))?;
                let (_, ended, _) = chunks.closed.front()?;
                Some((*ended, *id, chunks.leaving.is_some()))
            });
            let Some((_, id, false)) = oldest.min() else { break };
            self.remove_chunk(id);
        }
        self.leaving > 0
    }

    /// Queues the removal of a session's oldest chunk.
    fn remove_chunk(&mut self, id: u64) {
        let root = self.session(id).and_then(|session| Some(session.directory.as_ref()?.borrow().path().to_owned()));
        let Some((root, streamed)) = root.zip(self.streamed(id)) else { return };
        let (handle, Some(chunks)) = (streamed.metadata, &mut streamed.chunks) else { return };
        let Some(oldest) = chunks.closed.pop_front() else { return };
        chunks.leaving = Some(oldest);
        let (number, _, RemovedChunks { bytes, .. }) = oldest;
        self.leaving += bytes;
        self.storage.give(handle, Job::Remove { directory: root.join(chunk_name(number)), bytes });
    }

    /// Handles the end of a removal for the session with this metadata stream.
    pub(in crate::hub) fn chunk_removed(&mut self, metadata: u64, is_gone: bool, now: Instant) {
        let Some(id) = self.streams.get(&metadata).map(|stream| stream.session) else { return };
        let directory = self.trace_directory(id);
        let Some((directory, streamed)) = directory.zip(self.streamed(id)) else { return };
        let is_written = streamed.is_account_written();
        let Some(chunks) = &mut streamed.chunks else { return };
        chunks.removal_done(is_gone, now);
        let chunk = chunks.which().chunk(true);
        if is_written {
            // The account was written while the removal was queued.
            let account = Account::open(&directory).map_err(io::Error::other);
            let written = account.and_then(|mut account| {
                account.chunk = Some(chunk);
                put(&directory, ACCOUNT_PATH, &account.to_json())
            });
            if let Err(error) = written {
                self.say(format!("cannot write the account of {}: {error}", directory.display()));
            }
        }
        self.retain(id, now);
    }

    /// Returns the sender's account as the account of the last chunk.
    pub(super) fn last_account(&mut self, id: u64, bytes: Vec<u8>) -> Vec<u8> {
        let Some(streamed) = self.sessions.get(&id).and_then(|session| session.streamed.as_ref()) else { return bytes };
        let (Some(chunks), Ok(mut account)) = (&streamed.chunks, Account::parse(&bytes)) else { return bytes };
        for channel in &mut account.channels {
            for stream in &mut channel.streams {
                let Ok(class) = u32::try_from(channel.id) else { continue };
                let key = (class, stream.instance);
                if let Some(line) = chunks.lines.get(&key) {
                    stream.before = line.before;
                }
                let ordered = streamed.streams.get(&key).and_then(|handle| self.streams.get(handle)?.ordered.as_ref());
                if !ordered.is_some_and(|ordered| ordered.tally.has_file()) {
                    stream.file.clear();
                }
            }
        }
        account.chunk = Some(chunks.which().chunk(true));
        account.to_json()
    }
}
