//! The progress of streaming sinks, in a file next to the rings. If the process is killed, recovery reads from it which packets that are no
//! longer in a ring were received by the peers.
//!
//! The file may lag behind the acknowledgements of the peers, but never exceeds them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracepoint_run_dir::session_dir::ProcessDir;
use tracepoint_run_dir::stream_status::{STREAMS, StreamStatus};
use tracepoint_sinks::{Sink, StreamWatch};

/// The interval between two writes, equal to that of a recorder: the maximum age of the list when its process is killed while packets are
/// acknowledged.
const PAUSE: Duration = Duration::from_millis(500);

/// The senders of a session, including ended ones: the peers have the packets that they sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Senders(Arc<Mutex<Vec<StreamWatch>>>);

impl Senders {
    /// Adds a sink if it streams.
    pub(crate) fn add(&self, sink: &mut dyn Sink) {
        let watch = sink.extension().and_then(|sink| sink.stream());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(watch);
    }

    fn status(&self) -> Vec<StreamStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(StreamStatus::of).collect()
    }
}

#[derive(Debug)]
pub(crate) struct StreamsFile {
    dir: Arc<ProcessDir>,
    senders: Senders,
    looked: Instant,
    /// The acknowledged events at the last write.
    written: Vec<Vec<(u32, u64, u64)>>,
}

impl StreamsFile {
    pub(crate) fn new(dir: Arc<ProcessDir>, senders: Senders) -> Self {
        Self { dir, senders, looked: Instant::now(), written: Vec::new() }
    }

    /// Writes the file, if it is due and more events were acknowledged. Without space on the file system, the last version stays.
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
