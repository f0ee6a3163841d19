//! Processes that cannot record what they are asked to.

use crate::session::acks::of_process;
use std::collections::BTreeMap;
use tracepoint_control::{Ack, AckState, ProcessKey, Recorder};

/// The processes that have refused the session so far and have not recorded since, each with a message that names it.
#[derive(Debug, Default)]
pub(super) struct Unrecorded(BTreeMap<ProcessKey, String>);

impl Unrecorded {
    /// Adds what the processes acknowledge now, and those whose sinks the recorder cannot create.
    pub(super) fn update(&mut self, acks: &[Ack], recorder: &Recorder) {
        for ack in acks {
            match ack.state {
                AckState::Refused => {
                    let reason = ack.error.as_deref().unwrap_or("it refuses the session");
                    self.0.insert(ack.process, of_process(ack, format_args!("not recorded: {reason}")));
                }
                AckState::Recording => drop(self.0.remove(&ack.process)),
                _ => {}
            }
        }
        recorder.refused().into_iter().for_each(|(process, reason)| self.add(process, &reason));
    }

    /// Adds a process whose sinks the recorder could not create.
    pub(super) fn add(&mut self, process: ProcessKey, reason: &str) {
        self.0.insert(process, format!("process {}: not recorded: {reason}", process.pid));
    }

    /// Removes those of which something was recorded after all.
    pub(super) fn without(mut self, is_recorded: impl Fn(ProcessKey) -> bool) -> Self {
        self.0.retain(|process, _| !is_recorded(*process));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ids of the processes.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.0.keys().map(|process| process.pid).collect()
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &String> {
        self.0.values()
    }
}
