//! Processes and threads of events, and paths of spans, represented by small numbers.

use std::collections::HashMap;

use tracepoint_reader::metadata::{EnvValue, Module};
use tracepoint_reader::{Event, Origin, Stream};

/// A thread, as an index for [`Sources::thread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub(crate) u32);

impl ThreadId {
    /// The index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A process that was traced.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Process {
    /// The name of its host.
    pub host: Option<String>,
    /// Its name.
    pub program: Option<String>,
    /// Its id, if known: other tracers need not record it.
    pub pid: Option<u64>,
    /// A unique id for viewers without a concept of hosts: the process id, or if that belongs to another process in the same view, a number above all
    /// process ids of Linux.
    pub shown_pid: Option<u32>,
    /// UUID of its trace.
    pub trace: Option<[u8; 16]>,
    /// The code mapped in the process, if the trace has call stacks.
    pub(crate) modules: Vec<Module>,
}

/// A thread that was traced.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Thread {
    /// Its process, as an index for [`Sources::process`].
    pub process: u32,
    /// Its id; `None` for events of a process whose thread is unknown.
    pub tid: Option<u64>,
    /// Its name, if the channel records it.
    pub name: Option<String>,
}

/// Maximum number of processes; further ones count as the first one.
const MAX_PROCESSES: usize = 1 << 16;
/// Maximum number of threads; further ones count as the first one.
const MAX_THREADS: usize = 1 << 20;
/// Maximum number of paths; a further one is truncated to its parent.
const MAX_PATHS: usize = 1 << 20;
/// The first substitute for a process id: above the largest process id of Linux.
const FIRST_SHOWN_PID: u32 = 1 << 22;

/// All processes and threads so far, and the paths of span names.
#[derive(Debug)]
pub struct Sources {
    processes: Vec<Process>,
    threads: Vec<Thread>,
    known_processes: HashMap<(Option<[u8; 16]>, Option<u64>), u32>,
    known_threads: HashMap<(u32, Option<u64>), ThreadId>,
    /// The parent of each path, and its last name. The first path is the empty one.
    paths: Vec<(u32, String)>,
    known_paths: HashMap<(u32, String), u32>,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            processes: Vec::new(),
            threads: Vec::new(),
            known_processes: HashMap::new(),
            known_threads: HashMap::new(),
            paths: vec![(0, String::new())],
            known_paths: HashMap::new(),
        }
    }
}

impl Sources {
    /// The process with this index.
    ///
    /// # Panics
    /// If the index does not come from these sources.
    pub fn process(&self, index: u32) -> &Process {
        &self.processes[index as usize]
    }

