//! The end of a session.

use super::{Application, ControlError, Controller, NamedSession, read_spec};
use crate::ack::{Ack, files};
use crate::app::{LOG, SESSION};
use crate::private_dir::PrivateDir;
use crate::session_dir::{KeepDead, RINGS};
use crate::spec::State;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What is left of a session.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Removed {
    /// What the processes did for it. Of one that is [ending](crate::AckState::Ending) a sink has not taken all yet.
    pub acks: Vec<Ack>,
    /// Processes that have not switched it off yet: stopped, or slow. They will when they go on.
    pub silent: Vec<Application>,
    /// Directories with rings of processes that died, which stay.
    pub dead: Vec<PathBuf>,
}

impl NamedSession<'_> {
    /// Ends the session in all processes, for which it waits for `timeout` at most, and removes it. Traces of its sinks stay; and, unless
    /// they are to be removed, too (`rings_of_dead`), the rings of processes that died.
    ///
    /// # Errors
    ///
    /// If it is not there, or cannot be removed. A session that is damaged can be destroyed as well.
    pub fn destroy(&self, timeout: Duration, rings_of_dead: bool) -> Result<Removed, ControlError> {
        let mut removed = Removed::default();
        let ended = self.change("destroy", |spec| {
            spec.state = State::Destroyed;
            // Others leave it alone for as long as this one waits.
            spec.end_with_this_process();
            Ok(())
        });
        match ended {
            Ok(generation) => {
                let waited = self.wait(generation, timeout)?;
                (removed.acks, removed.silent) = (waited.acks, waited.silent);
            }
            // What nobody understands nobody records for. Agents see that it is gone.
            Err(ControlError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        // Somebody may have made another one of that name by now, which stays.
        let is_ended = |dir: &PrivateDir| !matches!(read_spec(dir), Ok(spec) if spec.state != State::Destroyed);
        removed.dead = self.controller.remove(self.name(), rings_of_dead, is_ended)?;
        self.controller.ring_all();
        Ok(removed)
    }
}

impl Controller {
    /// Removes the files of a session, if `is_ended` says so of what is there once it is locked; the directories that stay.
    pub(super) fn remove(
        &self,
        name: &str,
        rings_of_dead: bool,
        is_ended: impl Fn(&PrivateDir) -> bool,
    ) -> Result<Vec<PathBuf>, ControlError> {
        let _lock = self.lock()?;
        let dir = self.sessions.open_subdir(name)?;
        if !is_ended(&dir) {
            return Ok(Vec::new());
        }
        // It is no session from here on, and whoever makes one of that name begins anew.
        dir.remove_file(SESSION);
        remove_descriptions(&dir);
        let dead = crate::session_dir::remove_dead(&dir, if rings_of_dead { KeepDead::NONE } else { KeepDead::ALL });
        self.sessions.remove_empty(name);
        Ok(dead)
    }

    /// Removes what the last ones of a session that is gone could not: a process that ended, or one that was killed.
    pub(super) fn remove_rest(&self, name: &str, dir: &PrivateDir) {
        // Where there is nothing but rings they are somebody's.
        if dir.names().map_or(true, |names| names == [RINGS]) {
            return;
        }
        // Whoever makes a session has them locked.
        let Ok(_lock) = self.lock() else { return };
        if matches!(dir.file_len(SESSION), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            remove_descriptions(dir);
            self.sessions.remove_empty(name);
        }
    }
}

/// Removes what stands beside a session's file, which is gone.
fn remove_descriptions(dir: &PrivateDir) {
    for file in [LOG, &format!(".{LOG}.new"), &format!(".{SESSION}.new")] {
        dir.remove_file(file);
    }
    files::remove_all(dir);
}
