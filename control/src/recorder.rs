//! The recorder: takes the packets of a session's processes from outside, and writes them with its own rights.
//!
//! ```text
//!   sessions/NAME/rings/PID-START/  ─▶ lease ─▶ packets, round by round ─▶ sinks of the recorder's
//!                                                      │
//!                     its lock is free: the process has ended, or the recording ─▶ the rest, the account, and it is removed
//! ```
//!
//! A process is asked for nothing, and need not run: one that is killed, one that is stopped and one whose recording ended are the same
//! here. One thread does it all; a sink that blocks keeps the packets of all processes waiting.

mod poll_interval;
mod process;
mod recorded;

use crate::controller::{ControlError, NamedSession};
use crate::outputs::Allowance;
use crate::own_thread::leave_signals_to_the_program;
use crate::private_dir::PrivateDir;
use crate::process::ProcessKey;
use crate::rights::Rights;
use crate::session_dir::RemoteRingDirs;
use crate::spec::SinkSpec;
use poll_interval::PollInterval;
use process::RemoteProcess;
pub use recorded::Recorded;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Its name, as `top -H` shows it.
const NAME: &str = "tracepoint-record";
/// How long the first pause is before sinks are tried again that could not be had, and how long the longest.
const AGAIN: Duration = Duration::from_millis(500);
const LATEST: Duration = Duration::from_secs(8);
/// How long processes are waited for at the end that said that they have ended the recording.
const END: Duration = Duration::from_secs(1);

/// Records a session that is drained from outside ([`DrainedBy::Outside`](crate::DrainedBy::Outside)).
///
/// Whoever has it is asked how it goes, and ends it: [`Recorder::finish`]. Dropped before, it leaves everything in the rings for
/// `tracectl recover`, as if this process had been killed.
#[derive(Debug)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
    /// Dropping it wakes the thread, and ends it.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    allowance: Arc<Allowance>,
}

/// What the thread works on.
#[derive(Debug)]
struct State {
    session: PrivateDir,
    rings: Option<RemoteRingDirs>,
    sinks: Vec<SinkSpec>,
    allowance: Arc<Allowance>,
    /// As whom directories of processes are looked into, and as whom sinks write.
    rights: Rights,
    processes: BTreeMap<String, RemoteProcess>,
    /// Those whose sinks cannot be had, and when they are tried again.
    refused: BTreeMap<String, Refused>,
    /// What takes its time to finish.
    ending: Vec<JoinHandle<Recorded>>,
    done: Vec<Recorded>,
}

/// Sinks that cannot be had.
#[derive(Debug)]
struct Refused {
    again: Instant,
    pause: Duration,
    reason: String,
}

