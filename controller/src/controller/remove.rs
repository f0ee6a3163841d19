//! Ending and removing sessions.

use super::{Application, ControlError, Controller, NamedSession, read_spec};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_run_dir::ack::{Ack, files};
use tracepoint_run_dir::layout::{BANDWIDTH, LOG, RINGS, SESSION, STATISTICS, TRIGGERS};
use tracepoint_run_dir::owner_pipe::{OWNER, release};
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::session_dir::{KeepDead, MEMORY, WAKE, remove_dead};
use tracepoint_session_io::owner::this_process;
use tracepoint_session_spec::State;

/// The remains of a destroyed session.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DestroyResult {
    /// The acknowledgements of the processes. In a process that is [ending](tracepoint_run_dir::AckState::Ending), a sink has not written everything
    /// yet.
    pub acks: Vec<Ack>,
    /// Processes that have not ended the session yet because they are stopped or slow. They end it when they continue.
    pub silent: Vec<Application>,
    /// Ring directories of processes that died, which are kept.
    pub dead: Vec<PathBuf>,
}

impl NamedSession<'_> {
    /// Ends the session in all processes, waits at most `timeout` for them, and removes it. Traces of its sinks are kept. Rings of
    /// processes that died are kept unless `rings_of_dead` is set.
    ///
    /// # Errors
    ///
    /// If the session does not exist or cannot be removed. A damaged session can be destroyed as well.
    pub fn destroy(&self, timeout: Duration, rings_of_dead: bool) -> Result<DestroyResult, ControlError> {
        let mut removed = DestroyResult::default();
        let mut id = String::new();
        let ended = self.change("destroy", |spec| {
            id.clone_from(&spec.id);
            spec.state = State::Destroyed;
            // While this process waits, no other controller cleans the session up.
            spec.owner = Some(this_process(false));
            Ok(())
        });
        let mut without_room = None;
        match ended {
            Ok(generation) => {
                let waited = self.wait(generation, timeout)?;
                (removed.acks, removed.silent) = (waited.acks, waited.silent);
            }
            // Agents also end a session whose file is removed, and removing a file needs no room.
            Err(ControlError::RunDirFull { .. }) => without_room = Some(id.clone()),
            // No process records for a damaged session; agents see that it is removed.
            Err(ControlError::SessionDamaged { .. }) => {}
            Err(error) => return Err(error),
        }
        // Another controller may have created a session of that name meanwhile, which is kept.
        let is_ended = |dir: &PrivateDir| match read_spec(dir) {
            Ok(spec) => spec.state == State::Destroyed || Some(spec.id) == without_room,
            Err(_) => true,
        };
        removed.dead = self.controller.remove(self.name(), rings_of_dead, is_ended)?;
        release(&id);
        if without_room.is_some() {
            removed.silent = self.controller.refresh(timeout)?;
        } else {
            self.controller.store.ring_all();
        }
        Ok(removed)
    }
}

impl Controller {
    /// Removes the files of a session if `is_ended` returns `true` under the lock; returns the ring directories that are kept.
    pub(super) fn remove(
        &self,
        name: &str,
        rings_of_dead: bool,
        is_ended: impl Fn(&PrivateDir) -> bool,
    ) -> Result<Vec<PathBuf>, ControlError> {
        let _lock = self.store.lock()?;
        let dir = self.store.sessions().open_subdir(name)?;
        if !is_ended(&dir) {
            return Ok(Vec::new());
        }
        // Without this file the directory is no session, and a new one of that name can be created.
        dir.remove_file(SESSION);
        remove_other_files(&dir);
        let dead = remove_dead(&dir, if rings_of_dead { KeepDead::NONE } else { KeepDead::ALL });
        self.store.sessions().remove_empty(name);
        Ok(dead)
    }

    /// Removes the remaining files of a removed session, left by processes that ended or were killed.
    pub(super) fn remove_rest(&self, name: &str, dir: &PrivateDir) {
        // A directory that contains only rings is kept: a process may use them, or they may be recovered.
        let is_rings = |name: &String| [RINGS, MEMORY, BANDWIDTH].contains(&name.as_str());
        // The statistics of a session in code are removed with its rings.
        let has_rings = dir.file_len(RINGS).is_ok();
        let is_kept = |name: &String| is_rings(name) || has_rings && name == STATISTICS;
        if dir.names().map_or(true, |names| !names.is_empty() && names.iter().all(is_kept)) {
            return;
        }
        // Creating a session takes the same lock.
        let Ok(_lock) = self.store.lock() else { return };
        if matches!(dir.file_len(SESSION), Err(error) if error.kind() == io::ErrorKind::NotFound) {
            remove_other_files(dir);
            self.store.sessions().remove_empty(name);
        }
    }
}

/// Removes the other files of the session. The session's file is removed already.
fn remove_other_files(dir: &PrivateDir) {
    for file in [LOG, OWNER, WAKE, BANDWIDTH, &PrivateDir::temporary(SESSION), &PrivateDir::spare(SESSION)] {
        dir.remove_file(file);
    }
    files::remove_all(dir);
    dir.remove_subdir(TRIGGERS);
    dir.remove_subdir(STATISTICS);
}
