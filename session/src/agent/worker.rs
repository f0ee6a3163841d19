//! The agent's thread.

mod changed_identity;

use super::AgentError;
use super::context::Context;
use super::description::{describe_process, describe_tracepoints};
use super::entry::Entry;
use super::environment;
use super::late_markers;
use super::recordings::Recordings;
use super::session_follower::SessionFollower;
use super::spare_descriptors::SpareDescriptors;
use super::wakeup::{Stop, Wakeup};
use crate::budget;
use crate::session::{PendingSummary, RunningSession};
use crate::state::{Wake, wake_for_dumps};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_core::{SiteSwitchError, usdt};
use tracepoint_run_dir::app::{AppStatus, TracepointInfo};
use tracepoint_run_dir::bell::Bell;
use tracepoint_run_dir::layout::{LOG, SESSIONS};
use tracepoint_run_dir::notice::Notice;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::rundir::{RunDir, TrustedUsers};
use tracepoint_session_io::store::log_line;
use tracepoint_session_spec::check_name;

/// Maximum number of answered tokens in the status.
const MAX_ANSWERED: usize = 64;
/// Maximum time that sessions may take to end when the agent is dropped. Together with a scan in progress this stays below the timeout of
/// the dropping thread.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for the actions of triggers before that.
const TRIGGER_TIMEOUT: Duration = Duration::from_millis(1500);
/// Maximum time that a scan waits for the sinks of ending sessions; a controller that ends a session waits for 2 s.
const END_TIMEOUT: Duration = Duration::from_millis(1500);
/// The interval at which endings are polled.
const ENDING_POLL: Duration = Duration::from_millis(250);
/// The interval at which the semaphores of other tools are read, in programs that have notes for these tools.
const TOOLS_INTERVAL: Duration = Duration::from_millis(200);
/// The interval at which the rights of a process that records for a user are compared with the user's.
const RIGHTS_INTERVAL: Duration = Duration::from_secs(1);
/// The interval before an incomplete scan is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The state of the agent's thread.
#[derive(Debug)]
pub(super) struct Worker {
    entry: Entry,
    bell: Bell,
    sessions: PrivateDir,
    /// The users to whom the process offers control.
    trusted: TrustedUsers,
    context: Context,
    /// The sessions for this process, by name.
    followers: HashMap<String, SessionFollower>,
    /// Recordings of removed sessions that are still ending.
    removed_endings: Vec<PendingSummary>,
    /// The session requested by `TRACEPOINT`.
    environment: Option<RunningSession>,
    answered: VecDeque<String>,
    /// True if the last scan completed. If it did not, the condition that interrupted it persists and would wake the thread again at once.
    scan_complete: bool,
    stop: Stop,
    /// Wakes the thread when the program registers a state dump or a marker.
    _dumps: Wake,
    spares: SpareDescriptors,
    /// True if the process may not use any run directory, since it has changed its user or its rights.
    is_homeless: bool,
    /// True if the program has closed descriptors that could not be reopened.
    is_deaf: bool,
    /// The number of events with another tool attached, or the error of enabling them.
    tools: Result<usize, SiteSwitchError>,
}

impl Worker {
    /// Publishes the process. Its bell can be rung from now on.
    pub(super) fn new(run_dir: &RunDir, stop: Stop) -> Result<Self, AgentError> {
        let trusted = run_dir.trusted()?;
        trusted.check()?;
        let sessions = run_dir.dir().subdir(SESSIONS)?;
        let dumps = wake_for_dumps(Arc::clone(&stop.waker));
        let (entry, bell) = Entry::make(run_dir)?;
        run_dir.dir().keep();
        let mut spares = SpareDescriptors::default();
        spares.take(&sessions);
        let path = run_dir.path();
        let path = std::path::absolute(path).map_err(|error| run_dir.dir().failed("find", "", error))?;
        let info = describe_process(environment::tag());
        let context = Context::new(info, entry.name().to_owned(), path);
        let mut worker = Self {
            entry,
            bell,
            sessions,
            trusted,
            context,
            followers: HashMap::new(),
            removed_endings: Vec::new(),
            environment: None,
            answered: VecDeque::new(),
            scan_complete: true,
            stop,
            _dumps: dumps,
            spares,
            is_homeless: false,
            is_deaf: false,
            tools: Ok(0),
        };
        worker.publish()?;
        late_markers::follow();
        Ok(worker)
    }

    fn publish(&mut self) -> Result<(), AgentError> {
        self.entry.publish_status(&self.status())?;
        Ok(self.entry.publish(&self.context.info, &describe_tracepoints(&self.context.catalog))?)
    }

    /// Starts the recording requested by `TRACEPOINT`, and returns the problems.
    pub(super) fn follow_environment(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.environment = environment::start(&self.context, &mut notices);
        notices
    }

