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

/// A thread, in all traces of its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThreadKey {
    pub(super) host: Option<String>,
    pub(super) pid: Option<u64>,
    pub(super) tid: u64,
}

pub(super) struct Tracks {
    processes: Vec<Process>,
    by_process: HashMap<ProcessKey, usize>,
    all: Vec<Track>,
    by_thread: HashMap<(ProcessKey, Option<u64>), usize>,
    /// The track of each thread, preferably of a trace that has the name of the process.
    by_key: HashMap<ThreadKey, (usize, bool)>,
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
            by_key: HashMap::new(),
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
            let name = if is_last {
                "further threads".to_owned()
            } else {
                cut(&thread_name(origin.pid, origin.tid, origin.thread))
            };
            self.all.push(Track { process, name, count: 0, density: vec![0; SLICES] });
            self.all.len() - 1
        } else {
            MAX - 1
        };
        self.by_thread.insert((key, origin.tid), track);
        if let Some(tid) = origin.tid {
            let key = ThreadKey { host: origin.host.map(str::to_owned), pid: origin.pid, tid };
            let is_named = origin.program.is_some();
            self.by_key
                .entry(key)
                .and_modify(|known| {
                    if is_named && !known.1 {
                        *known = (track, true);
                    }
                })
                .or_insert((track, is_named));
        }
        track
    }

    /// The track of a thread in any trace of its host; a new one, if the thread has no selected event. `None` if it has no track of its own, because
    /// there are too many.
    pub(super) fn of_thread(&mut self, key: &ThreadKey, name: Option<&str>) -> Option<usize> {
        if let Some((track, _)) = self.by_key.get(key) {
            return (*track < MAX - 1).then_some(*track);
        }
        if self.all.len() + 1 >= MAX {
            return None;
        }
        let same = |(other, _): &(&ThreadKey, &(usize, bool))| other.host == key.host && other.pid == key.pid;
        let known = self.by_key.iter().filter(same).map(|(_, known)| *known).max_by_key(|known| (known.1, known.0));
        let process = if let Some((track, _)) = known {
            self.all[track].process
        } else {
            let (name, host) = ("(unnamed)".to_owned(), key.host.as_deref().map(cut));
            self.processes.push(Process { name, pid: key.pid, host, count: 0 });
            self.processes.len() - 1
        };
        let name = cut(&thread_name(key.pid, Some(key.tid), name.map(str::as_bytes)));
        self.all.push(Track { process, name, count: 0, density: vec![0; SLICES] });
        let track = self.all.len() - 1;
        self.by_key.insert(key.clone(), (track, false));
        Some(track)
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

fn thread_name(pid: Option<u64>, tid: Option<u64>, name: Option<&[u8]>) -> String {
    match (tid, name.map(String::from_utf8_lossy)) {
        (Some(tid), Some(name)) => format!("{name} {tid}"),
        (Some(tid), None) if pid == Some(tid) => format!("main {tid}"),
        (Some(tid), None) => format!("thread {tid}"),
        (None, Some(name)) => name.into_owned(),
        (None, None) => "all threads".to_owned(),
    }
}
