//! Processes and their threads, with event counts over time.

use super::data::{Process, Track};
use super::text::cut;
use crate::slices::Slices;
use std::collections::HashMap;
use std::path::PathBuf;
use tracepoint_reader::{Event, Origin};

/// Maximum number of tracks; further threads share the last one.
const MAX: usize = 256;
/// Maximum number of slices of a track, then of all tracks together.
const SLICES: usize = 4096;
const CELLS: usize = 1 << 18;

/// A process: the UUID of its trace, and its id.
type ProcessKey = ([u8; 16], Option<u64>);

pub(super) struct Tracks {
    processes: Vec<Process>,
    by_process: HashMap<ProcessKey, usize>,
    all: Vec<Track>,
    by_thread: HashMap<(ProcessKey, Option<u64>), usize>,
    /// The track of the first event of each stream file.
    by_file: HashMap<PathBuf, usize>,
    slices: Slices,
}

impl Tracks {
    pub(super) fn new(range: (i64, i64)) -> Self {
        Self {
            processes: Vec::new(),
            by_process: HashMap::new(),
            all: Vec::new(),
            by_thread: HashMap::new(),
            by_file: HashMap::new(),
            slices: Slices::new(range, SLICES),
        }
    }

    /// Counts the event. Returns its track.
    pub(super) fn add(&mut self, event: &Event) -> usize {
        let track = self.track(event);
        let counted = &mut self.all[track];
        counted.count += 1;
        self.processes[counted.process].count += 1;
        counted.density[self.slices.index(event.time_ns)] += 1;
        if !self.by_file.contains_key(&event.stream.file) {
            self.by_file.insert(event.stream.file.clone(), track);
        }
        track
    }

    /// The track of an event that was counted, or of another one of its thread.
    pub(super) fn track(&mut self, event: &Event) -> usize {
        let origin = event.origin();
        let key = (event.stream.metadata.uuid().unwrap_or_default(), origin.pid);
        if let Some(track) = self.by_thread.get(&(key, origin.tid)) {
            return *track;
        }
        let track = if self.all.len() < MAX {
            let is_last = self.all.len() + 1 == MAX;
            let process = if is_last { self.others() } else { self.process(key, &origin) };
            let name = if is_last { "further threads".to_owned() } else { cut(&thread_name(&origin)) };
            self.all.push(Track { process, name, count: 0, density: vec![0; SLICES] });
            self.all.len() - 1
        } else {
            MAX - 1
        };
        self.by_thread.insert((key, origin.tid), track);
        track
    }

    fn others(&mut self) -> usize {
        self.processes.push(Process { name: "(further)".to_owned(), ..Process::default() });
        self.processes.len() - 1
    }

    fn process(&mut self, key: ProcessKey, origin: &Origin<'_>) -> usize {
        *self.by_process.entry(key).or_insert_with(|| {
            self.processes.push(Process {
                name: cut(origin.program.unwrap_or("(unnamed)")),
                pid: origin.pid,
                host: origin.host.map(cut),
                count: 0,
            });
            self.processes.len() - 1
        })
    }

    /// The track of the first event in this file.
    pub(super) fn of_file(&self, file: &PathBuf) -> Option<usize> {
        self.by_file.get(file).copied()
    }

    /// All processes and tracks, with as many slices each as the total bound allows.
    pub(super) fn finish(mut self) -> (Vec<Process>, Vec<Track>) {
        let mut together = 1;
        while self.all.len() * (SLICES / together) > CELLS {
            together *= 2;
        }
        for track in &mut self.all {
            track.density = track.density.chunks(together).map(|counts| counts.iter().sum()).collect();
        }
        (self.processes, self.all)
    }
}

fn thread_name(origin: &Origin<'_>) -> String {
    let name = origin.thread.map(String::from_utf8_lossy);
    match (origin.tid, name) {
        (Some(tid), Some(name)) => format!("{name} {tid}"),
        (Some(tid), None) if origin.pid == Some(tid) => format!("main {tid}"),
        (Some(tid), None) => format!("thread {tid}"),
        (None, Some(name)) => name.into_owned(),
        (None, None) => "all threads".to_owned(),
    }
}
