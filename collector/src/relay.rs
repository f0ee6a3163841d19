//! One control connection of a stock sender: its commands, and the answers to them. Has no socket.
//!
//! ```text
//!   New ──VERSION──▶ Negotiated ──CREATE_SESSION──▶ Session ──(connection ends)──▶ the session is closed
//! ```
//!
//! Input that makes `lttng-relayd` abort or hang is a sender's error here: a second `CREATE_SESSION`, streams without a chunk, an index of an unknown
//! stream. Where the stock daemon closes the connection, so does this; the sender's other sessions continue.

use crate::hub::{Hub, MAX_STREAMS, Place, Session, SessionDirectory, hexadecimal, session_name};
use crate::memory::MemoryShare;
use crate::names;
use crate::storage::{Job, Packet};
use crate::stream_control::Offer;
use anyhow::{Context as _, anyhow, bail};
use std::cell::RefCell;
use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tracepoint_wire::relay::{
    AddStream, CloseChunk, Command, CreateChunk, CreateSession, DataPending, IndexFile, MAJOR, MAY_CLEAR,
    METADATA_CHANNEL, MIN_MINOR, MINOR, MINOR_WITH_CHUNKS, Reply, ReturnCode, RotateStreams, Version,
};
use tracepoint_wire::stream::Capabilities;

/// Space for the time and a number after a session's name.
const SUFFIX: usize = 21;

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The reply, if the command has one.
    Reply(Option<Reply>),
    /// The reply, if there is one; then the connection is closed for this reason.
    Close(Option<Reply>, String),
}

/// The state of a control connection.
#[derive(Debug)]
pub(crate) struct Control {
    peer: IpAddr,
    /// `asks_key` is true if a shared key is required, `takes_stock` if stock senders at this address are accepted.
    asks_key: bool,
    pub(crate) takes_stock: bool,
    /// The minor version that both sides use.
    minor: Option<u32>,
    session: Option<u64>,
    /// Set once the sender has switched to the stream protocol.
    pub(crate) is_streamed: bool,
}

fn code(code: ReturnCode) -> Answer {
    Answer::Reply(Some(Reply::Code(code)))
}

fn fail(code: ReturnCode, why: impl Display) -> Answer {
    Answer::Close(Some(Reply::Code(code)), format!("{why:#}"))
}

fn close(why: impl Into<String>) -> Answer {
    Answer::Close(None, why.into())
}

impl Control {
    /// Creates the state of a connection from `peer`.
    pub(crate) fn new(peer: IpAddr, offer: &Offer) -> Self {
        let asks_key = offer.key.is_some();
        let takes_stock = offer.takes_stock(peer);
        Self { peer, asks_key, takes_stock, minor: None, session: None, is_streamed: false }
    }

    /// Returns the minor version that determines the layouts.
    pub(crate) fn minor(&self) -> u32 {
        self.minor.unwrap_or(MINOR)
    }

    /// Returns whether the sender has switched to the stream protocol and a key is required.
    pub(crate) const fn is_asked_for_key(&self) -> bool {
        self.is_streamed && self.asks_key
    }

    pub(crate) fn session(&self) -> Option<u64> {
        self.session
    }

    /// Executes a command. `memory` is charged for metadata.
    pub(crate) fn command(
        &mut self,
        hub: &mut Hub,
        command: Command<'_>,
        memory: Option<MemoryShare>,
        now: Instant,
    ) -> Answer {
        let Some(minor) = self.minor else {
            return match command {
                Command::Version(version) => self.version(version),
                _ => close("the first command was not VERSION"),
            };
        };
        match (command, self.session) {
            (Command::CreateSession(create), None) => self.create_session(hub, create),
            (Command::GetConfiguration { flags }, None) if Capabilities::of(flags).is_some() => {
                self.is_streamed = true;
                let flags = Capabilities::new(true, self.asks_key).flags();
                Answer::Reply(Some(Reply::Configuration { code: ReturnCode::Ok, flags }))
            }
            (Command::GetConfiguration { flags: 0 }, _) => {
                Answer::Reply(Some(Reply::Configuration { code: ReturnCode::Ok, flags: MAY_CLEAR }))
            }
            (Command::GetConfiguration { .. }, _) => {
                Answer::Reply(Some(Reply::Configuration { code: ReturnCode::Protocol, flags: 0 }))
            }
            (command, None) => close(format!("command {} came before CREATE_SESSION", command.number())),
            (Command::SendMetadata { handle, padding, bytes }, Some(session)) => {
                if !hub.stream_of(session, handle).is_some_and(|stream| stream.place.is_metadata()) {
                    return close(format!("metadata came for stream {handle}, which is none of metadata"));
                }
                hub.storage.give(handle, Job::Metadata { packet: Packet::new(bytes.to_vec(), padding, memory) });
                Answer::Reply(None)
            }
            (command, Some(session)) => session_command(hub, session, minor, command, now),
        }
    }