impl Recorder {
    /// Takes the packets of all processes of `session`, those to come included, to `sinks` of their own each. All that they write to CTF
    /// and text is `max_size` bytes at most, together; of a sink by itself, its own bound is not looked at.
    ///
    /// The processes that are there were looked at when this returns. Their directories are looked into with the rights of the calling thread;
    /// sinks write with those of the process itself, as `rights` has them.
    ///
    /// # Errors
    ///
    /// If the session is gone, or there is no thread to be had.
    pub fn start(
        session: &NamedSession<'_>,
        sinks: Vec<SinkSpec>,
        max_size: u64,
        rights: Rights,
    ) -> Result<Self, ControlError> {
        let allowance = Allowance::of(max_size);
        let dir = session.directory()?;
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
        let failed = |source| state_failed(&session.path(), source);
        let state = Arc::new(Mutex::new(state));
        let (stop, stopped) = channel();
        let own = Arc::clone(&state);
        let body = move || {
            leave_signals_to_the_program();
            let mut interval = PollInterval::new();
            let mut pause = interval.first();
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                // What a panic left half done stays in the rings, and is told at the end.
                let round = catch_unwind(AssertUnwindSafe(|| lock(&own).round()));
                pause = interval.after(&round.unwrap_or_default(), began.elapsed());
            }
        };
        let thread = Builder::new().name(NAME.to_owned()).spawn(body).map_err(failed)?;
        Ok(Self { state, stop: Some(stop), thread: Some(thread), allowance })
    }

    /// How it goes, of each process: of those that are recorded still, what was taken so far.
    pub fn recorded(&self) -> Vec<Recorded> {
        let state = lock(&self.state);
        let running = state.processes.values().map(RemoteProcess::so_far);
        state.done.iter().cloned().chain(running).collect()
    }

    /// The processes for which there are no sinks, and why.
    pub fn refused(&self) -> Vec<(ProcessKey, String)> {
        let state = lock(&self.state);
        let told =
            |(name, refused): (&String, &Refused)| Some((ProcessKey::of_directory(name)?, refused.reason.clone()));
        state.refused.iter().filter_map(told).collect()
    }

    /// Whether something was refused because as much is written as may be.
    pub fn is_full(&self) -> bool {
        self.allowance.is_used_up()
    }

    /// Ends it. The session was stopped: what its processes left is taken to the end. Of those that did not answer (`silent`) it is taken
    /// what they have committed by now, and no more; their accounts are not complete.
    pub fn finish(mut self, silent: &[ProcessKey]) -> Vec<Recorded> {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic was caught inside.
            let _ = thread.join();
        }
        let mut state = lock(&self.state);
        let began = Instant::now();
        loop {
            state.refused.values_mut().for_each(|refused| refused.again = began);
            state.round();
            let is_silent = |process: &RemoteProcess| silent.contains(&process.key());
            if state.processes.values().all(is_silent) || began.elapsed() >= END {
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
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a round has come to.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    packets: u64,
    fullness: u32,
}

impl State {
    /// Takes what is closed in all processes, those that came since included, and the rest of those that ended.
    fn round(&mut self) -> Moved {
        self.find();
        let mut moved = Moved::default();
        let mut over = Vec::new();
        for (name, process) in &mut self.processes {
            // Before its packets are looked at: what it wrote before it ended is there then.
            let is_over = process.is_over();
            let (packets, fullness) = process.take(&self.rights);
            moved.packets += packets;
            moved.fullness = moved.fullness.max(fullness);
            if is_over {
                over.push(name.clone());
            }
        }
        for name in over {
            if let Some(process) = self.processes.remove(&name) {
                self.end(process, false);
            }
        }
        let (ended, ending) = std::mem::take(&mut self.ending).into_iter().partition(JoinHandle::is_finished);
        self.ending = ending;
        self.join(ended);
        moved
    }

    /// Looks for processes that are new.
    fn find(&mut self) {
        if self.rings.is_none() {
            self.rings = RemoteRingDirs::open(&self.session);
        }
        let Some(rings) = &self.rings else { return };
        let Ok(names) = rings.names() else { return };
        if names.is_empty() {
            // The last process out removes the directory, and the next one makes another.
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
            // What cannot be opened by now is tried in the next round.
            let Ok(Some(dir)) = rings.take(&name) else { continue };
            match RemoteProcess::begin(dir, &self.sinks, &self.allowance, &self.rights) {
                Ok(process) => {
                    self.refused.remove(&name);
                    self.processes.insert(name, process);
                }
                Err(reason) => {
                    let pause = self.refused.get(&name).map_or(AGAIN, |refused| (refused.pause * 2).min(LATEST));
                    self.refused.insert(name, Refused { again: now + pause, pause, reason });
                }
            }
        }
    }

    /// Takes the rest of a process, and has its sinks finish.
    fn end(&mut self, process: RemoteProcess, runs: bool) {
        let rings = RemoteRingDirs::open(&self.session);
        if !process.takes_its_time() {
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

    /// Takes what the processes have committed that are there still, and waits for all sinks.
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

fn state_failed(path: &std::path::Path, source: std::io::Error) -> ControlError {
    crate::private_dir::DirError::Io { action: "start a thread to record", path: path.to_owned(), source }.into()
}
