//! A session in the run directory.

use super::{ControlError, Controller, acks};
use crate::described::is_alive_in;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::ack::Ack;
use tracepoint_run_dir::bandwidth::Buckets;
use tracepoint_run_dir::layout::{BANDWIDTH, LOG};
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::session_dir::{KeepDead, beside_rings, listed_outputs, remove_dead, remove_one_dead};
use tracepoint_run_dir::stream_status::STREAMS;
use tracepoint_session_io::statistics::SessionStatistics;
use tracepoint_session_io::store::{Rotation, StoredSession};
use tracepoint_session_spec::SessionSpec;

/// A session in the run directory, as seen by a controller.
#[derive(Debug)]
pub struct NamedSession<'a> {
    pub(super) controller: &'a Controller,
    stored: StoredSession<'a>,
}

impl<'a> NamedSession<'a> {
    pub(super) fn new(controller: &'a Controller, name: &str) -> Self {
        Self { controller, stored: StoredSession::new(&controller.store, name) }
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        self.stored.name()
    }

    pub(crate) fn run_dir(&self) -> &Path {
        self.controller.path()
    }

    /// The path of the session's directory.
    pub fn path(&self) -> PathBuf {
        self.stored.path()
    }

    pub(crate) fn dir(&self) -> Result<PrivateDir, ControlError> {
        self.stored.dir()
    }

    /// Returns the buckets of the session's senders, including the bucket of the session if its streams have a cap.
    pub(crate) fn buckets(&self, has_cap: bool) -> Result<Buckets, ControlError> {
        let session = self.dir()?;
        let failed = |error| session.failed("open", BANDWIDTH, error).into();
        Buckets::open(has_cap.then_some(&session), self.controller.store.run_dir().dir()).map_err(failed)
    }

    /// The session's current description.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed meanwhile, [`ControlError::SessionDamaged`] if its file cannot be parsed.
    pub fn spec(&self) -> Result<SessionSpec, ControlError> {
        self.stored.spec()
    }

    /// Changes the session's description, wakes all processes, and returns the new generation. `what` is written to the session's log.
    /// Changes are serialized by a lock and replace the file atomically. If nothing changes, nothing is written.
    ///
    /// The last writer is the author of the whole description. Therefore, in a run directory that a group shares, outputs and programs
    /// written by another user than root can be removed, but not kept. If the change ends the session, they are removed.
    ///
    /// # Errors
    ///
    /// The error of `change`, in which case nothing is changed; [`ControlError::SessionOfOtherUser`] if another user wrote the outputs or
    /// programs of the session; [`ControlError::SessionSpec`] if the result is invalid; and as [`NamedSession::spec`].
    pub fn change(
        &self,
        what: &str,
        change: impl FnOnce(&mut SessionSpec) -> Result<(), ControlError>,
    ) -> Result<u64, ControlError> {
        self.stored.change(what, change)
    }

    /// Rotates the session's traces in all processes. The acknowledgements report the result ([`Ack::rotated`]).
    ///
    /// # Errors
    ///
    /// [`ControlError::SessionCannotRotate`] if the session has no CTF output, or is stopped; and as [`NamedSession::change`].
    pub fn rotate(&self) -> Result<Rotation, ControlError> {
        self.stored.rotate()
    }

    /// The acknowledgements of all processes, including those that have ended.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed meanwhile.
    pub fn acks(&self) -> Result<Vec<Ack>, ControlError> {
        let dir = self.dir()?;
        let mut acks = acks::all(&dir, |entry| is_alive_in(self.controller.store.apps(), entry))?;
        // The processes do not know the streams of a recorder.
        for (process, text) in beside_rings(&dir, STREAMS) {
            let key = ProcessKey::of_directory(&process);
            let found = key.and_then(|key| acks.binary_search_by_key(&key, |ack| ack.process).ok());
            if let Some(ack) = found.map(|index| &mut acks[index]).filter(|ack| ack.streams.is_empty()) {
                ack.streams = serde_json::from_slice(&text).unwrap_or_default();
            }
        }
        Ok(acks)
    }

    /// Returns the last acknowledgement of the process with this entry.
    pub(crate) fn last_ack(&self, entry: &str) -> Option<Ack> {
        acks::last(&self.dir().ok()?, entry)
    }

    /// Returns the outputs of all its processes: the acknowledged ones, and those listed next to their rings.
    pub(crate) fn outputs(&self) -> BTreeSet<PathBuf> {
        let Ok(dir) = self.dir() else { return BTreeSet::new() };
        let acks = acks::all(&dir, |_| true).unwrap_or_default();
        acks.into_iter().flat_map(|ack| ack.outputs).chain(listed_outputs(&dir)).collect()
    }

    /// Returns the statistics that the rules of the session compute, in all processes: living ones, and those that have ended or were
    /// killed while the session was active.
    ///
    /// Copies their files, twice: from 3 KB for a count to a quarter of the session's memory in each process.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed meanwhile.
    pub fn statistics(&self) -> Result<SessionStatistics, ControlError> {
        let dir = self.dir()?;
        Ok(SessionStatistics::read(&dir, |entry| is_alive_in(self.controller.store.apps(), entry)))
    }

    /// The ring directories of processes that died.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::spec`].
    pub fn rings_of_dead(&self) -> Result<Vec<PathBuf>, ControlError> {
        Ok(remove_dead(&self.dir()?, KeepDead::ALL))
    }

    /// Removes a directory that [`rings_of_dead`](Self::rings_of_dead) returned, unless its process is alive.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::spec`].
    pub fn remove_rings_of_dead(&self, directory: &Path) -> Result<(), ControlError> {
        remove_one_dead(&self.dir()?, directory);
        Ok(())
    }

    /// The session's log: one line for each change.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::spec`].
    pub fn log(&self) -> Result<String, ControlError> {
        let dir = self.dir()?;
        let bytes = dir
            .read_file(LOG, u64::MAX - 1)
            .map_err(|error| self.stored.control_error(dir.failed("read", LOG, error)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
