//! A session of a sender.

use super::directory::SessionDirectory;
use super::streamed::Streamed;
use crate::memory::SenderMemory;
use crate::shares::{Address, Share};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A session, from the sender's first command until its streams are closed and no viewer reads it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) host: String,
    /// How often the sender gives signs of life of idle streams; 0: never, and viewers cannot attach.
    pub(crate) live_timer: Duration,
    /// The sender's identity of the session: connections of several consumer daemons have the same.
    pub(crate) key: ([u8; 16], u64),
    /// `None` until the first stream says where it is: before minor 11.
    pub(crate) directory: Option<Rc<RefCell<SessionDirectory>>>,
    /// The chunk of new streams.
    pub(crate) chunk: Option<u64>,
    /// The streams, by handle, in the order in which they were added.
    pub(crate) streams: Vec<u64>,
    /// How many of them viewers may be told of.
    pub(crate) published: usize,
    /// The address of the sender.
    pub(crate) peer: Option<IpAddr>,
    /// Viewers that are attached.
    pub(crate) viewers: usize,
    /// Whether index files are written.
    pub(crate) is_indexed: bool,
    /// The numbers of the traces, by the path of their streams.
    traces: HashMap<PathBuf, u64>,
    /// For a session of the stream protocol.
    pub(crate) streamed: Option<Streamed>,
    admission: Admission,
    /// The room is needed: no packet and no viewer is waited for at the end.
    is_hurried: bool,
    state: State,
}

/// What a session has from its beginning on.
#[derive(Debug)]
pub(crate) struct Admission {
    address: Address,
    memory: SenderMemory,
    /// Of the sessions of all addresses.
    _share: Share,
}

impl Admission {
    pub(super) const fn new(address: Address, memory: SenderMemory, share: Share) -> Self {
        Self { address, memory, _share: share }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The sender is gone; files are being completed.
    Closing(Instant),
    /// All files are closed.
    Closed(Instant),
}

impl Session {
    pub(crate) fn new(
        (name, host): (String, String),
        live_timer: Duration,
        key: ([u8; 16], u64),
        admission: Admission,
    ) -> Self {
        Self {
            name,
            host,
            live_timer,
            key,
            directory: None,
            chunk: None,
            streams: Vec::new(),
            published: 0,
            peer: None,
            viewers: 0,
            is_indexed: true,
            traces: HashMap::new(),
            streamed: None,
            admission,
            is_hurried: false,
            state: State::Open,
        }
    }

    /// For messages.
    pub(crate) fn kind(&self) -> &'static str {
        if self.live_timer.is_zero() { "session" } else { "live session" }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// Since when the sender is gone.
    pub(crate) fn closing_since(&self) -> Option<Instant> {
        match self.state {
            State::Open => None,
            State::Closing(since) | State::Closed(since) => Some(since),
        }
    }

    /// Where its sender is.
    pub(crate) const fn address(&self) -> Address {
        self.admission.address
    }

    /// The memory of its packets.
    pub(crate) const fn memory(&self) -> &SenderMemory {
        &self.admission.memory
    }

    /// Waits for nothing at the end.
    pub(super) const fn hurry(&mut self) {
        self.is_hurried = true;
    }

    pub(super) const fn is_hurried(&self) -> bool {
        self.is_hurried
    }

    pub(crate) fn begin_closing(&mut self, now: Instant) {
        if self.state == State::Open {
            self.state = State::Closing(now);
        }
    }

    /// All files are closed: the directory is complete.
    pub(crate) fn close(&mut self) {
        if let State::Closing(since) = self.state {
            self.state = State::Closed(since);
        }
        self.directory = None;
    }

    /// The number of the trace whose streams have this path; `next` if there is none yet.
    pub(crate) fn trace(&mut self, path: &Path, next: u64) -> u64 {
        *self.traces.entry(path.to_owned()).or_insert(next)
    }
}
