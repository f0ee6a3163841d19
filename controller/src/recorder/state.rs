//! A round of a recorder: it finds new processes, drains the known ones, and ends those that have ended.

use super::NAME;
use super::files::{self, OpenFiles};
use super::process::RemoteProcess;
use super::recorded_process::RecordedProcess;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::bandwidth::Buckets;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::rights::Rights;
use tracepoint_run_dir::session_dir::RemoteRingDirs;
use tracepoint_session_io::outputs::Allowance;
use tracepoint_session_spec::SinkSpec;
use tracepoint_sinks::consumer_loop::Round;

/// The shortest and longest interval before the creation of sinks is retried after an error.
const MIN_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(8);
/// Number of new processes that are leased under one lock, and the maximum time that the first ones wait for it.
const TAKEN_AT_ONCE: usize = 32;
const TAKE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time that `finish` waits for processes that have acknowledged the end.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Called when the processes that are recorded have changed, or the output is full.
type OnChange = Box<dyn Fn() + Send>;

pub(super) struct State {
    session: PrivateDir,
    rings: Option<RemoteRingDirs>,
    sinks: Vec<SinkSpec>,
    /// The caps on the bandwidth; `None` if no sink streams.
    buckets: Option<Buckets>,
    allowance: Arc<Allowance>,
    open: OpenFiles,
    /// The rights with which process directories are read and sinks write.
    rights: Rights,
    processes: BTreeMap<String, RemoteProcess>,
    /// Processes whose sinks could not be created, by the name of their directory.
    refused: BTreeMap<String, RefusedProcess>,
    /// Threads that finish sinks which may block, by the name of the process's directory. A lease does not exclude this recorder itself, so
    /// a directory must not be attached again before its thread has ended.
    ending: BTreeMap<String, JoinHandle<RecordedProcess>>,
    /// The directories that the last round could not read because another process held the lock; and the error.
    unseen: Option<(Vec<String>, String)>,
    done: Vec<RecordedProcess>,
    on_change: Option<OnChange>,
    /// The shortest time that an event of the processes waits for this recorder; `None` if events do not wait.
    max_wait: Option<Duration>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("session", &self.session)
            .field("processes", &self.processes)
            .finish_non_exhaustive()
    }
}

/// A process whose sinks could not be created.
#[derive(Debug)]
struct RefusedProcess {
    again: Instant,
    pause: Duration,
    reason: String,
}

impl State {
    /// Creates the state without processes.
    pub(super) fn new(
        session: PrivateDir,
        (sinks, buckets): (Vec<SinkSpec>, Option<Buckets>),
        allowance: Arc<Allowance>,
        rights: Rights,
        max_wait: Option<Duration>,
    ) -> Self {
        Self {
            session,
            rings: None,
            sinks,
            buckets,
            allowance,
            open: OpenFiles::default(),
            rights,
            processes: BTreeMap::new(),
            refused: BTreeMap::new(),
            ending: BTreeMap::new(),
            unseen: None,
            done: Vec::new(),
            on_change: None,
            max_wait,
        }
    }

    pub(super) fn on_change(&mut self, call: OnChange) {
        self.on_change = Some(call);
    }

    /// The results of the processes that have ended, and the progress of the others.
    pub(super) fn recorded(&self) -> Vec<RecordedProcess> {
        let running = self.processes.values().map(RemoteProcess::progress);
        self.done.iter().cloned().chain(running).collect()
    }

    /// The processes whose sinks could not be created, with the error.
    pub(super) fn refused(&self) -> Vec<(ProcessKey, String)> {
        let describe = |(name, refused): (&String, &RefusedProcess)| {
            Some((ProcessKey::of_directory(name)?, refused.reason.clone()))
        };
        self.refused.iter().filter_map(describe).collect()
    }

