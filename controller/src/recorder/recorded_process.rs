//! The result of recording one process.

use std::net::SocketAddr;
use std::path::PathBuf;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::ack::{Ack, Counters};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::stream_status::StreamStatus;
use tracepoint_sinks::UdpStats;

/// The result or progress of one process, recorded by one [`Recorder`](super::Recorder).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecordedProcess {
    /// The process; `None` if the thread that finished it panicked.
    pub process: Option<ProcessKey>,
    /// The process's short name.
    pub name: String,
    /// The paths of its traces.
    pub outputs: Vec<PathBuf>,
    /// The addresses of its servers, while it is recorded.
    pub servers: Vec<SocketAddr>,
    /// The counters of its servers by address, once the recording has ended.
    pub served: Vec<(SocketAddr, UdpStats)>,
    /// The status of its streaming sinks, while it is recorded.
    pub streams: Vec<StreamStatus>,
    /// The number of bytes that sinks accepted.
    pub bytes: u64,
    /// All counters, once the recording has ended.
    pub counters: Option<Counters>,
    /// True if the recording has ended and all data could be read.
    pub complete: bool,
    /// Notices of its sinks, while it is recorded.
    pub notices: Vec<Notice>,
    /// Damage found in its rings or metadata.
    pub notes: Vec<String>,
    /// Errors of its sinks. Reaching the maximum size of the recording is not an error.
    pub errors: Vec<String>,
    /// True if its sinks have refused packets because the recording has reached its maximum size.
    pub is_full: bool,
}

impl RecordedProcess {
    /// The result of a process whose sinks could not be created.
    pub(super) fn refused(process: ProcessKey, reason: String) -> Self {
        Self { process: Some(process), errors: vec![reason], ..Self::default() }
    }

    /// Adds to the process's acknowledgement the data that only the recorder has: the outputs, and the counters of a process that was
    /// killed.
    pub fn add_to(&self, ack: &mut Ack) {
        match &self.counters {
            // For a killed process the counters in the rings are more recent than its acknowledgement.
            Some(counters) => ack.counters = counters.clone(),
            None => ack.counters.bytes = self.bytes,
        }
        ack.outputs.clone_from(&self.outputs);
        ack.servers.clone_from(&self.servers);
        ack.streams.clone_from(&self.streams);
        ack.notices.extend(self.notices.iter().cloned());
    }

    /// Returns the sum of this and another recording of the same process.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let counters = [self.counters.take(), other.counters.clone()];
        self.counters = counters.into_iter().flatten().reduce(|mut sum, counters| {
            sum.add(&counters);
            sum
        });
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.outputs.extend(other.outputs.iter().cloned());
        self.servers.extend(&other.servers);
        self.served.extend(&other.served);
        self.streams.extend(other.streams.iter().cloned());
        self.complete &= other.complete;
        self.is_full |= other.is_full;
        self.notices.extend(other.notices.iter().cloned());
        for (own, others) in [(&mut self.notes, &other.notes), (&mut self.errors, &other.errors)] {
            own.extend(others.iter().cloned());
        }
        self
    }
}
