//! The rings of the sessions that write the traces: they show up to which time all events are in the files.
//!
//! The rings are read before the files. An event that is in no ring at that time is in the files, or has not happened yet. So no event can
//! appear from before the oldest packet, closed or open, in a ring. If the rings are empty, none can appear from before the look itself, minus
//! a margin for events that have read the clock and are being written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::account::Policy;
use crate::metadata::Metadata;
use crate::path_bytes;
use crate::recover::is_recording;
use crate::ring::{RING_EXTENSION, Ring, Side};
use crate::source;

/// Maximum time from reading the clock until the event is in the ring.
const WRITING: u64 = 100_000_000;
/// How long the recorder may need to take the rings of a process that has ended.
const TAKEN: Duration = Duration::from_secs(2);
/// Maximum size of a list of outputs, in bytes.
const MAX_OUTPUTS: usize = 1 << 20;

/// The processes that record into the run directory.
#[derive(Debug, Default)]
pub(super) struct Rings {
    processes: BTreeMap<PathBuf, Process>,
}

/// The recording of one process.
#[derive(Debug)]
struct Process {
    metadata: Metadata,
    /// The outputs of its sinks.
    outputs: Vec<PathBuf>,
    /// The time before which no more events appear, in nanoseconds since the epoch.
    bound: i64,
    /// When the end of the process was noticed.
    ended: Option<Instant>,
}

/// The state of the rings.
#[derive(Debug, Default)]
pub(super) struct RingProgress {
    /// The outputs of processes whose rings were read.
    pub(super) outputs: Vec<PathBuf>,
    /// The time before which no more events appear in these outputs, in nanoseconds since the epoch.
    pub(super) bound: Option<i64>,
}

impl RingProgress {
    /// True if files below `root` are outputs of these processes.
    pub(super) fn covers(&self, root: &Path) -> bool {
        self.outputs.iter().any(|output| root.starts_with(output))
    }
}

impl Rings {
    /// Reads the rings of all processes that write at or below `paths`, which are canonical.
    pub(super) fn look(&mut self, run_directory: &Path, paths: &[PathBuf]) -> RingProgress {
        let mut known = RingProgress::default();
        let mut found = BTreeMap::new();
        for session in entries(&run_directory.join("sessions")) {
            for directory in entries(&session.join("rings")) {
                let earlier = self.processes.remove(&directory);
                let Some(mut process) = earlier.or_else(|| Process::open(&directory)) else { continue };
                process.outputs = outputs(&directory);
                let is_followed =
                    process.outputs.iter().any(|output| paths.iter().any(|path| output.starts_with(path)));
                if is_followed && process.look(&directory) {
                    known.outputs.extend(process.outputs.iter().cloned());
                    known.bound = Some(known.bound.map_or(process.bound, |bound| bound.min(process.bound)));
                }
                found.insert(directory, process);
            }
        }
        self.processes = found;
        known
    }
}

impl Process {
    /// `None` if the recording is incomplete, or its clock is not the system's.
    fn open(directory: &Path) -> Option<Self> {
        let metadata = Metadata::open(&directory.join("metadata")).ok()?;
        metadata.clocks().first()?.uuid?;
        Some(Self { metadata, outputs: Vec::new(), bound: i64::MIN, ended: None })
    }

    /// Advances the bound; returns true if there is one.
    fn look(&mut self, directory: &Path) -> bool {
        let mut oldest = monotonic().saturating_sub(WRITING);
        let mut has_ended = false;
        for path in entries(directory).filter(|path| path.extension().is_some_and(|name| name == RING_EXTENSION)) {
            // A file that is being created has no events yet.
            let Ok(Some(ring)) = Ring::open(&path) else { continue };
            has_ended = has_ended || !is_recording(ring.identity(), directory);
            // A flight recorder hands over its packets only at the end.
            if ring.policy() == Policy::Overwrite {
                continue;
            }
            for side in Side::ALL {
                match ring.oldest(side) {
                    Ok(begin) => oldest = oldest.min(begin.unwrap_or(oldest)),
                    // The next look reads it again.
                    Err(_) => return self.bound > i64::MIN,
                }
            }
        }
        if has_ended && self.ended.get_or_insert_with(Instant::now).elapsed() > TAKEN {
            return false;
        }
        let bound = self.metadata.clocks().first().map_or(i64::MIN, |clock| clock.nanoseconds(oldest));
        self.bound = self.bound.max(bound);
        true
    }
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
#[cfg(unix)]
fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Here the clock has no name, and no other process records.
#[cfg(not(unix))]
fn monotonic() -> u64 {
    tracepoint_ring::clock::now()
}

/// The paths of the entries of a directory; none if it cannot be read.
fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// The CTF directories in the list of a process.
fn outputs(directory: &Path) -> Vec<PathBuf> {
    let text = source::read_bounded(&directory.join("outputs"), MAX_OUTPUTS).unwrap_or_default();
    let paths = text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"ctf "));
    paths.map(path_bytes::path).collect()
}
