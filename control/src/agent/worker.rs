//! The agent's thread.

use super::AgentError;
use super::active_session::ActiveSession;
use super::context::Context;
use super::entry::Entry;
use super::environment;
use super::wakeup::{Wakeup, stop_requested, timespec, wait_for_stop};
use crate::app::{AppStatus, ApplicationInfo, LOG, SESSIONS, describe_tracepoints};
use crate::bell::Bell;
use crate::budget;
use crate::controller::log_line;
use crate::own_thread::leave_signals_to_the_program;
use crate::private_dir::PrivateDir;
use crate::rundir::RunDir;
use crate::session::{Ending, Recording, check_name};
use crate::state::{Round, Wake, wake_for_dumps};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How many tokens are told as answered.
const ANSWERS: usize = 64;
/// How long sessions have to end when the process does. With a look that is under way less than it waits for the thread.
const END: Duration = Duration::from_secs(3);
/// How long a look waits for sinks of what ends: whoever ends a session waits for 2 s.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The pause between two looks whether they have come to their end.
const ENDING: Duration = Duration::from_millis(250);
/// The pause before it is looked again at what could not be looked at.
const AGAIN: Duration = Duration::from_secs(1);

/// What the thread has.
#[derive(Debug)]
pub(super) struct Worker {
    entry: Entry,
    bell: Bell,
    sessions: PrivateDir,
    context: Context,
    applied: BTreeMap<String, ActiveSession>,
    /// What has not come to its end yet of sessions that are gone, by their names.
    gone: Vec<(String, Ending)>,
    /// What the environment asked for.
    environment: Option<Recording>,
    answered: VecDeque<String>,
    /// Whether the last look came to its end. Where it did not, what it was about is there still, and would wake the thread at once.
    has_looked: bool,
    /// Wakes the thread when the program registers a state dump.
    dumps: Wake,
}

impl Worker {
    /// Publishes the process. From here on its bell can be rung.
    pub(super) fn new(run_dir: &RunDir) -> Result<Self, AgentError> {
        let sessions = run_dir.subdir(SESSIONS)?;
        let dumps = wake_for_dumps().map_err(|errno| AgentError::Thread(errno.into()))?;
        let (entry, bell) = Entry::make(run_dir)?;
        let path = std::path::absolute(sessions.path()).map_err(|error| sessions.failed("find", "", error))?;
        let info = ApplicationInfo::of_this_process(environment::tag());
        let context = Context::new(info, entry.name().to_owned(), path);
        let mut worker = Self {
            entry,
            bell,
            sessions,
            context,
            applied: BTreeMap::new(),
            gone: Vec::new(),
            environment: None,
            answered: VecDeque::new(),
            has_looked: true,
            dumps,
        };
        worker.publish()?;
        Ok(worker)
    }

    fn publish(&mut self) -> Result<(), AgentError> {
        self.entry.publish_status(&self.status())?;
        Ok(self.entry.publish(&self.context.info, &describe_tracepoints(&self.context.catalog))?)
    }

    /// Starts what `TRACEPOINT` asks for; what is wrong with it.
    pub(super) fn follow_environment(&mut self) -> Vec<String> {
        let mut notices = Vec::new();
        self.environment = environment::start(&self.context, &mut notices);
        notices
    }

    /// The same in a forked child. A file of text that the environment names is the parent's.
    pub(super) fn follow_environment_as_a_child(&mut self) {
        if !environment::names_a_file() {
            // The parent has told.
            self.follow_environment();
        }
    }

    /// The process's entry.
    pub(super) fn path(&self) -> &Path {
        self.entry.path()
    }

    /// Runs until `stopped` is written to. Tells `ready` when it has looked at what was there at the start.
    pub(super) fn run(mut self, stopped: &OwnedFd, ready: &Sender<()>) {
        tracepoint_core::private::never_trace_this_thread();
        leave_signals_to_the_program();
        self.look_safely(stopped);
        self.context.initial_scan_done = true;
        let _ = ready.send(());
        loop {
            match self.wait(stopped) {
                Wakeup::Rung => self.look_safely(stopped),
                Wakeup::Tick if !self.has_looked => self.look_safely(stopped),
                Wakeup::Tick => {}
                Wakeup::Stopped => break,
            }
            // What a panic left half done is done at the next look.
            if catch_unwind(AssertUnwindSafe(|| self.look_at_endings())).unwrap_or(false) {
                // What was waiting for that may begin.
                self.look_safely(stopped);
            }
            let _ = catch_unwind(AssertUnwindSafe(|| self.look_at_budgets()));
        }
        // Whatever happens, the program is not kept from ending.
        let _ = catch_unwind(AssertUnwindSafe(|| self.finish()));
    }