    /// The same in a forked child, except for a text file, which belongs to the parent.
    pub(super) fn follow_environment_as_a_child(&mut self) {
        if !environment::names_a_file() {
            // The parent has reported the problems.
            self.follow_environment();
        }
    }

    /// The path of the process's entry.
    pub(super) fn path(&self) -> &Path {
        self.entry.path()
    }

    /// The running recordings.
    pub(super) fn recordings(&self) -> Arc<Recordings> {
        Arc::clone(&self.context.recordings)
    }

    /// Runs until a stop is requested, on a thread that has begun as an [`own_thread`](tracepoint_sinks::own_thread). Notifies `ready` after
    /// the first scan.
    pub(super) fn run(mut self, ready: &Sender<()>) {
        self.scan_catching_panics();
        self.context.initial_scan_done = true;
        let _ = ready.send(());
        loop {
            match self.wait() {
                Wakeup::Rung => self.scan_catching_panics(),
                Wakeup::Closed => self.reopen(),
                Wakeup::Tick if !self.scan_complete || self.is_retry_due() || self.trusted.check().is_err() => {
                    self.scan_catching_panics();
                }
                Wakeup::Tick => {}
                Wakeup::Stopped => break,
            }
            // The next scan completes the work that a panic interrupted.
            if catch_unwind(AssertUnwindSafe(|| self.poll_endings())).unwrap_or(false) {
                // Recordings that waited for it can start now.
                self.scan_catching_panics();
            }
            let _ = catch_unwind(AssertUnwindSafe(|| self.enforce_budgets()));
            let _ = catch_unwind(AssertUnwindSafe(|| self.follow_tools()));
        }
        // A panic must not keep the program from ending.
        let _ = catch_unwind(AssertUnwindSafe(|| self.finish()));
    }

