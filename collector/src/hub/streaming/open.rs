//! Opens sessions of the stream protocol and their streams: new ones, and those resumed after a lost connection or a killed collector.

use crate::fragments::Fragments;
use crate::hub::chunks;
use crate::hub::directory::{SessionDirectory, hexadecimal};
use crate::hub::ordered::OrderedStream;
use crate::hub::place::Place;
use crate::hub::session::Session;
use crate::hub::streamed::StreamedSession;
use crate::hub::tally::Tally;
use crate::hub::{Hub, MAX_STREAMS};
use crate::names::sanitised;
use crate::shares::Address;
use crate::storage::Files;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tracepoint_wire::relay::{IndexFile, METADATA_CHANNEL};
use tracepoint_wire::stream::{Announce, ErrorCode, Hello};

/// File names that streams cannot have.
const RESERVED: [&str; 3] = [METADATA_CHANNEL, "index", ".account"];

/// The reason why a connection is closed, which is sent to the sender.
pub(crate) type Refusal = (ErrorCode, String);

/// Turns an error into a refusal with this code.
pub(crate) fn refused(code: ErrorCode) -> impl Fn(anyhow::Error) -> Refusal {
    move |error| (code, format!("{error:#}"))
}

/// The answer to a sender whose session is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedSession {
    pub(crate) session: u64,
    pub(crate) connection: u64,
    pub(crate) is_resumed: bool,
    pub(crate) metadata: u64,
}

impl Hub {
    /// Returns the open session with this key, which a new connection can resume.
    pub(crate) fn known(&self, key: &[u8; 16]) -> Option<u64> {
        let has_key = |session: &Session| {
            session.streamed.as_ref().is_some_and(|streamed| streamed.key == *key) && session.is_open()
        };
        self.sessions().find(|(_, session)| has_key(session)).map(|(id, _)| id)
    }

    pub(crate) fn has_stream(&self, id: u64, announce: &Announce<'_>) -> bool {
        let streamed = self.session(id).and_then(|session| session.streamed.as_ref());
        streamed.is_some_and(|streamed| streamed.streams.contains_key(&(announce.class, announce.instance)))
    }

    /// Opens or resumes a sender's session. Its data carries `token` from now on.
    /// Sessions that collectors share (`is_shared`) are stored in chunks.
    pub(crate) fn open_streamed(
        &mut self,
        hello: &Hello<'_>,
        token: [u8; 16],
        is_shared: bool,
        address: Address,
    ) -> Result<OpenedSession, Refusal> {
        if let Some(id) = self.known(&hello.key) {
            let Some(streamed) = self.session_mut(id).and_then(|session| session.streamed.as_mut()) else {
                return Err(gone());
            };
            let old = std::mem::replace(&mut streamed.token, token);
            streamed.connection += 1;
            (streamed.detached, streamed.has_data, streamed.silent) = (None, false, None);
            let (connection, metadata) = (streamed.connection, streamed.metadata_bytes);
            self.tokens.remove(&old);
            self.tokens.insert(token, id);
            return Ok(OpenedSession { session: id, connection, is_resumed: true, metadata });
        }
        let busy = refused(ErrorCode::Busy);
        let (admission, share) = (self.admit(address).map_err(&busy)?, self.files_of_next(address).map_err(&busy)?);
        let failed =
            |error: io::Error| (ErrorCode::Storage, format!("cannot create the directory of the session: {error}"));
        let (directory, is_resumed) = streamed_directory(&self.output, hello).map_err(failed)?;
        let path = Path::new(directory.relative()).to_owned();
        let name = format!("{}-{}", hello.session, hello.process);
        let chunks = match is_resumed {
            true => chunks::reopen(directory.path(), &name),
            false if is_shared || self.rotation.size.is_some() || self.rotation.every.is_some() => {
                chunks::create(directory.path(), is_shared).map(Some)
            }
            false => Ok(None),
        };
        let mut chunks = chunks.map_err(failed)?;
        if let Some(chunks) = &mut chunks {
            chunks.is_shared |= is_shared;
        }
        let place = Place {
            directory: chunks.as_ref().map_or(directory.path().to_owned(), |it| it.directory(directory.path())),
            channel: METADATA_CHANNEL.to_owned(),
            format: None,
            limit: (0, 0),
            path,
        };
        let metadata = place.directory.join(METADATA_CHANNEL);
        let files =
            if metadata.exists() { Files::reopen(&metadata, false) } else { place.create(0) }.map_err(failed)?;
        let files = files.with(share);
        let metadata_bytes = files.bytes();
        #[cfg(feature = "nats")]
        let published =
            self.begin_published((directory.path(), &metadata), hello, (is_resumed, is_shared)).map_err(failed)?;
        let interval = Duration::from_millis(hello.sync_interval.max(1).into());
        let mut session = Session::new((name, hello.host.to_owned()), interval, (hello.key, 0), admission);
        session.directory = Some(Rc::new(RefCell::new(directory)));
        session.streamed = Some(StreamedSession {
            key: hello.key,
            trace: hello.trace,
            token,
            connection: 1,
            detached: None,
            metadata: 0,
            metadata_bytes,
            streams: HashMap::new(),
            names: HashSet::new(),
            fragments: Fragments::new(self.share),
            has_data: false,
            silent: None,
            told: None,
            untold: 0,
            progress: Rc::default(),
            alignment: None,
            chunks,
            is_clock_checked: false,
            #[cfg(feature = "nats")]
            published,
            account: (Vec::new(), None),
            account_share: None,
        });
        let id = self.open_session(session);
        let handle = self.open_stream(id, place, files).ok_or_else(gone)?;
        if let Some(streamed) = self.streamed(id) {
            streamed.metadata = handle;
        }
        self.tokens.insert(token, id);
        Ok(OpenedSession { session: id, connection: 1, is_resumed, metadata: metadata_bytes })
    }