    /// The thread with this id.
    ///
    /// # Panics
    /// If the id does not come from these sources.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.index()]
    }

    /// The process of a thread.
    ///
    /// # Panics
    /// If the id does not come from these sources.
    pub fn process_of(&self, id: ThreadId) -> &Process {
        self.process(self.thread(id).process)
    }

    /// The name of a process. A trace of the kernel does not have it; another trace of the same host may have it for the same process id.
    ///
    /// # Panics
    /// If the index does not come from these sources.
    pub fn program(&self, index: u32) -> Option<&str> {
        let process = self.process(index);
        let is_same = |other: &&Process| other.pid == process.pid && other.host == process.host;
        let mut others = self.processes.iter().filter(is_same).filter_map(|other| other.program.as_deref());
        process.program.as_deref().or_else(|| others.next_back().filter(|_| process.pid.is_some()))
    }

    /// The names on a path, outermost first.
    ///
    /// # Panics
    /// If the path does not come from these sources.
    pub fn path(&self, mut path: u32) -> Vec<&str> {
        let mut names = Vec::new();
        while path != 0 {
            let (parent, name) = &self.paths[path as usize];
            names.push(name.as_str());
            path = *parent;
        }
        names.reverse();
        names
    }

    /// The path that extends `parent` by a name; 0 is the empty path. Returns `parent` if there are too many paths.
    pub(crate) fn path_below(&mut self, parent: u32, name: &str) -> u32 {
        let key = (parent, name.to_owned());
        if let Some(known) = self.known_paths.get(&key) {
            return *known;
        }
        if self.paths.len() >= MAX_PATHS {
            return parent;
        }
        let path = self.paths.len() as u32;
        self.paths.push((parent, name.to_owned()));
        self.known_paths.insert(key, path);
        path
    }

    pub(crate) fn of_event(&mut self, event: &Event) -> ThreadId {
        let origin = event.origin();
        self.of_origin(&event.stream, &origin)
    }

    /// The thread or the process of a stream.
    pub(crate) fn of_stream(&mut self, stream: &Stream) -> ThreadId {
        let text = |name: &str| match stream.metadata.env_value(name) {
            Some(EnvValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let number = match stream.metadata.env_value("vpid") {
            Some(EnvValue::Integer(pid)) => u64::try_from(*pid).ok(),
            _ => None,
        };
        let mut origin = Origin::default();
        (origin.host, origin.program, origin.pid) = (text("hostname"), text("procname"), number);
        self.of_origin(stream, &origin)
    }

    fn of_origin(&mut self, stream: &Stream, origin: &Origin<'_>) -> ThreadId {
        let (trace, pid) = (stream.metadata.uuid(), origin.pid);
        let process = match self.known_processes.get(&(trace, pid)) {
            Some(known) => *known,
            None if self.processes.len() >= MAX_PROCESSES => 0,
            None => self.add_process(stream, pid, origin),
        };
        let tid = origin.tid;
        let id = match self.known_threads.get(&(process, tid)) {
            Some(known) => *known,
            None if self.threads.len() >= MAX_THREADS => return ThreadId(0),
            None => {
                let id = ThreadId(self.threads.len() as u32);
                self.threads.push(Thread { process, tid, name: None });
                self.known_threads.insert((process, tid), id);
                id
            }
        };
        let thread = &mut self.threads[id.index()];
        if thread.name.is_none() {
            thread.name = origin.thread.map(|name| String::from_utf8_lossy(name).into_owned());
        }
        id
    }

    fn add_process(&mut self, stream: &Stream, pid: Option<u64>, origin: &Origin<'_>) -> u32 {
        let host = origin.host.map(str::to_owned);
        let program = origin.program.map(str::to_owned);
        let of_host = || self.processes.iter().filter(|known| known.pid == pid && known.host == host);
        let same = of_host().find(|known| known.program == program);
        // A trace of the kernel does not have the names of processes.
        let is_named = |known: &Process| of_host().any(|it| it.program.is_some() && it.shown_pid == known.shown_pid);
        let may_be_same = |known: &&Process| program.is_none() || known.program.is_none() && !is_named(known);
        let shown_pid = match same.or_else(|| of_host().find(may_be_same)) {
            Some(same) => same.shown_pid,
            None => pid.map(|pid| {
                let pid = u32::try_from(pid).ok().filter(|pid| *pid < FIRST_SHOWN_PID);
                self.free_pid(pid.unwrap_or(FIRST_SHOWN_PID))
            }),
        };
        let index = self.processes.len() as u32;
        let (trace, modules) = (stream.metadata.uuid(), stream.metadata.modules().filter_map(Module::parse).collect());
        self.processes.push(Process { host, program, pid, shown_pid, trace, modules });
        self.known_processes.insert((trace, pid), index);
        index
    }

    /// Returns `wanted` if no process is displayed with this number, and an unused number otherwise.
    fn free_pid(&self, wanted: u32) -> u32 {
        let shown = || self.processes.iter().filter_map(|known| known.shown_pid);
        if shown().all(|known| known != wanted) {
            return wanted;
        }
        shown().map(|known| known + 1).fold(FIRST_SHOWN_PID, u32::max)
    }
}
