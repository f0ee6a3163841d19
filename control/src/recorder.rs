//! The recorder drains the rings of a session's processes from another process, and writes the packets with its own rights.
//!
//! ```text
//!   sessions/NAME/rings/PID-START/  ─▶ lease ─▶ packets, round by round ─▶ the recorder's sinks
//!                                                      │
//!                     lock released: the process or its recording has ended ─▶ remaining packets, account; directory removed
//! ```
//!
//! A recorded process does not cooperate and need not run: one that was killed, one that is stopped and one whose recording ended are
//! handled alike. One thread serves all processes; a sink that blocks delays the packets of all of them.

mod files;
mod process;
mod recorded;

use crate::consumer_loop::{ConsumerLoop, DrainCounters, PollInterval, Round};
use crate::controller::{ControlError, NamedSession};
use crate::outputs::Allowance;
use crate::own_thread::leave_signals_to_the_program;
use crate::private_dir::PrivateDir;
use crate::process::ProcessKey;
use crate::rights::Rights;
use crate::ring_files::map_wake_file;
use crate::session_dir::{RemoteRingDirs, open_wake_file};
use crate::spec::SinkSpec;
use process::RemoteProcess;
pub use recorded::Recorded;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};
use tracepoint_core::channel::WakeWord;

/// The longest interval between two rounds, and the same if processes cannot wake the recorder.
const LONGEST: Duration = Duration::from_millis(400);
const LONGEST_WITHOUT_WORD: Duration = Duration::from_millis(20);
/// The thread's name, as `top -H` shows it.
const NAME: &str = "tracepoint-record";
/// The shortest and longest interval before the creation of sinks is retried after an error.
const MIN_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(8);
/// How long `finish` waits for processes that have acknowledged the end.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Records a session whose rings another process drains ([`DrainedBy::Recorder`](crate::DrainedBy::Recorder)).
///
/// End it with [`Recorder::finish`]. If it is dropped instead, it leaves everything in the rings for `tracectl recover`, as if this process
/// had been killed.
#[derive(Debug)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
    rounds: Arc<ConsumerLoop>,
    thread: Option<JoinHandle<()>>,
    allowance: Arc<Allowance>,
}

/// The state that the thread and the handle share.
#[derive(Debug)]
struct State {
    session: PrivateDir,
    rings: Option<RemoteRingDirs>,
    sinks: Vec<SinkSpec>,
    allowance: Arc<Allowance>,
    /// The rights with which process directories are read and sinks write.
    rights: Rights,
    processes: BTreeMap<String, RemoteProcess>,
    /// Processes whose sinks could not be created, by the name of their directory.
    refused: BTreeMap<String, Refused>,
    /// Threads that finish sinks which may block.
    ending: Vec<JoinHandle<Recorded>>,
    done: Vec<Recorded>,
}

/// A process whose sinks could not be created.
#[derive(Debug)]
struct Refused {
    again: Instant,
    pause: Duration,
    reason: String,
}