    /// Opens an announced stream. Returns its handle, and the lowest number that is not stored.
    pub(crate) fn announce(&mut self, id: u64, announce: &Announce<'_>) -> Result<(u64, u64), Refusal> {
        let key = (announce.class, announce.instance);
        let rejected = |why: String| (ErrorCode::Refused, why);
        let streamed = self.streamed(id).ok_or_else(gone)?;
        if let Some(handle) = streamed.streams.get(&key).copied() {
            let connection = streamed.connection;
            let ordered = self.stream_of(id, handle).and_then(|stream| stream.ordered.as_mut());
            let next = ordered.map_or(0, |ordered| {
                ordered.announced(connection);
                ordered.reorder.next_number()
            });
            return Ok((handle, next));
        }
        if streamed.streams.len() >= MAX_STREAMS {
            return Err(rejected(format!("a session has at most {MAX_STREAMS} streams")));
        }
        let name = sanitised(announce.names[4], 4);
        if RESERVED.contains(&name.as_str()) || streamed.names.contains(&name) {
            return Err(rejected(format!("the name of the stream `{name}` is taken")));
        }
        let line = streamed.chunks.as_ref().and_then(|chunks| chunks.lines.get(&key)).cloned().unwrap_or_default();
        let directory = self.trace_directory(id).ok_or_else(gone)?;
        let session = self.session(id).and_then(|session| session.directory.clone()).ok_or_else(gone)?;
        let place = Place {
            directory,
            channel: name.clone(),
            format: Some(IndexFile { is_long: true }),
            limit: (0, 0),
            path: Path::new(session.borrow().relative()).to_owned(),
        };
        let path = place.directory.join(&place.channel);
        let share = self.files(id).map_err(refused(ErrorCode::Busy))?;
        let files = if path.exists() { Files::reopen(&path, true) } else { place.create(0) };
        let files = files.map_err(|error| rejected(format!("cannot create {}: {error}", path.display())))?.with(share);
        let next = files.last_number().map_or(line.next, |last| last + 1);
        let handle = self.open_stream(id, place, files).ok_or_else(gone)?;
        if let Some(stream) = self.streams.get_mut(&handle) {
            stream.view.stream_class = Some(announce.class.into());
            let tally = Tally::of(&stream.view, line.before);
            stream.ordered = Some(OrderedStream::new(key, announce.packet_size, next, tally));
        }
        let connection = self.streamed(id).map_or(0, |streamed| streamed.connection);
        if let Some(ordered) = self.stream_of(id, handle).and_then(|stream| stream.ordered.as_mut()) {
            ordered.announced(connection);
        }
        if let Some(streamed) = self.streamed(id) {
            streamed.streams.insert(key, handle);
            streamed.names.insert(name);
        }
        self.publish(id);
        Ok((handle, next))
    }
}

fn gone() -> Refusal {
    (ErrorCode::Storage, "there is no session".to_owned())
}

/// Finds or creates a session's directory. Returns `true` with it if it is one that an earlier collector created for this key.
pub(in crate::hub) fn streamed_directory(output: &Path, hello: &Hello<'_>) -> io::Result<(SessionDirectory, bool)> {
    let [host, session] = [hello.host, hello.session].map(|name| sanitised(name, 0));
    let relative = Path::new(&host).join(session).join(sanitised(hello.process, 16));
    let key = hexadecimal(&hello.key);
    if let Some(name) = SessionDirectory::find(output, &relative, &key) {
        return Ok((SessionDirectory::reopen(output, &name)?, true));
    }
    let directory = SessionDirectory::create(output, &relative)?;
    directory.set_key(&key)?;
    Ok((directory, false))
}
