//! A process whose identity has changed since its agent started.
//!
//! **It has changed its user** permanently (`setuid`), as services do that begin as root. Its threads may no longer access the run
//! directory of the former user. The agent continues in that of the new user, if there is one, and the new user may control the process.
//!
//! **It has more rights** than the owner of its run directory by now, or is no longer dumpable: the agent leaves the directory permanently.
//!
//! **It was restored** from a checkpoint (CRIU), and has another start time, which is part of its identity. The agent publishes it again.
//!
//! Each change is detected when the agent is next woken; more rights within a second, if it records. The agent ends the sessions, because
//! it could not acknowledge them.

use super::{END_TIMEOUT, Worker};
use crate::agent::entry::Entry;
use crate::agent::session_follower::SessionFollower;
use crate::agent::{AgentError, fork, late_markers, print_notice};
use std::io::ErrorKind;
use std::mem;
use std::path::PathBuf;
use std::time::Instant;
use tracepoint_reader::process;
use tracepoint_run_dir::credentials::Credentials;
use tracepoint_run_dir::layout::SESSIONS;
use tracepoint_run_dir::rundir::{RunDir, RunDirError};

impl Worker {
    /// Returns whether the process has a run directory.
    pub(super) fn follow_identity(&mut self) -> bool {
        if self.is_homeless {
            return false;
        }
        let started = process::started();
        if started != self.context.info.started {
            self.context.info.started = started;
            self.end_all();
            if let Err(error) = self.move_to(RunDir::open(&self.run_dir())) {
                print_notice(&format!("the process was restored from a checkpoint: {error}"));
            }
        }
        if let Err(error) = self.trusted.check() {
            self.give_up(&error);
            return false;
        }
        // A process that has kept another user id may change back.
        let user = Credentials::of_this_thread().ok().and_then(|own| own.only_user());
        if let Some(user) = user.filter(|user| *user != self.context.info.user)
            && self.is_refused()
        {
            self.leave_run_dir(user);
        }
        !self.is_homeless
    }

    /// Returns whether the process may not access its run directory. Other errors, such as a lack of descriptors, are temporary.
    fn is_refused(&self) -> bool {
        self.sessions.names().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    /// Stops offering control to the users who may write to the run directory.
    fn give_up(&mut self, reason: &RunDirError) {
        self.end_all();
        self.entry.abandon();
        self.entry.remove();
        self.become_homeless();
        print_notice(&format!(
            "the process is not controllable any more, and its sessions from outside have ended: {reason}"
        ));
    }

    fn become_homeless(&mut self) {
        self.is_homeless = true;
        late_markers::end();
        fork::stop_following();
    }

    /// Leaves the run directory of another user.
    fn leave_run_dir(&mut self, user: u32) {
        let former = mem::replace(&mut self.context.info.user, user);
        let left = self.run_dir();
        self.end_all();
        let run_dir = RunDir::of_traced_process();
        let is_for_rights = run_dir.as_ref().is_err_and(RunDirError::is_for_rights);
        let what_next = match self.move_to(run_dir) {
            Ok(path) => format!("it is controllable in {}", path.display()),
            Err(error) => {
                // A child of a fork may hold the descriptor of the entry, and with it the lock.
                self.entry.abandon();
                self.become_homeless();
                let mend = if is_for_rights { "" } else { "; start the agent after the change of the user" };
                format!("{error}{mend}")
            }
        };
        print_notice(&format!(
            "the process has become user {user}, who may not use the run directory {} of user {former}; its sessions there have ended; {what_next}",
            left.display()
        ));
    }

    fn run_dir(&self) -> PathBuf {
        self.context.run_dir.clone()
    }

    fn end_all(&mut self) {
        let deadline = Instant::now() + END_TIMEOUT;
        let mut all = mem::take(&mut self.followers);
        all.values_mut().for_each(SessionFollower::begin_removal);
        for mut follower in all.into_values() {
            self.removed_endings.extend(follower.session.ended.finish(deadline));
        }
    }

    /// Publishes the process in this run directory, and then leaves the former one: a controller that sees it leave finds it there.
    fn move_to(&mut self, run_dir: Result<RunDir, RunDirError>) -> Result<PathBuf, AgentError> {
        let run_dir = run_dir?;
        let trusted = run_dir.trusted()?;
        trusted.check()?;
        let sessions = run_dir.dir().subdir(SESSIONS)?;
        let path = std::path::absolute(run_dir.path()).unwrap_or_else(|_| run_dir.path().to_owned());
        let (entry, bell) = Entry::make(&run_dir)?;
        self.context.run_dir.clone_from(&path);
        entry.name().clone_into(&mut self.context.entry);
        (self.trusted, self.sessions, self.bell) = (trusted, sessions, bell);
        let mut former = mem::replace(&mut self.entry, entry);
        let published = self.publish();
        // A child of a fork may hold the descriptor of the entry, and with it the lock.
        former.abandon();
        published?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::wakeup::Stop;

    /// CRIU restores a process with its descriptors and locks, and it has another start time.
    #[test]
    fn a_restored_process_is_published_again() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let mut worker = Worker::new(&RunDir::at(temp.path())?, Stop::new()?)?;
        let first = worker.path().to_owned();
        assert!(worker.follow_identity() && worker.path() == first);
        worker.context.info.started -= 1;
        assert!(worker.follow_identity());
        assert_eq!(worker.context.info.started, process::started());
        assert_ne!(worker.path(), first);
        assert!(worker.path().join("bell").exists() && worker.path().join("process.json").exists() && !first.exists());
        Ok(())
    }
}
