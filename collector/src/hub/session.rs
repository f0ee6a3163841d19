//! A session of a sender.

use super::directory::SessionDirectory;
use super::streamed::StreamedSession;
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
    /// Interval at which the sender sends beacons for idle streams. 0: never, and viewers cannot attach.
    pub(crate) live_timer: Duration,
    /// The sender's identifier of the session; the connections of several consumer daemons share it.
    pub(crate) key: ([u8; 16], u64),
    /// `None` until the first stream gives the path, before minor version 11.
    pub(crate) directory: Option<Rc<RefCell<SessionDirectory>>>,
    /// The chunk for new streams.
    pub(crate) chunk: Option<u64>,
    /// Handles of the streams, in the order in which they were added.
    pub(crate) streams: Vec<u64>,
    /// Number of streams announced to viewers.
    pub(crate) published: usize,
    /// The sender's address.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) viewers: usize,
    /// Set if index files are written.
    pub(crate) is_indexed: bool,
    /// Numbers of the traces, by the path of their streams.
    traces: HashMap<PathBuf, u64>,
    /// State of the stream protocol, if the session uses it.
    pub(crate) streamed: Option<StreamedSession>,
    admission: Admission,
    /// Set when its resources are needed: at its end it waits neither for packets nor for viewers.
    pub(super) is_hurried: bool,
    state: State,
}

/// The resources that a session holds from its beginning.
#[derive(Debug)]
pub(crate) struct Admission {
    address: Address,
    memory: SenderMemory,
    /// The share of the limit on sessions.
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

    /// Returns the word for it in messages.
    pub(crate) fn kind(&self) -> &'static str {
        if self.live_timer.is_zero() { "session" } else { "live session" }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// Returns the time when the sender disconnected.
    pub(crate) fn closing_since(&self) -> Option<Instant> {
        match self.state {
            State::Open => None,
            State::Closing(since) | State::Closed(since) => Some(since),
        }
    }

    /// Returns the sender's location.
    pub(crate) const fn address(&self) -> Address {
        self.admission.address
    }

    /// Returns the memory for its packets.
    pub(crate) const fn memory(&self) -> &SenderMemory {
        &self.admission.memory
    }

    pub(crate) fn begin_closing(&mut self, now: Instant) {
        if self.state == State::Open {
            self.state = State::Closing(now);
        }
    }

    /// Records that all files are closed: the directory is complete.
    pub(crate) fn close(&mut self) {
        if let State::Closing(since) = self.state {
            self.state = State::Closed(since);
        }
        self.directory = None;
    }

    /// Returns the number of the trace whose streams have this path; assigns `next` if there is none yet.
    pub(crate) fn trace(&mut self, path: &Path, next: u64) -> u64 {
        *self.traces.entry(path.to_owned()).or_insert(next)
    }
}
