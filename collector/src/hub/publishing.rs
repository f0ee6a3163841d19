//! Information about tracepoint senders' sessions for the [publisher](crate::publish), in addition to their files.

use super::Hub;
use super::ordered::OrderedStream;
use crate::spool::{LogWriter, has_published};
use anyhow::Context as _;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint_wire::stream::{Hello, NO_SEQ, Sync, SyncEntry};

#[derive(Debug)]
pub(crate) struct PublishedSession {
    log: LogWriter,
    /// The last synchronisation point that the publisher has not taken yet.
    sync: Option<Sync>,
    /// Changes when the publisher has work.
    news: u64,
}

impl Hub {
    /// Opens the log for publishing a session, given its directory and metadata file. `None` if the session is not published.
    pub(super) fn begin_published(
        &mut self,
        (root, metadata): (&Path, &Path),
        hello: &Hello<'_>,
        (is_resumed, is_shared): (bool, bool),
    ) -> io::Result<Option<PublishedSession>> {
        if !self.publishes || is_shared || is_resumed && has_published(root) {
            return Ok(None);
        }
        let known = if is_resumed { LogWriter::reopen(root)? } else { None };
        // The size at the start of the collector is already counted.
        let before = known.as_ref().map_or(0, LogWriter::size);
        let mut log = known.map_or_else(|| LogWriter::create(root, hello), Ok)?;
        if metadata.exists() {
            // An earlier collector may have run without --publish. The sender will announce all its streams again.
            log.metadata(0, &fs::read(metadata)?)?;
        }
        self.storage.resized(log.size() - before, 0);
        Ok(Some(PublishedSession { log, sync: None, news: 0 }))
    }

    fn published(&mut self, id: u64) -> Option<&mut PublishedSession> {
        self.streamed(id)?.published.as_mut()
    }

    /// Appends to a session's log, if it has one.
    pub(crate) fn log(&mut self, id: u64, append: impl FnOnce(&mut LogWriter) -> io::Result<()>) -> anyhow::Result<()> {
        let Some(published) = self.published(id) else { return Ok(()) };
        let before = published.log.size();
        let result = append(&mut published.log);
        published.news += 1;
        let added = published.log.size() - before;
        self.storage.resized(added, 0);
        result.context("cannot write what is to be published")
    }

    /// Notifies the publisher that something of a session was stored.
    pub(super) fn is_news(&mut self, id: u64) {
        if let Some(published) = self.published(id) {
            published.news += 1;
        }
    }

    /// Records a synchronisation point, whose handles are this collector's. All messages of one point have the same number.
    pub(super) fn keep_sync(&mut self, id: u64, sync: &Sync) {
        let key = |entry: &SyncEntry| Some((*entry, self.stream(entry.handle)?.ordered.as_ref()?.key));
        let keys: Vec<_> = sync.entries.iter().filter_map(key).collect();
        let Some(published) = self.published(id) else { return };
        let entry = |(entry, key)| Some(SyncEntry { handle: published.log.number_of(key)?, ..entry });
        let entries: Vec<_> = keys.into_iter().filter_map(entry).collect();
        match &mut published.sync {
            Some(known) if known.number == sync.number => known.entries.extend(entries),
            known => *known = Some(Sync { entries, ..sync.clone() }),
        }
        published.news += 1;
    }

    /// Returns the open sessions that are published, with their directories.
    pub(crate) fn published_sessions(&self) -> Vec<(u64, PathBuf)> {
        let open = self.sessions().filter(|(_, session)| !session.is_closed());
        let published = open.filter(|(_, session)| session.streamed.as_ref().is_some_and(|it| it.published.is_some()));
        published
            .filter_map(|(id, session)| Some((id, session.directory.as_ref()?.borrow().path().to_owned())))
            .collect()
    }

    /// Returns a number that changes when there is something to publish; `None` if the session is not open.
    pub(crate) fn published_news(&self, id: u64) -> Option<u64> {
        let session = self.session(id).filter(|session| !session.is_closed())?;
        Some(session.streamed.as_ref()?.published.as_ref()?.news)
    }

    /// Returns the last synchronisation point once everything before it is stored or given up. Its handles are the stream numbers of the log.
    pub(crate) fn take_sync(&mut self, id: u64) -> Option<Sync> {
        let streamed = self.session(id)?.streamed.as_ref()?;
        let published = streamed.published.as_ref()?;
        let sync = published.sync.as_ref()?;
        let numbered =
            streamed.streams.iter().filter_map(|(key, handle)| Some((published.log.number_of(*key)?, *handle)));
        let handles: HashMap<u64, u64> = numbered.collect();
        let is_stored = |entry: &SyncEntry| {
            let stream = handles.get(&entry.handle).and_then(|handle| self.stream(*handle));
            let next = stream.and_then(|stream| stream.ordered.as_ref()).map(OrderedStream::next_stored);
            entry.last == NO_SEQ || next.is_none_or(|next| next > entry.last)
        };
        if !sync.entries.iter().all(is_stored) {
            return None;
        }
        self.published(id)?.sync.take()
    }
}
