//! Processes that cannot record the session.

use crate::session::acks::of_process;
use std::collections::BTreeMap;
use tracepoint_controller::{Application, Recorder};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::{Ack, AckState};

/// Processes that have refused the session and not recorded since, and those that have not answered, each with a message that
/// names it.
#[derive(Debug, Default)]
pub(super) struct UnrecordedProcesses(BTreeMap<ProcessKey, String>);

impl UnrecordedProcesses {
    /// Adds the processes that now refuse, and those whose sinks the recorder cannot create.
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

    pub(super) fn add_silent(&mut self, process: &Application) {
        let (info, reason) = (process.info(), process.silence());
        self.0.insert(info.key(), format!("process {} ({}): not recorded: {reason}", info.pid, info.name));
    }

    /// True if nothing was recorded of a process.
    pub(super) fn has(&self, process: ProcessKey) -> bool {
        self.0.contains_key(&process)
    }

    /// Removes the processes of which something was recorded after all.
    pub(super) fn without(mut self, is_recorded: impl Fn(ProcessKey) -> bool) -> Self {
        self.0.retain(|process, _| !is_recorded(*process));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.0.keys().map(|process| process.pid).collect()
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &String> {
        self.0.values()
    }
}