impl Recorder {
    /// Records all processes of `session`, running and future, each into `sinks` of its own. CTF and text output is limited to `max_size`
    /// bytes in total; the limits of the individual sinks are ignored.
    ///
    /// Existing processes are attached when this function returns. Their directories are read with the rights of the calling thread; sinks
    /// write with the rights of this process, as `rights` holds them.
    ///
    /// # Errors
    ///
    /// If the session was removed, or the thread cannot be created.
    pub fn start(
        session: &NamedSession<'_>,
        sinks: Vec<SinkSpec>,
        max_size: u64,
        rights: Rights,
    ) -> Result<Self, ControlError> {
        let allowance = Allowance::of(max_size);
        let dir = session.dir()?;
        let word = wake_word(&dir);
        let longest = if word.is_some() { LONGEST } else { LONGEST_WITHOUT_WORD };
        let interval = PollInterval::new(longest);
        let mut state = State {
            session: dir,
            rings: None,
            sinks,
            allowance: Arc::clone(&allowance),
            rights,
            processes: BTreeMap::new(),
            refused: BTreeMap::new(),
            ending: Vec::new(),
            done: Vec::new(),
        };
        state.round();
        let failed = |source| thread_error(&session.path(), source);
        let state = Arc::new(Mutex::new(state));
        let rounds = Arc::new(ConsumerLoop::new(Arc::new(word.unwrap_or_default())));
        let (own, own_rounds) = (Arc::clone(&state), Arc::clone(&rounds));
        let body = move || {
            leave_signals_to_the_program();
            // What a panic interrupted stays in the rings and is reported at the end.
            own_rounds.run(interval, || catch_unwind(AssertUnwindSafe(|| lock(&own).round())).ok());
        };
        let thread = Builder::new().name(NAME.to_owned()).spawn(body).map_err(failed)?;
        Ok(Self { state, rounds, thread: Some(thread), allowance })
    }

    fn stop(&mut self) {
        self.rounds.stop();
        if let Some(thread) = self.thread.take() {
            // The thread catches panics itself.
            let _ = thread.join();
        }
    }

    /// Raises this process's limit on open files to the most that it may have: a recorder needs some for each process. For programs that do
    /// nothing else, since the limit is the process's and is inherited by those that it starts.
    pub fn raise_file_limit() {
        files::raise_limit();
    }

    /// The results of the processes that have ended, and the progress of those that are still recorded.
    pub fn recorded(&self) -> Vec<Recorded> {
        let state = lock(&self.state);
        let running = state.processes.values().map(RemoteProcess::progress);
        state.done.iter().cloned().chain(running).collect()
    }

    /// How often its thread has drained the rings, and how often a process has woken it.
    pub fn counters(&self) -> DrainCounters {
        self.rounds.counters()
    }

    /// The processes whose sinks could not be created, with the error.
    pub fn refused(&self) -> Vec<(ProcessKey, String)> {
        let state = lock(&self.state);
        let describe =
            |(name, refused): (&String, &Refused)| Some((ProcessKey::of_directory(name)?, refused.reason.clone()));
        state.refused.iter().filter_map(describe).collect()
    }

    /// Whether output was refused because `max_size` is used up.
    pub fn is_full(&self) -> bool {
        self.allowance.is_used_up()
    }