    /// Drains all remaining packets: see [`Recorder::finish`](super::Recorder::finish).
    pub(super) fn finish(&mut self, silent: &[ProcessKey]) -> Vec<RecordedProcess> {
        let mut last_round = || {
            self.refused.values_mut().for_each(|refused| refused.again = Instant::now());
            self.round_within(TAKE_TIMEOUT);
            let is_silent = |process: &RemoteProcess| silent.contains(&process.key);
            self.unseen.is_none() && self.processes.values().all(is_silent)
        };
        // The first round may take long: it drains the remaining contents of all rings.
        let mut has_all = last_round();
        let began = Instant::now();
        while !has_all && began.elapsed() < FINISH_TIMEOUT {
            sleep(Duration::from_millis(2));
            has_all = last_round();
        }
        self.end_all();
        std::mem::take(&mut self.done)
    }

    /// Drains the closed packets of all processes, including new ones, and all remaining packets of those that ended.
    pub(super) fn round(&mut self) -> Round {
        // Processes that are recorded already do not wait for others that hold the lock.
        self.round_within(if self.processes.is_empty() { TAKE_TIMEOUT } else { Duration::ZERO })
    }

    /// The same with a maximum time to wait for the lock on the directories of new processes.
    fn round_within(&mut self, timeout: Duration) -> Round {
        let before = self.progress();
        self.unseen = self.attach_new(timeout).err();
        let round = self.drain();
        if let Some(call) = self.on_change.as_ref().filter(|_| self.progress() != before) {
            call();
        }
        round
    }

    /// Returns the state whose changes are reported to [`Recorder::on_change`](super::Recorder::on_change).
    fn progress(&self) -> ([usize; 3], bool) {
        ([self.processes.len(), self.refused.len(), self.ending.len() + self.done.len()], self.allowance.is_used_up())
    }

    fn drain(&mut self) -> Round {
        let mut result = Round { wait_limit: self.max_wait, ..Round::default() };
        let mut ended_names = Vec::new();
        let (may_be_open, mut open) = (files::most_open(), 0);
        for (name, process) in &mut self.processes {
            // Checked before its packets are drained, so that everything that an ended process wrote is visible.
            let has_ended = process.has_ended();
            let (packets, fullness) = process.take(&self.rights);
            // Counted after its new rings were added.
            if open + process.files() > may_be_open {
                process.close_files();
            } else {
                open += process.files();
            }
            result.packets += packets;
            result.fullness = result.fullness.max(fullness);
            if has_ended {
                ended_names.push(name.clone());
            }
        }
        for name in ended_names {
            if let Some(process) = self.processes.remove(&name) {
                self.end(process, false);
            }
        }
        let ending = std::mem::take(&mut self.ending).into_iter();
        let (ended, ending) = ending.partition::<BTreeMap<_, _>, _>(|(_, thread)| thread.is_finished());
        self.ending = ending;
        self.join(ended);
        result
    }

