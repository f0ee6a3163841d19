//! What became of a process.

use crate::ack::{Ack, Counters};
use crate::process::ProcessKey;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What was recorded of one process, by one [`Recorder`](super::Recorder).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recorded {
    /// The process; `None` if what takes the rest of it has failed.
    pub process: Option<ProcessKey>,
    /// Its short name.
    pub name: String,
    /// Where its traces are.
    pub outputs: Vec<PathBuf>,
    /// Where servers listen, while it is recorded.
    pub servers: Vec<SocketAddr>,
    /// Bytes that sinks took.
    pub bytes: u64,
    /// Of one that is recorded no more, all that was counted.
    pub counters: Option<Counters>,
    /// Whether all could be read, and it records no more.
    pub complete: bool,
    /// What there is to tell of its sinks, while it is recorded.
    pub sinks: Vec<String>,
    /// What is wrong with its rings.
    pub notes: Vec<String>,
    /// What sinks could not do.
    pub errors: Vec<String>,
}

impl Recorded {
    /// Of one for which there were no sinks.
    pub(super) fn refused(process: ProcessKey, reason: String) -> Self {
        Self { process: Some(process), errors: vec![reason], ..Self::default() }
    }

    /// Adds to what the process says of itself what it cannot know: it does not see where its packets go.
    pub fn add_to(&self, ack: &mut Ack) {
        match &self.counters {
            // The rings know it better, of one that was killed.
            Some(counters) => ack.counters = counters.clone(),
            None => ack.counters.bytes = self.bytes,
        }
        ack.outputs.clone_from(&self.outputs);
        ack.servers.clone_from(&self.servers);
        ack.sinks.clone_from(&self.sinks);
    }

    /// The sum of this and another recording of the same process.
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
        self.complete &= other.complete;
        for (own, others) in
            [(&mut self.sinks, &other.sinks), (&mut self.notes, &other.notes), (&mut self.errors, &other.errors)]
        {
            own.extend(others.iter().cloned());
        }
        self
    }
}