    fn version(&mut self, version: Version) -> Answer {
        let reply = Some(Reply::Version(Version { major: MAJOR, minor: MINOR }));
        if version.major != MAJOR || version.minor < MIN_MINOR {
            let Version { major, minor } = version;
            return Answer::Close(
                reply,
                format!("the sender speaks version {major}.{minor} of the relay protocol, not 2.4 to 2.13"),
            );
        }
        self.minor = Some(version.minor.min(MINOR));
        Answer::Reply(reply)
    }

    fn create_session(&mut self, hub: &mut Hub, create: CreateSession) -> Answer {
        let opened = if self.takes_stock {
            open_session(hub, create, self.minor(), self.peer)
        } else {
            Err(anyhow!(
                "this collector asks for a shared key, and a stock sender has none; `--allow-stock={}` takes it",
                self.peer.to_canonical()
            ))
        };
        match opened {
            Ok((id, path)) => {
                self.session = Some(id);
                Answer::Reply(Some(Reply::Session { id, code: ReturnCode::Ok, path }))
            }
            Err(why) => {
                hub.say_refused(self.peer.into(), "session", &why);
                Answer::Reply(Some(Reply::Session { id: 0, code: ReturnCode::Fatal, path: String::new() }))
            }
        }
    }

    pub(crate) fn ended(&self, hub: &mut Hub, now: Instant) {
        if let Some(session) = self.session {
            hub.close_session(session, now);
        }
    }
}

/// Opens a session and creates its directory. Returns its number, and the path relative to the output directory.
fn open_session(hub: &mut Hub, create: CreateSession, minor: u32, peer: IpAddr) -> anyhow::Result<(u64, String)> {
    let admission = hub.admit(peer.into())?;
    let CreateSession { name, host, base_path, creation_time, current_chunk, .. } = create;
    names::component("the name of the session", &name, SUFFIX)?;
    names::component("the name of the host", &host, 0)?;
    let live_timer = Duration::from_micros(create.live_timer.into());
    let key = (create.sender, create.id);
    let mut session = Session::new((name, host), live_timer, key, admission);
    session.is_indexed = !create.snapshot;
    session.peer = Some(peer);
    let mut path = String::new();
    if minor >= MINOR_WITH_CHUNKS {
        if create.sender == [0; 16] {
            bail!("the uuid of the sender is zero");
        }
        let directory = if let Some(chunk) = current_chunk {
            // Another connection of the same session has created the directory and the chunk.
            let shared = hub.sessions().filter(|(_, other)| other.is_open() && other.key == key);
            let mut shared = shared.filter_map(|(_, other)| other.directory.clone());
            let directory =
                shared.find(|directory| directory.borrow().has_chunk(chunk)).context("there is no such chunk")?;
            directory.borrow_mut().create_chunk(&CreateChunk { id: chunk, ..CreateChunk::default() })?;
            directory
        } else {
            let name = if !base_path.is_empty() {
                names::path("the base path", &base_path)?
            } else if create.name_has_time {
                PathBuf::from(&session.name)
            } else {
                PathBuf::from(session_name(&session.name, creation_time))
            };
            let relative = Path::new(&session.host).join(name);
            // The sender opens a session for each snapshot.
            if create.snapshot { snapshots(hub, &relative, key)? } else { shareable(create_directory(hub, &relative)?) }
        };
        directory.borrow().relative().clone_into(&mut path);
        session.chunk = current_chunk;
        session.directory = Some(directory);
    }
    Ok((hub.open_session(session), path))
}

