//! The packets that the recorder has taken from the rings, by process.

use std::collections::BTreeMap;
use tracepoint_controller::RecordedProcess;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::Ack;

#[derive(Debug, Default)]
pub(super) struct RecordedProcesses(BTreeMap<ProcessKey, RecordedProcess>);

impl RecordedProcesses {
    pub(super) fn new(recorded: &[RecordedProcess]) -> Self {
        let mut all: BTreeMap<ProcessKey, RecordedProcess> = BTreeMap::new();
        for one in recorded {
            let Some(process) = one.process else { continue };
            // A process that records more than once has several entries.
            let sum = match all.remove(&process) {
                Some(before) => before.and(one),
                None => one.clone(),
            };
            all.insert(process, sum);
        }
        Self(all)
    }

    /// Adds to the acknowledgements what the processes do not know: the outputs of the packets and the final counts.
    pub(super) fn add_to(&self, acks: &mut [Ack]) {
        for ack in acks {
            if let Some(recorded) = self.0.get(&ack.process) {
                recorded.add_to(ack);
            }
        }
    }

    pub(super) fn get(&self, process: ProcessKey) -> Option<&RecordedProcess> {
        self.0.get(&process)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (ProcessKey, &RecordedProcess)> {
        self.0.iter().map(|(process, recorded)| (*process, recorded))
    }
}
