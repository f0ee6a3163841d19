//! What the sinks that stream have done, in a file beside the rings: a process that is killed leaves it, and recovery then knows which of the packets that
//! are in no ring any more their peers have.
//!
//! The file says what was acknowledged some time ago, never more than the peers have.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracepoint_run_dir::session_dir::ProcessDir;
use tracepoint_run_dir::stream_status::{STREAMS, StreamStatus};
use tracepoint_sinks::{Sink, StreamWatch};

/// The pause between two writes, as that of a recorder: how old the list is at most when its process is killed, while packets are acknowledged.
const PAUSE: Duration = Duration::from_millis(500);

/// The senders of a session, also those that have ended: what they had sent is at their peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Senders(Arc<Mutex<Vec<StreamWatch>>>);

impl Senders {
    /// Adds a sink, if it streams.
    pub(crate) fn add(&self, sink: &mut dyn Sink) {
        let watch = sink.extension().and_then(|sink| sink.stream());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(watch);
    }

    fn status(&self) -> Vec<StreamStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(StreamStatus::of).collect()
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct StreamsFile {
    dir: Arc<ProcessDir>,
    senders: Senders,
    looked: Instant,
    /// The events that were acknowledged when it was written last.
    written: Vec<Vec<(u32, u64, u64)>>,
}

impl StreamsFile {
    pub(crate) fn new(dir: Arc<ProcessDir>, senders: Senders) -> Self {
        Self { dir, senders, looked: Instant::now(), written: Vec::new() }
    }

    /// Writes the file, if its time has come and more was acknowledged. Without room, the last one stays.
    pub(super) fn write(&mut self) {
        if self.looked.elapsed() < PAUSE {
            return;
        }
        self.looked = Instant::now();
        let streams = self.senders.status();
        let acknowledged: Vec<_> = streams.iter().map(|stream| stream.acknowledged.clone()).collect();
        if acknowledged != self.written {
            let text = serde_json::to_vec(&streams).unwrap_or_default();
            if self.dir.dir().replace(STREAMS, &text).is_ok() {
                self.written = acknowledged;
            }
        }
    }
}