    /// Blocks until the bell is rung, an owner ends, a state dump or a marker is registered, a timer is due (budgets, endings, other tools,
    /// a retry, rights), or the agent has to stop.
    fn wait(&self) -> Wakeup {
        let budget = self.followers.values().any(SessionFollower::has_budget).then_some(budget::TICK);
        let is_ending = !self.removed_endings.is_empty() || self.followers.values().any(SessionFollower::is_ending);
        let retry = self.retry_in().filter(|_| self.scan_complete);
        let tick = if self.scan_complete { budget.or(is_ending.then_some(ENDING_POLL)) } else { Some(RETRY_INTERVAL) };
        let tools = usdt::IS_ENABLED.then_some(TOOLS_INTERVAL);
        let is_for_user =
            !self.trusted.is_root() && self.followers.values().any(|follower| follower.session.is_running());
        let rights = is_for_user.then_some(RIGHTS_INTERVAL);
        let mut tick = tick.into_iter().chain(retry).chain(tools).chain(rights).min();
        let (Ok(woken), Ok(bell), true) = (self.stop.waker.source(), self.bell.source(), self.is_open()) else {
            return if self.stop.is_requested() { Wakeup::Stopped } else { Wakeup::Closed };
        };
        // A scan may have read the bytes that the request has written to the pipe.
        if self.stop.is_requested() {
            return Wakeup::Stopped;
        }
        let owners = self.followers.values().filter_map(SessionFollower::owner).filter(|_| self.scan_complete);
        let own = [woken.as_fd(), bell.as_fd()];
        let mut fds: Vec<_> = own.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).into();
        fds.extend(owners.map(|owner| PollFd::from_borrowed_fd(owner, PollFlags::IN)));
        loop {
            let timeout = tick.and_then(|tick| Timespec::try_from(tick).ok());
            let ready = poll(&mut fds, timeout.as_ref());
            if self.stop.is_requested() {
                return Wakeup::Stopped;
            }
            match ready {
                Ok(0) => return Wakeup::Tick,
                // The program has closed the descriptors: the pipe reports a hang-up, and the other numbers may belong to other files by
                // now.
                Ok(_) if !self.is_open() => return Wakeup::Closed,
                Ok(_) => return Wakeup::Rung,
                Err(Errno::INTR) => {}
                // With more descriptors than the process may have open, `poll` fails: wait only for the stop request, for a while.
                Err(_) if fds.len() > 1 => {
                    fds.truncate(1);
                    tick = Some(RETRY_INTERVAL);
                }
                Err(_) => {
                    sleep(RETRY_INTERVAL);
                    return Wakeup::Tick;
                }
            }
        }
    }

    /// Returns whether the descriptors on which the agent sleeps are still open.
    fn is_open(&self) -> bool {
        self.stop.waker.is_open() && self.bell.is_open() && self.followers.values().all(SessionFollower::watches_owner)
    }

    /// Reopens descriptors that the program has closed, and applies the sessions: their owners are watched again. Failures, for example
    /// because the process may not open another file, are retried once a second.
    fn reopen(&mut self) {
        PrivateDir::keep_open();
        let opened = self.stop.waker.source().and_then(|_| self.entry.reopen(&mut self.bell));
        if let Err(error) = &opened
            && !std::mem::replace(&mut self.is_deaf, true)
        {
            super::print_notice(&format!(
                "the program has closed the descriptors of the agent, which cannot open them again: {error}; until it can, the process \
                 is not controllable"
            ));
        }
        self.is_deaf &= opened.is_err();
        self.scan_catching_panics();
        if !self.is_open() && !self.stop.is_requested() {
            sleep(RETRY_INTERVAL);
        }
    }

    /// Returns whether a session that could not be applied has to be retried now.
    fn is_retry_due(&self) -> bool {
        self.retry_in().is_some_and(|time| time.is_zero())
    }

    /// Returns the time until the next retry.
    fn retry_in(&self) -> Option<Duration> {
        // All are asked, because those that wait for channels register this.
        let retry = self.followers.values().filter_map(SessionFollower::retry_in).min();
        retry.map(|time| time.max(self.context.attempts.pause()))
    }

    fn scan_catching_panics(&mut self) {
        // The next scan completes the work that a panic interrupted.
        let scan = |worker: &mut Self| catch_unwind(AssertUnwindSafe(|| worker.scan())).unwrap_or(false);
        self.scan_complete = scan(self);
        if !self.scan_complete && self.spares.release() {
            self.scan_complete = scan(self);
        }
        self.spares.take(&self.sessions);
    }

    /// Collects the recordings that have ended since the last call; returns whether there are any.
    fn poll_endings(&mut self) -> bool {
        let (sessions, before) = (&self.sessions, self.removed_endings.len());
        self.removed_endings.retain(|ending| {
            let has_ended = ending.wait_until(Instant::now()).is_some();
            if has_ended {
                sessions.remove_empty(ending.session());
            }
            !has_ended
        });
        let mut any = self.removed_endings.len() < before;
        for follower in self.followers.values_mut().filter(|follower| follower.is_ending()) {
            any |= follower.session.ended.wait_until(Instant::now());
        }
        any
    }

    /// Disables the events that exceed a budget, and reports them.
    fn enforce_budgets(&mut self) {
        let mut any = false;
        for (name, follower) in self.followers.iter_mut().filter(|(_, follower)| follower.has_budget()) {
            let Some((generation, what)) = follower.check_budget(&self.context) else { continue };
            any = true;
            if let Ok(dir) = self.sessions.open_subdir(name) {
                // Errors are ignored: if the log cannot be written, the acknowledgement still reports the event.
                let _ = dir.append_if_there(LOG, log_line(generation, &what).as_bytes());
                let _ = follower.acknowledge(&self.sessions, &dir, self.entry.name());
            }
        }
        if any {
            let _ = self.entry.publish_status(&self.status());
        }
    }

    /// Enables the events that bpftrace, perf, gdb or SystemTap has attached to, and disables those that it has detached from.
    fn follow_tools(&mut self) {
        let tools = usdt::poll();
        if tools == self.tools {
            return;
        }
        if let Err(error) = &tools {
            super::print_notice(&format!("another tool has attached to an event: {error}"));
        }
        self.tools = tools;
        let _ = self.entry.publish_status(&self.status());
    }

    /// Reads and applies all sessions. Returns `false` if some could not be read.
    fn scan(&mut self) -> bool {
        // Cleared before the sessions are read, so that a bell rung from now on causes another scan.
        self.stop.waker.clear();
        late_markers::begin_scan();
        self.answered.extend(self.bell.take());
        if !self.follow_identity() {
            return true;
        }
        let excess = self.answered.len().saturating_sub(MAX_ANSWERED);
        self.answered.drain(..excess);
        if let Some(session) = &mut self.environment {
            session.dump_new_state();
        }
        let tracepoints = self.context.refresh();
        let has_changed = tracepoints.is_some();
        let all = self.scan_sessions(tracepoints.as_deref());
        late_markers::end_scan(has_changed, !self.followers.is_empty());
        let _ = self.entry.publish_status(&self.status());
        all
    }

    /// Publishes the tracepoints if they have changed, and applies all sessions to them.
    fn scan_sessions(&mut self, tracepoints: Option<&[TracepointInfo]>) -> bool {
        if tracepoints.is_some() || !self.entry.is_as_published() {
            let described = tracepoints.map_or_else(|| describe_tracepoints(&self.context.catalog), <[_]>::to_vec);
            let _ = self.entry.publish(&self.context.info, &described);
        }
        // If the directory cannot be read, for example because the process has no free descriptor, all sessions continue unchanged.
        let Ok(names) = self.sessions.names() else { return false };
        let mut found: Vec<_> = names.into_iter().filter(|name| check_name(name).is_ok()).collect();
        found.sort();
        let mut all = true;
        // Removed sessions end first, all at once: the others may need their memory.
        let deadline = Instant::now() + END_TIMEOUT;
        let is_gone = |name: &&String| found.binary_search(name).is_err();
        let gone: Vec<String> = self.followers.keys().filter(is_gone).cloned().collect();
        for name in &gone {
            self.followers.get_mut(name).map(SessionFollower::begin_removal);
        }
        for name in gone {
            self.remove_session(&name, deadline);
        }
        for name in found {
            // A stop request does not wait for recordings to start.
            if self.stop.is_requested() {
                return all;
            }
            // One at a time: there may be more sessions than files that the program may open.
            let dir = match self.sessions.open_subdir(&name) {
                Ok(dir) => dir,
                Err(error) if error.is_missing() => {
                    self.remove_session(&name, deadline);
                    continue;
                }
                Err(error) => {
                    all &= !self.followers.contains_key(&name) && !error.is_closed();
                    continue;
                }
            };
            let context = &self.context;
            let follower = self.followers.entry(name.clone());
            let follower = follower.or_insert_with(|| SessionFollower::new(name.clone(), context));
            let is_for_this_process = follower.update(&dir, context, tracepoints.is_some(), deadline);
            all &= !follower.lacks_descriptors();
            if is_for_this_process {
                // If the acknowledgement cannot be written for another reason, the controller sees a process that does not answer.
                let written = follower.acknowledge(&self.sessions, &dir, self.entry.name());
                all &= !written.is_err_and(|error| error.is_closed());
                self.removed_endings.append(&mut follower.session.ended.abandoned);
            } else {
                self.remove_session(&name, deadline);
            }
        }
        all
    }

    /// Ends a session that was removed or is not for this process.
    fn remove_session(&mut self, name: &str, deadline: Instant) {
        let Some(mut follower) = self.followers.remove(name) else { return };
        follower.begin_removal();
        self.removed_endings.extend(follower.session.ended.finish(deadline));
        // The directory is empty if this process was the last to use it.
        self.sessions.remove_empty(name);
    }

    fn status(&self) -> AppStatus {
        let mut fired = BTreeMap::new();
        self.followers.values().for_each(|follower| follower.count_fired(&mut fired));
        let catalog = &self.context.catalog;
        let mut on: Vec<_> =
            catalog.tracepoints().filter(|t| t.is_on()).map(tracepoint_core::Tracepoint::full_name).collect();
        let markers = catalog.markers().filter(|marker| !marker.is_of_tracepoint() && marker.is_on());
        on.extend(markers.map(tracepoint_core::Marker::full_name));
        on.sort();
        let mut status = AppStatus::default();
        status.answered.extend(self.answered.iter().cloned());
        (status.on, status.fired) = (on, fired);
        status.platform = tracepoint_core::platform().to_string();
        status
    }

    /// Ends all sessions, so that their traces are complete, and removes the process's entry.
    fn finish(&mut self) {
        late_markers::end();
        // All end at the same time, so that each can use the whole timeout.
        self.followers.values().for_each(|follower| follower.session.triggers.begin_exit());
        let deadline = Instant::now() + TRIGGER_TIMEOUT;
        self.followers.values_mut().for_each(|follower| follower.session.triggers.end_until(deadline));
        let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
        for follower in self.followers.values_mut() {
            follower.begin_end();
        }
        self.environment.iter_mut().for_each(|session| {
            session.begin_end();
        });
        for (name, follower) in &mut self.followers {
            follower.session.ended.wait_until(deadline);
            if let Ok(dir) = self.sessions.open_subdir(name) {
                let _ = follower.acknowledge(&self.sessions, &dir, self.entry.name());
            }
        }
        for ending in &self.removed_endings {
            ending.wait_until(deadline);
        }
        self.entry.remove();
        if let Some(session) = &mut self.environment {
            session.ended.wait_until(deadline);
            session.ended.error.iter().for_each(|error| super::print_notice(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stop was requested while the agent was scanning.
    #[test]
    fn a_request_to_stop_is_seen_when_a_scan_has_emptied_the_pipe() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let run_dir = RunDir::at(temp.path())?;
        let worker = Worker::new(&run_dir, Stop::new()?)?;
        worker.stop.request();
        worker.stop.waker.clear();
        assert_eq!(worker.wait(), Wakeup::Stopped);
        Ok(())
    }

    /// This happens when the thread cannot be created.
    #[test]
    fn an_agent_that_never_runs_leaves_no_entry() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let run_dir = RunDir::at(temp.path())?;
        let worker = Worker::new(&run_dir, Stop::new()?)?;
        let path = worker.path().to_owned();
        assert!(path.join("bell").exists());
        drop(worker);
        assert!(!path.exists());
        Ok(())
    }
}