fn create_directory(hub: &Hub, relative: &Path) -> anyhow::Result<SessionDirectory> {
    SessionDirectory::create(&hub.output, relative)
        .with_context(|| format!("cannot create {}", hub.output.join(relative).display()))
}

fn shareable(directory: SessionDirectory) -> Rc<RefCell<SessionDirectory>> {
    Rc::new(RefCell::new(directory))
}

/// Returns the directory of all snapshots of a sender's session.
fn snapshots(
    hub: &Hub,
    relative: &Path,
    (sender, id): ([u8; 16], u64),
) -> anyhow::Result<Rc<RefCell<SessionDirectory>>> {
    let key = format!("{}-{id}", hexadecimal(&sender));
    let Some(known) = SessionDirectory::find(&hub.output, relative, &key) else {
        let directory = create_directory(hub, relative)?;
        let marked = directory.set_key(&key);
        return marked.map(|()| shareable(directory)).with_context(|| format!("cannot mark {}", relative.display()));
    };
    // The files of the previous snapshot may be incomplete.
    let mut open = hub.sessions().filter_map(|(_, session)| session.directory.as_ref());
    match open.find(|directory| directory.borrow().relative() == known) {
        Some(directory) => Ok(Rc::clone(directory)),
        None => SessionDirectory::reopen(&hub.output, &known)
            .map(shareable)
            .with_context(|| format!("cannot open {}", hub.output.join(&known).display())),
    }
}

/// Executes a command in a session.
fn session_command(hub: &mut Hub, session: u64, minor: u32, command: Command<'_>, now: Instant) -> Answer {
    let unknown_stream = |handle: u64| fail(ReturnCode::Unknown, format!("the session has no stream {handle}"));
    match command {
        Command::AddStream(add) => match add_stream(hub, session, minor, &add) {
            Ok(handle) => Answer::Reply(Some(Reply::Stream { handle, code: ReturnCode::Ok })),
            Err(why) => {
                if let Some(address) = hub.session(session).map(Session::address) {
                    hub.say_refused(address, "stream", &why);
                }
                Answer::Reply(Some(Reply::Stream { handle: u64::MAX, code: ReturnCode::Unknown }))
            }
        },
        Command::StreamsSent => {
            hub.publish(session);
            code(ReturnCode::Ok)
        }
        Command::SendIndex(index) if hub.index(session, index, now) => code(ReturnCode::Ok),
        Command::SendIndex(index) => unknown_stream(index.handle),
        Command::CloseStream { handle, last } if hub.close_stream(session, handle, last, now) => code(ReturnCode::Ok),
        Command::CloseStream { handle, .. } => unknown_stream(handle),
        Command::DataPending { handle, last } => match hub.stream_of(session, handle) {
            None => unknown_stream(handle),
            Some(stream) => pending(!stream.has_stored(last)),
        },
        Command::EndDataPending { .. } => pending(false),
        Command::BeginDataPending { .. } | Command::QuiescentControl { .. } | Command::StartData => {
            code(ReturnCode::Ok)
        }
        Command::ResetMetadata { handle, .. } => match hub.reset_metadata(session, handle) {
            Ok(()) => code(ReturnCode::Ok),
            Err(why) => fail(ReturnCode::Unknown, why),
        },
        Command::RotateStreams(rotation) => match rotate(hub, session, &rotation) {
            Ok(()) => code(ReturnCode::Ok),
            Err(why) => fail(ReturnCode::Unknown, why),
        },
        Command::CreateChunk(chunk) => match create_chunk(hub, session, &chunk) {
            Ok(()) => code(ReturnCode::Ok),
            Err(why) => fail(ReturnCode::Unknown, why),
        },
        Command::CloseChunk(chunk) => match close_chunk(hub, session, &chunk, now) {
            Ok(path) => Answer::Reply(Some(Reply::ChunkClosed { code: ReturnCode::Ok, path })),
            Err(why) => {
                let reply = Reply::ChunkClosed { code: ReturnCode::Unknown, path: String::new() };
                Answer::Close(Some(reply), format!("{why:#}"))
            }
        },
        Command::ChunkExists { chunk } => {
            let directory = hub.session(session).and_then(|session| session.directory.as_ref());
            let exists = directory.is_some_and(|directory| directory.borrow().has_chunk(chunk));
            Answer::Reply(Some(Reply::ChunkExists { code: ReturnCode::Ok, exists }))
        }
        command => fail(ReturnCode::Unknown, format!("command {} is not possible in a session", command.number())),
    }
}