    /// Blocks until the bell was rung, or a process has ended with which a session ends, or it is time to look at a budget, or again, or to
    /// end.
    fn wait(&self, stopped: &OwnedFd) -> Wakeup {
        let budget = self.applied.values().any(ActiveSession::has_budget).then_some(budget::TICK);
        let is_ending = !self.gone.is_empty() || self.applied.values().any(ActiveSession::is_ending);
        let mut tick = if self.has_looked { budget.or(is_ending.then_some(ENDING)) } else { Some(AGAIN) };
        let owners = self.applied.values().filter_map(ActiveSession::owner).filter(|_| self.has_looked);
        let own = [stopped.as_fd(), self.bell.as_fd(), self.dumps.as_fd()];
        let mut fds: Vec<_> = own.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).into();
        fds.extend(owners.map(|owner| PollFd::from_borrowed_fd(owner, PollFlags::IN)));
        loop {
            let timeout = tick.map(timespec);
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Wakeup::Tick,
                Ok(_) if fds[0].revents().is_empty() => return Wakeup::Rung,
                Ok(_) => return Wakeup::Stopped,
                Err(Errno::INTR) => {}
                // More files than the program may have open by now: all that can be waited for is the end, for a while.
                Err(_) if fds.len() > 1 => {
                    fds.truncate(1);
                    tick = Some(AGAIN);
                }
                Err(_) => return wait_for_stop(stopped),
            }
        }
    }

    fn look_safely(&mut self, stopped: &OwnedFd) {
        // What a panic left half done is done at the next look.
        self.has_looked = catch_unwind(AssertUnwindSafe(|| self.look(stopped))).unwrap_or(false);
    }

    /// Says what has ended at last because no sink blocks any more: whether anything has.
    fn look_at_endings(&mut self) -> bool {
        let (sessions, before) = (&self.sessions, self.gone.len());
        self.gone.retain(|(name, ending)| {
            let has_ended = ending.wait_until(Instant::now()).is_some();
            if has_ended {
                sessions.remove_empty(name);
            }
            !has_ended
        });
        let mut any = self.gone.len() < before;
        for applied in self.applied.values_mut().filter(|applied| applied.is_ending()) {
            any |= applied.wait_for_end(Instant::now());
        }
        any
    }

    /// Switches off what costs too much, and says so.
    fn look_at_budgets(&mut self) {
        let mut any = false;
        for (name, applied) in self.applied.iter_mut().filter(|(_, applied)| applied.has_budget()) {
            let Some((generation, what)) = applied.look_at_budget(&self.context) else { continue };
            any = true;
            if let Ok(dir) = self.sessions.open_subdir(name) {
                // Where it cannot be written, the acknowledgement says it still; and where that cannot, nobody is told.
                let _ = dir.append_if_there(LOG, log_line(generation, &what).as_bytes());
                let _ = applied.acknowledge(&self.sessions, &dir, self.entry.name());
            }
        }
        if any {
            let _ = self.entry.publish_status(&self.status());
        }
    }

    /// Does what the sessions say. `false` if it cannot be looked at what they say.
    fn look(&mut self, stopped: &OwnedFd) -> bool {
        // Before the sessions are looked at: what is rung from here on is about something newer.
        self.dumps.reset();
        self.answered.extend(self.bell.take());
        let excess = self.answered.len().saturating_sub(ANSWERS);
        self.answered.drain(..excess);
        if let Some(session) = &mut self.environment {
            session.dump_state(Round::New);
        }
        let tracepoints = self.context.refresh();
        if let Some(tracepoints) = &tracepoints {
            let _ = self.entry.publish_tracepoints(tracepoints);
        }
        // Where the program may not open another file, nobody knows what is there: all stays as it is.
        let Ok(names) = self.sessions.names() else { return false };
        let (mut found, mut all) = (BTreeMap::new(), true);
        for name in names.into_iter().filter(|name| check_name(name).is_ok()) {
            match self.sessions.open_subdir(&name) {
                Ok(dir) => drop(found.insert(name, Some(dir))),
                Err(error) if error.is_missing() => {}
                Err(_) => {
                    all &= !self.applied.contains_key(&name);
                    found.insert(name, None);
                }
            }
        }
        // What is gone first, all at once: others may wait for the memory.
        let deadline = Instant::now() + PATIENCE;
        let is_gone = |name: &&String| !found.contains_key(*name);
        let gone: Vec<String> = self.applied.keys().filter(is_gone).cloned().collect();
        for name in &gone {
            self.applied.get_mut(name).map(ActiveSession::begin_to_end);
        }
        for name in gone {
            self.forget(&name, deadline);
        }
        for (name, dir) in found.into_iter().filter_map(|(name, dir)| Some((name, dir?))) {
            // A process that ends does not wait for what begins.
            if stop_requested(stopped) {
                return all;
            }
            let context = &self.context;
            let applied = self.applied.entry(name.clone());
            let applied = applied.or_insert_with(|| ActiveSession::new(name.clone(), context));
            if applied.look(&dir, context, tracepoints.is_some(), deadline) {
                // Where it cannot be written, nobody is told: as if this process did not answer.
                let _ = applied.acknowledge(&self.sessions, &dir, self.entry.name());
                self.gone.extend(applied.abandoned().into_iter().map(|ending| (name.clone(), ending)));
            } else {
                self.forget(&name, deadline);
            }
        }
        let _ = self.entry.publish_status(&self.status());
        all
    }

    /// Leaves a session that is gone, or not for this process.
    fn forget(&mut self, name: &str, deadline: Instant) {
        let Some(mut applied) = self.applied.remove(name) else { return };
        applied.wait_for_end(deadline);
        applied.abandon();
        self.gone.extend(applied.abandoned().into_iter().map(|ending| (name.to_owned(), ending)));
        // It is empty if this process was the last one that had something in it.
        self.sessions.remove_empty(name);
    }

    fn status(&self) -> AppStatus {
        let mut fired = BTreeMap::new();
        self.applied.values().for_each(|applied| applied.count_fired(&mut fired));
        let catalog = &self.context.catalog;
        let mut on: Vec<_> =
            catalog.tracepoints().filter(|t| t.is_on()).map(tracepoint_core::Tracepoint::full_name).collect();
        let markers = catalog.markers().filter(|marker| !marker.is_of_tracepoint() && marker.is_on());
        on.extend(markers.map(tracepoint_core::Marker::full_name));
        on.sort();
        AppStatus {
            answered: self.answered.iter().cloned().collect(),
            on,
            fired,
            platform: tracepoint_core::platform().to_string(),
        }
    }

    /// Ends all sessions, so that their traces are complete, and takes the process off the list.
    fn finish(&mut self) {
        // All at once: each has all the time that there is.
        let deadline = Instant::now() + END;
        for applied in self.applied.values_mut() {
            applied.begin_to_end();
        }
        let environment = self.environment.take().map(Recording::end);
        for (name, applied) in &mut self.applied {
            applied.wait_for_end(deadline);
            if let Ok(dir) = self.sessions.open_subdir(name) {
                let _ = applied.acknowledge(&self.sessions, &dir, self.entry.name());
            }
        }
        for (_, ending) in &self.gone {
            ending.wait_until(deadline);
        }
        self.entry.remove();
        let ended = environment.and_then(|ending| ending.wait_until(deadline));
        if let Some(Err(error)) = ended {
            super::print_notice(&error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As where there is no thread for it.
    #[test]
    fn an_agent_that_does_not_come_to_run_leaves_no_entry() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let run_dir = RunDir::at(temp.path())?;
        let worker = Worker::new(&run_dir)?;
        let path = worker.path().to_owned();
        assert!(path.join("bell").exists());
        drop(worker);
        assert!(!path.exists());
        Ok(())
    }
}
