//! Groups the opened directories and dt files by trace.

use super::{Directory, Part};
use crate::chunk::root;
use crate::dt::DtTrace;

/// All parts of one trace.
pub(super) enum TraceParts<'a> {
    /// The directory of a trace, or its chunks.
    Directories(Vec<&'a Directory>),
    Dt(&'a DtTrace),
}

impl TraceParts<'_> {
    pub(super) fn uuid(&self) -> Option<[u8; 16]> {
        match self {
            Self::Directories(parts) => parts.first().and_then(|directory| directory.metadata.uuid()),
            Self::Dt(trace) => trace.metadata().uuid(),
        }
    }
}

/// The parts, grouped by trace, ordered by the first part of each.
pub(super) fn traces(parts: &[Part]) -> Vec<TraceParts<'_>> {
    let mut traces: Vec<TraceParts<'_>> = Vec::new();
    for part in parts {
        let directory = match part {
            Part::Directory(directory) => directory,
            Part::Dt(trace) => {
                traces.push(TraceParts::Dt(trace));
                continue;
            }
        };
        let begun = traces.iter_mut().find_map(|trace| match trace {
            TraceParts::Directories(parts) if directory.continues(parts) => Some(parts),
            _ => None,
        });
        match begun {
            Some(parts) => parts.push(directory),
            None => traces.push(TraceParts::Directories(vec![directory])),
        }
    }
    traces
}

impl Directory {
    /// True if it is a chunk of the same trace.
    fn continues(&self, trace: &[&Self]) -> bool {
        let same =
            |other: &&Self| root(&other.path) == root(&self.path) && other.metadata.uuid() == self.metadata.uuid();
        self.metadata.uuid().is_some() && trace.first().is_some_and(same)
    }
}