fn pending(pending: bool) -> Answer {
    Answer::Reply(Some(Reply::Pending(if pending { DataPending::Yes } else { DataPending::No })))
}

/// Creates the files of a stream and returns its handle.
fn add_stream(hub: &mut Hub, id: u64, minor: u32, add: &AddStream) -> anyhow::Result<u64> {
    let path = names::path("the path of the stream", &add.path)?;
    names::component("the name of the channel", &add.channel, SUFFIX)?;
    let share = hub.files(id)?;
    let session = hub.session(id).context("there is no session")?;
    if session.streams.len() >= MAX_STREAMS {
        bail!("a session has at most {MAX_STREAMS} streams");
    }
    // Before minor version 11, the path of the first stream begins with the session's directory, and there are no chunks.
    let (directory, chunk, below) = match &session.directory {
        Some(directory) if minor >= MINOR_WITH_CHUNKS => {
            (Rc::clone(directory), session.chunk.context("there is no chunk")?, path.clone())
        }
        known => {
            let mut parts = path.components();
            let base: PathBuf = parts.by_ref().take(2).collect();
            let directory = match known {
                Some(directory) => Rc::clone(directory),
                None => shareable(create_directory(hub, &base)?),
            };
            directory.borrow_mut().create_chunk(&CreateChunk::default())?;
            (directory, 0, parts.as_path().to_owned())
        }
    };
    let in_directory = |error: std::io::Error| anyhow!("cannot create {}: {error}", path.join(&add.channel).display());
    let place = Place {
        directory: directory.borrow_mut().stream_directory(chunk, &below).map_err(in_directory)?,
        channel: add.channel.clone(),
        format: session.is_indexed.then_some(IndexFile::of_minor(minor)),
        limit: if add.channel == METADATA_CHANNEL { (0, 0) } else { (add.file_size, add.file_count) },
        path: path.clone(),
    };
    let files = place.create(0).map_err(in_directory)?.with(share);
    if let Some(session) = hub.session_mut(id) {
        session.directory = Some(directory);
    }
    hub.open_stream(id, place, files).context("there is no session")
}

fn create_chunk(hub: &mut Hub, id: u64, chunk: &CreateChunk) -> anyhow::Result<()> {
    let session = hub.session_mut(id).context("there is no session")?;
    let directory = session.directory.as_ref().context("sessions have chunks from minor version 11 on")?;
    directory.borrow_mut().create_chunk(chunk)?;
    session.chunk = Some(chunk.id);
    Ok(())
}

fn close_chunk(hub: &mut Hub, id: u64, chunk: &CloseChunk, now: Instant) -> anyhow::Result<String> {
    let directory = hub.session(id).and_then(|session| session.directory.clone()).context("there is no chunk")?;
    let mut cleared = Vec::new();
    let closed = directory.borrow_mut().close_chunk(chunk, &mut cleared);
    hub.clear(cleared, now);
    closed.with_context(|| format!("cannot close chunk {}", chunk.id))
}

fn rotate(hub: &mut Hub, id: u64, rotation: &RotateStreams) -> anyhow::Result<()> {
    // At the end of a session the streams go into no chunk and stay where they are.
    let Some(chunk) = rotation.chunk else { return Ok(()) };
    let directory = hub.session(id).and_then(|session| session.directory.clone()).context("there is no chunk")?;
    for (handle, from) in &rotation.streams {
        let stream = hub.stream_of(id, *handle).with_context(|| format!("the session has no stream {handle}"))?;
        let below = stream.place.path.clone();
        let to = directory.borrow_mut().stream_directory(chunk, &below);
        to.and_then(|to| hub.rotate(*handle, *from, to))
            .with_context(|| format!("cannot rotate into chunk {chunk}"))?;
    }
    Ok(())
}
