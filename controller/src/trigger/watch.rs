//! The watcher: detects the conditions that are visible outside the processes of a session.
//!
//! | condition | detected by |
//! |---|---|
//! | `killed` | a pidfd for each traced process, which becomes readable when the process ends: [`processes`], and how it ended: [`death`] |
//! | `size` | the sizes of the files in the outputs, every [`LOOK`] while a session has such a trigger: [`outputs`] |
//! | `rotated` | the chunks in the outputs, likewise |
//!
//! New processes appear as directories in `apps/`, which inotify reports. A check every [`LOOK`] finds events that inotify has dropped, and
//! ends of processes in other pid namespaces, which no pidfd reports here. A recorder whose session has no such trigger rarely wakes up.
//! Conditions that occurred before the watcher was created are not occurrences.

mod death;
mod outputs;
mod processes;

use super::core_handler::has_core_handler;
use crate::controller::Controller;
use death::Death;
use outputs::SessionOutputs;
use processes::{ProcessEnd, Processes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::iter;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tracepoint_run_dir::layout::{APPS, SESSIONS};
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::trigger::{Detail, Occurrence, state};
use tracepoint_session_spec::{State, TriggerCondition, TriggerSpec};

/// The interval between two checks of outputs and directories.
const LOOK: Duration = Duration::from_millis(500);
/// The same while the only session has no trigger with these conditions: inotify reports changes of its description.
const LOOK_WITHOUT_TRIGGERS: Duration = Duration::from_secs(10);

/// A condition that has occurred in a session.
#[derive(Clone, Debug)]
pub(super) struct DetectedCondition {
    pub(super) session: String,
    /// The condition as in the triggers, to select those that it fires.
    pub(super) when: TriggerCondition,
    pub(super) occurrence: Occurrence,
}

/// Watches the sessions of a run directory.
#[derive(Debug)]
pub(super) struct Watcher {
    run_dir: PathBuf,
    /// The watched session; `None` for all, including later ones.
    only: Option<String>,
    processes: Processes,
    watches_processes: bool,
    sessions: BTreeMap<String, SessionOutputs>,
    /// Reports new entries in `apps/` and changes of the session; `None` if the system has no inotify instance left.
    changes: Option<OwnedFd>,
    next_look: Instant,
    /// The time of its creation.
    since: SystemTime,
}

impl Watcher {
    /// Watches this session, or all sessions.
    pub(super) fn new(run_dir: &Path, only: Option<&str>) -> Self {
        let mut watcher = Self {
            run_dir: run_dir.to_owned(),
            only: only.map(str::to_owned),
            processes: Processes::default(),
            watches_processes: false,
            sessions: BTreeMap::new(),
            changes: None,
            next_look: Instant::now(),
            since: SystemTime::now(),
        };
        watcher.changes = watcher.subscribe_to_changes();
        // The existing processes are known before this returns.
        if let Some(controller) = watcher.controller() {
            watcher.look_at_processes(&controller);
        }
        watcher
    }

    /// Looks for processes. A recorder with few descriptors holds pidfds only if ends of processes are occurrences: a process that ended
    /// just before such a trigger was read then counts as no occurrence.
    fn look_at_processes(&mut self, controller: &Controller) -> Vec<ProcessEnd> {
        let is_needless = |session: &String| {
            let processes = controller.apps().names().map_or(0, |names| names.len());
            !has_descriptors(processes) && !has_trigger(controller, session, &TriggerCondition::Killed)
        };
        if self.only.as_ref().is_some_and(is_needless) {
            self.processes = Processes::default();
            self.watches_processes = false;
            return Vec::new();
        }
        let ended = self.processes.look(controller.apps());
        if !std::mem::replace(&mut self.watches_processes, true) {
            // Ends that were not detected are not occurrences of it.
            self.processes.ignore_ended();
        }
        ended
    }

    /// Waits for the next occurrences, at most until the next check; `None` when `end` becomes readable.
    pub(super) fn next(&mut self, end: BorrowedFd<'_>) -> Option<Vec<DetectedCondition>> {
        let ended = self.wait(end)?;
        let mut seen = self.deaths(ended);
        if Instant::now() >= self.next_look {
            seen.extend(self.look());
        }
        Some(seen)
    }

    /// Waits until a process has ended or started, or the next check is due.
    fn wait(&mut self, end: BorrowedFd<'_>) -> Option<Vec<ProcessEnd>> {
        let left = self.next_look.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let mut fds = vec![PollFd::from_borrowed_fd(end, PollFlags::IN)];
        fds.extend(self.changes.iter().map(|changes| PollFd::new(changes, PollFlags::IN)));
        let first = fds.len();
        fds.extend(self.processes.handles().map(|handle| PollFd::new(handle, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) if !fds[0].revents().is_empty() => return None,
            // Interrupted, or there are more descriptors than poll accepts: the next check finds ended processes.
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => std::thread::sleep(left.min(LOOK)),
        }
        let has_changed = first == 2 && !fds[1].revents().is_empty();
        let ready: Vec<_> = fds[first..].iter().map(|fd| !fd.revents().is_empty()).collect();
        let ended = self.processes.take_ended(&ready);
        if has_changed && let Some(changes) = &self.changes {
            // The individual events do not matter: all names are read.
            while rustix::io::read(changes, &mut [0; 4096]).is_ok_and(|read| read > 0) {}
            self.next_look = Instant::now();
        }
        Some(ended)
    }

    /// Returns the occurrences that result from the ends of these processes.
    fn deaths(&self, ended: Vec<ProcessEnd>) -> Vec<DetectedCondition> {
        if ended.is_empty() {
            return Vec::new();
        }
        let Some(controller) = self.controller() else { return Vec::new() };
        let has_trigger = |name: &String| has_trigger(&controller, name, &TriggerCondition::Killed);
        let sessions: Vec<_> = controller.sessions().unwrap_or_default().into_iter().filter(has_trigger).collect();
        let mut seen = Vec::new();
        for process in ended {
            for session in &sessions {
                let Some(ack) = controller.session(session).ok().and_then(|session| session.last_ack(&process.entry))
                else {
                    continue;
                };
                if process.death.is_kill(ack.state, has_core_handler) {
                    let occurrence = killed(&process, &ack.name);
                    seen.push(DetectedCondition {
                        session: session.clone(),
                        when: TriggerCondition::Killed,
                        occurrence,
                    });
                }
            }
        }
        seen
    }

    /// Looks for new processes, and for ends that no pidfd has reported, and checks the outputs.
    fn look(&mut self) -> Vec<DetectedCondition> {
        self.next_look = Instant::now() + LOOK;
        let Some(controller) = self.controller() else { return Vec::new() };
        if self.changes.is_none() {
            self.changes = self.subscribe_to_changes();
        }
        let ended = self.look_at_processes(&controller);
        let mut seen = self.deaths(ended);
        let mut names = controller.sessions().unwrap_or_default();
        names.retain(|name| self.only.as_ref().is_none_or(|only| only == name));
        self.sessions.retain(|name, _| names.contains(name));
        let mut is_needed = self.only.is_none() || self.changes.is_none();
        for name in names {
            let Ok(session) = controller.session(&name) else { continue };
            let Ok(spec) = session.spec() else { continue };
            let is_seen_here = |trigger: &TriggerSpec| {
                matches!(trigger.when, TriggerCondition::Killed | TriggerCondition::Size(_) | TriggerCondition::Rotated)
            };
            is_needed |= spec.triggers().flatten().any(is_seen_here);
            let is_of_outputs =
                |trigger: &&TriggerSpec| matches!(trigger.when, TriggerCondition::Size(_) | TriggerCondition::Rotated);
            let triggers = spec.triggers().flatten().filter(is_of_outputs);
            let triggers: Vec<_> = triggers
                .filter_map(|trigger| Some((trigger, state::read(&session.dir().ok()?, &trigger.id))))
                .collect();
            if triggers.is_empty() {
                self.sessions.remove(&name);
                continue;
            }
            let outputs = self.sessions.entry(name.clone()).or_default();
            seen.extend(outputs.look(&session, &triggers, spec.state == State::Active, self.since));
        }
        if !is_needed {
            self.next_look = Instant::now() + LOOK_WITHOUT_TRIGGERS;
        }
        seen
    }

    /// Creates an inotify instance for new processes, and for changes of the only session's description, which may add a trigger for them.
    fn subscribe_to_changes(&self) -> Option<OwnedFd> {
        let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let sessions = self.run_dir.join(SESSIONS);
        let session = self.only.as_ref().map(|session| sessions.join(session));
        for dir in iter::once(self.run_dir.join(APPS)).chain(session) {
            let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
            inotify::add_watch(&changes, dir, flags).ok()?;
        }
        Some(changes)
    }

    fn controller(&self) -> Option<Controller> {
        Controller::at(RunDir::open(&self.run_dir).ok()?).ok()
    }
}

/// Returns whether pidfds of this number of processes take less than a quarter of the descriptors that this process may have.
fn has_descriptors(processes: usize) -> bool {
    getrlimit(Resource::Nofile).current.is_none_or(|most| (processes as u64) < most / 4)
}

/// Returns whether a session has a trigger with this condition.
fn has_trigger(controller: &Controller, session: &str, when: &TriggerCondition) -> bool {
    let spec = controller.session(session).ok().and_then(|session| session.spec().ok());
    spec.is_some_and(|spec| spec.triggers().flatten().any(|trigger| trigger.when == *when))
}

fn killed(process: &ProcessEnd, name: &str) -> Occurrence {
    let mut occurrence = Occurrence::new(&TriggerCondition::Killed, process.pid, SystemTime::now());
    occurrence.add("killed_name", Detail::Text(name.to_owned()));
    match process.death {
        Death::Signal { number, .. } => occurrence.add("killed_signal", Detail::Number(number.into())),
        Death::Exit { status } => occurrence.add("killed_exit_status", Detail::Number(status.into())),
        Death::Unknown => {}
    }
    occurrence
}
