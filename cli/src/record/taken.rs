//! What the recorder has taken, by process, beside what the processes say of themselves.

use std::collections::BTreeMap;
use tracepoint_control::{Ack, ProcessKey, Recorded};

/// By process.
#[derive(Debug, Default)]
pub(super) struct Taken(BTreeMap<ProcessKey, Recorded>);

impl Taken {
    pub(super) fn of(recorded: &[Recorded]) -> Self {
        let mut all: BTreeMap<ProcessKey, Recorded> = BTreeMap::new();
        for one in recorded {
            let Some(process) = one.process else { continue };
            // A process that records more than once has several.
            let sum = match all.remove(&process) {
                Some(before) => before.and(one),
                None => one.clone(),
            };
            all.insert(process, sum);
        }
        Self(all)
    }

    /// Adds to the acknowledgements what the processes cannot know.
    pub(super) fn add_to(&self, acks: &mut [Ack]) {
        for ack in acks {
            if let Some(recorded) = self.0.get(&ack.process) {
                recorded.add_to(ack);
            }
        }
    }

    pub(super) fn get(&self, process: ProcessKey) -> Option<&Recorded> {
        self.0.get(&process)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (ProcessKey, &Recorded)> {
        self.0.iter().map(|(process, recorded)| (*process, recorded))
    }
}
