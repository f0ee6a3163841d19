//! The memory of the statistics that a rule starts together: one file that contains them in sequence, or the heap.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tracepoint_probes::{Memory, Statistic, StatisticError};
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::ring_files::{MappedWords, Reservation};

use super::PlannedStatistic;
use crate::memory::ProcessMemory;

/// The file of several statistics. Dropping it unmaps it; the file stays.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) file: String,
    words: MappedWords,
}

/// The location of a statistic.
#[derive(Clone, Debug)]
pub(super) enum StatisticMemory {
    /// In these words of a file.
    File(Arc<Segment>, Range<usize>),
    Heap {
        _reservation: Arc<Reservation>,
    },
}

struct Part {
    segment: Arc<Segment>,
    words: Range<usize>,
}

impl Memory for Part {
    fn words(&self) -> &[AtomicU64] {
        &self.segment.words.words()[self.words.clone()]
    }
}

/// Creates statistics together, in the new file `name` of `dir` if there is one.
pub(super) fn make(
    planned: &[PlannedStatistic],
    file: Option<(&PrivateDir, String)>,
    memory: &Arc<ProcessMemory>,
) -> io::Result<Vec<(Statistic, StatisticMemory)>> {
    let invalid = |error: StatisticError| io::Error::other(error.to_string());
    let mut places = Vec::new();
    let mut end = 0;
    for statistic in planned {
        let words = Statistic::words_for(&statistic.spec, statistic.is_float).map_err(invalid)?;
        places.push(end..end + words);
        end = (end + words).next_multiple_of(8);
    }
    let bytes = end * size_of::<u64>();
    let reservation = memory.reserve(bytes)?;
    let Some((dir, name)) = file else {
        let reservation = Arc::new(reservation);
        let make = |planned: &PlannedStatistic| {
            let made = Statistic::new(planned.spec.clone(), planned.is_float).map_err(invalid)?;
            Ok((made, StatisticMemory::Heap { _reservation: Arc::clone(&reservation) }))
        };
        return planned.iter().map(make).collect();
    };
    let file = dir.create_file(&name, bytes as u64)?;
    let mapped = file.set_len(bytes as u64).and_then(|()| MappedWords::new(&file, end, reservation));
    let words = mapped.inspect_err(|_| dir.remove_file(&name))?;
    let segment = Arc::new(Segment { file: name, words });
    let make = |(planned, words): (&PlannedStatistic, Range<usize>)| {
        let part = Part { segment: Arc::clone(&segment), words: words.clone() };
        let made = Statistic::in_memory(planned.spec.clone(), planned.is_float, Box::new(part)).map_err(invalid)?;
        Ok((made, StatisticMemory::File(Arc::clone(&segment), words)))
    };
    planned.iter().zip(places).map(make).collect()
}