    /// Attaches new processes. The error contains those that could not be read because another process held the lock.
    fn attach_new(&mut self, timeout: Duration) -> Result<(), (Vec<String>, String)> {
        if self.rings.is_none() {
            self.rings = RemoteRingDirs::open(&self.session);
        }
        let Some(Ok(mut names)) = self.rings.as_ref().map(RemoteRingDirs::names) else { return Ok(()) };
        if names.is_empty() {
            // The last process to end removes the directory, and the next one creates a new one.
            self.rings = RemoteRingDirs::open(&self.session);
        }
        names.sort_unstable();
        let now = Instant::now();
        self.refused.retain(|name, _| names.binary_search(name).is_ok());
        let waits = |name: &String| self.refused.get(name).is_some_and(|refused| refused.again > now);
        names.retain(|name| !(waits(name) || self.processes.contains_key(name) || self.ending.contains_key(name)));
        let mut kept: usize = self.processes.values().map(RemoteProcess::files).sum();
        let mut largest = self.processes.values().map(RemoteProcess::files).max().unwrap_or(0);
        for (index, some) in names.chunks(TAKEN_AT_ONCE).enumerate() {
            let Some(taken) = self.rings.as_ref().map(|rings| rings.take(some, timeout)) else { return Ok(()) };
            let taken = taken.map_err(|error| {
                (names[index * TAKEN_AT_ONCE..].to_vec(), format!("its rings cannot be opened: {error}"))
            })?;
            for (name, dir) in some.iter().zip(taken) {
                let attached = match dir {
                    // It is not ready yet, or another recorder has leased it.
                    Ok(None) => continue,
                    Ok(Some(dir)) => self.shortage(kept, largest).map_or(Ok(dir), Err).and_then(|dir| {
                        RemoteProcess::attach(dir, (&self.sinks, self.buckets.as_ref()), &self.allowance, &self.rights)
                            .map_err(|error| error.to_string())
                    }),
                    Err(error) => Err(format!("its rings cannot be opened: {error}")),
                };
                match attached {
                    Ok(mut process) => {
                        self.refused.remove(name);
                        kept += process.files();
                        largest = largest.max(process.files());
                        if kept > files::most_open() {
                            process.close_files();
                        }
                        self.processes.insert(name.clone(), process);
                    }
                    Err(reason) => {
                        let pause = self.refused.get(name).map(|refused| (refused.pause * 2).min(MAX_RETRY));
                        let pause = pause.unwrap_or(MIN_RETRY);
                        self.refused.insert(name.clone(), RefusedProcess { again: now + pause, pause, reason });
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the reason why no further process can be recorded, if descriptors are missing even after closing the files that are open
    /// between two rounds.
    fn shortage(&mut self, kept: usize, largest: usize) -> Option<String> {
        self.open.shortage(kept, largest)?;
        self.processes.values_mut().for_each(RemoteProcess::close_files);
        self.open.shortage(kept, largest)
    }

    /// Drains the remaining packets of a process and finishes its sinks.
    fn end(&mut self, process: RemoteProcess, runs: bool) {
        let rings = RemoteRingDirs::open(&self.session);
        if !process.may_block_at_end() {
            return self.done.push(process.end(runs, rings.as_ref(), &self.rights));
        }
        let name = process.directory().to_owned();
        let slot = Arc::new(Mutex::new(Some(process)));
        let (own, rights) = (Arc::clone(&slot), self.rights.clone());
        let take = |slot: &Mutex<Option<RemoteProcess>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let finish = move || take(&own).map(|process| process.end(runs, rings.as_ref(), &rights)).unwrap_or_default();
        if let Ok(thread) = Builder::new().name(NAME.to_owned()).spawn(finish) {
            self.ending.insert(name, thread);
        } else {
            let rings = RemoteRingDirs::open(&self.session);
            self.done.extend(take(&slot).map(|process| process.end(runs, rings.as_ref(), &self.rights)));
        }
    }

    /// Drains the committed packets of the remaining processes, and waits for all sinks.
    fn end_all(&mut self) {
        for process in std::mem::take(&mut self.processes).into_values() {
            // Its last packets are taken after this check.
            let runs = !process.has_ended();
            self.end(process, runs);
        }
        let ending = std::mem::take(&mut self.ending);
        self.join(ending);
        let refused = std::mem::take(&mut self.refused).into_iter().map(|(name, refused)| (name, refused.reason));
        let unseen = self.unseen.take().into_iter();
        let unseen = unseen.flat_map(|(names, reason)| names.into_iter().map(move |name| (name, reason.clone())));
        // A process that was refused before has its own reason.
        let unread: BTreeMap<_, _> = unseen.chain(refused).collect();
        let recorded =
            |(name, reason): (String, _)| Some(RecordedProcess::refused(ProcessKey::of_directory(&name)?, reason));
        self.done.extend(unread.into_iter().filter_map(recorded));
    }

    fn join(&mut self, ended: BTreeMap<String, JoinHandle<RecordedProcess>>) {
        self.done.extend(ended.into_values().filter_map(|thread| thread.join().ok()));
    }
}
