//! A process that is not what it was when its agent started.
//!
//! **It has changed its user** for good (`setuid`), as services do that begin as root. Its threads may not look into the run directory of the
//! former user any more. The agent goes on in that of the new user, if there is one.
//!
//! **It was restored** from a checkpoint (CRIU), and has another start time, by which it is identified. The agent publishes it again.
//!
//! Either is noticed when the agent is woken next. It ends the sessions, which it could not acknowledge.

use super::{END_TIMEOUT, Worker};
use crate::agent::entry::Entry;
use crate::agent::{AgentError, late_markers, print_notice};
use crate::app::SESSIONS;
use crate::process;
use crate::rundir::RunDir;
use rustix::process::{geteuid, getuid};
use std::io::ErrorKind;
use std::mem;
use std::path::PathBuf;
use std::time::Instant;

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
        // A process whose real user is another one may change back.
        let user = geteuid();
        if user.as_raw() != self.context.info.user && user == getuid() && self.is_refused() {
            self.leave_run_dir(user.as_raw());
        }
        !self.is_homeless
    }

    /// Whether the process may not look into its run directory. Another error, such as a lack of descriptors, passes.
    fn is_refused(&self) -> bool {
        self.sessions.names().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    /// Leaves the run directory of another user.
    fn leave_run_dir(&mut self, user: u32) {
        let former = mem::replace(&mut self.context.info.user, user);
        let left = self.run_dir();
        self.end_all();
        // A child of a fork may hold the descriptor of the entry, and with it the lock.
        self.entry.abandon();
        let moved = self.move_to(RunDir::find());
        self.is_homeless = moved.is_err();
        let what_next = match moved {
            Ok(path) => format!("it is controllable in {}", path.display()),
            Err(error) => {
                late_markers::end();
                format!("{error}; start the agent after the change of the user")
            }
        };
        print_notice(&format!(
            "the process has become user {user}, who may not use the run directory {} of user {former}; its sessions there have ended; {what_next}",
            left.display()
        ));
    }

    fn run_dir(&self) -> PathBuf {
        self.context.sessions.parent().unwrap_or(&self.context.sessions).to_owned()
    }

    fn end_all(&mut self) {
        let deadline = Instant::now() + END_TIMEOUT;
        let mut all = mem::take(&mut self.active);
        for active in all.values_mut() {
            active.remove_statistics();
            active.begin_end();
        }
        for (name, mut active) in all {
            active.wait_for_end(deadline);
            active.abandon();
            self.removed_endings.extend(active.take_abandoned().into_iter().map(|ending| (name.clone(), ending)));
        }
    }

    /// Publishes the process in this run directory.
    fn move_to(&mut self, run_dir: Result<RunDir, crate::rundir::RunDirError>) -> Result<PathBuf, AgentError> {
        let run_dir = run_dir?;
        let sessions = run_dir.subdir(SESSIONS)?;
        let path = std::path::absolute(run_dir.path()).unwrap_or_else(|_| run_dir.path().to_owned());
        let (entry, bell) = Entry::make(&run_dir)?;
        self.context.sessions = path.join(SESSIONS);
        entry.name().clone_into(&mut self.context.entry);
        (self.sessions, self.entry, self.bell) = (sessions, entry, bell);
        self.publish()?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRIU restores a process with its descriptors and locks, and it has another start time.
    #[test]
    fn a_restored_process_is_published_again() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let mut worker = Worker::new(&RunDir::at(temp.path())?)?;
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