    /// Ends the recording, after the session was stopped: drains all remaining packets of its processes. From processes that did not
    /// acknowledge (`silent`) it takes what they have committed by now; their accounts are incomplete.
    pub fn finish(mut self, silent: &[ProcessKey]) -> Vec<Recorded> {
        self.stop();
        let mut state = lock(&self.state);
        let began = Instant::now();
        loop {
            state.refused.values_mut().for_each(|refused| refused.again = began);
            state.round();
            let is_silent = |process: &RemoteProcess| silent.contains(&process.key());
            if state.processes.values().all(is_silent) || began.elapsed() >= FINISH_TIMEOUT {
                break;
            }
            sleep(Duration::from_millis(2));
        }
        state.end_all();
        std::mem::take(&mut state.done)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    /// Drains the closed packets of all processes, including new ones, and all remaining packets of those that ended.
    fn round(&mut self) -> Round {
        self.attach_new();
        let mut result = Round::default();
        let mut ended_names = Vec::new();
        let keep_open = self.may_keep_files_open();
        for (name, process) in &mut self.processes {
            // Checked before its packets are drained, so that everything that an ended process wrote is visible.
            let has_ended = process.has_ended();
            let (packets, fullness) = process.take(&self.rights);
            if !keep_open {
                process.close_files();
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
        let (ended, ending) = std::mem::take(&mut self.ending).into_iter().partition(JoinHandle::is_finished);
        self.ending = ending;
        self.join(ended);
        result
    }

    /// Whether files stay open between two rounds.
    fn may_keep_files_open(&self) -> bool {
        self.processes.values().map(RemoteProcess::files).sum::<usize>() <= files::most_open()
    }

    /// Attaches new processes.
    fn attach_new(&mut self) {
        if self.rings.is_none() {
            self.rings = RemoteRingDirs::open(&self.session);
        }
        let Some(rings) = &self.rings else { return };
        let Ok(names) = rings.names() else { return };
        if names.is_empty() {
            // The last process to end removes the directory, and the next one creates a new one.
            self.rings = RemoteRingDirs::open(&self.session);
        }
        let now = Instant::now();
        self.refused.retain(|name, _| names.contains(name));
        for name in names {
            let waits = self.refused.get(&name).is_some_and(|refused| refused.again > now);
            if waits || self.processes.contains_key(&name) {
                continue;
            }
            let Some(rings) = &self.rings else { return };
            let attached = match rings.take(&name) {
                // It is not ready yet, or another recorder has it.
                Ok(None) => continue,
                Ok(Some(dir)) => files::shortage()
                    .map_or(Ok(dir), Err)
                    .and_then(|dir| RemoteProcess::attach(dir, &self.sinks, &self.allowance, &self.rights)),
                Err(error) => Err(format!("its rings cannot be opened: {error}")),
            };
            match attached {
                Ok(mut process) => {
                    self.refused.remove(&name);
                    if !self.may_keep_files_open() {
                        process.close_files();
                    }
                    self.processes.insert(name, process);
                }
                Err(reason) => {
                    let pause = self.refused.get(&name).map_or(MIN_RETRY, |refused| (refused.pause * 2).min(MAX_RETRY));
                    self.refused.insert(name, Refused { again: now + pause, pause, reason });
                }
            }
        }
    }

    /// Drains the remaining packets of a process and finishes its sinks.
    fn end(&mut self, process: RemoteProcess, runs: bool) {
        let rings = RemoteRingDirs::open(&self.session);
        if !process.may_block_at_end() {
            return self.done.push(process.end(runs, rings.as_ref(), &self.rights));
        }
        let slot = Arc::new(Mutex::new(Some(process)));
        let (own, rights) = (Arc::clone(&slot), self.rights.clone());
        let take = |slot: &Mutex<Option<RemoteProcess>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let finish = move || take(&own).map(|process| process.end(runs, rings.as_ref(), &rights)).unwrap_or_default();
        if let Ok(thread) = Builder::new().name(NAME.to_owned()).spawn(finish) {
            self.ending.push(thread);
        } else {
            let rings = RemoteRingDirs::open(&self.session);
            self.done.extend(take(&slot).map(|process| process.end(runs, rings.as_ref(), &self.rights)));
        }
    }

    /// Drains what the remaining processes have committed, and waits for all sinks.
    fn end_all(&mut self) {
        for process in std::mem::take(&mut self.processes).into_values() {
            self.end(process, true);
        }
        let ending = std::mem::take(&mut self.ending);
        self.join(ending);
        for (name, refused) in std::mem::take(&mut self.refused) {
            self.done.extend(ProcessKey::of_directory(&name).map(|key| Recorded::refused(key, refused.reason)));
        }
    }

    fn join(&mut self, ended: Vec<JoinHandle<Recorded>>) {
        self.done.extend(ended.into_iter().filter_map(|thread| thread.join().ok()));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The word on which the recorder sleeps, in a file that the processes map, too; `None` if it cannot be made. A process that cuts the file
/// off does not end the recorder: it just wakes it no more.
fn wake_word(session: &PrivateDir) -> Option<WakeWord> {
    let file = open_wake_file(session).ok()?;
    WakeWord::shared(map_wake_file(&file, Some(&Arc::default())).ok()?)
}

fn thread_error(path: &std::path::Path, source: std::io::Error) -> ControlError {
    crate::private_dir::DirError::Io { action: "start a thread to record", path: path.to_owned(), source }.into()
}
