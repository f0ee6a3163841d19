//! A session in the run directory.

use super::{ControlError, Controller, read_authored_spec};
use crate::statistics::SessionStatistics;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::ack::{Ack, files};
use tracepoint_run_dir::bandwidth::Buckets;
use tracepoint_run_dir::layout::BANDWIDTH;
use tracepoint_run_dir::layout::{LOG, SESSION};
use tracepoint_run_dir::owner_pipe::{OWNER, hold};
use tracepoint_run_dir::private_dir::{Author, DirError, PrivateDir, is_no_room};
use tracepoint_run_dir::session_dir::{KeepDead, beside_rings};
use tracepoint_run_dir::stream_status::STREAMS;
use tracepoint_session_spec::{SessionSpec, State};

/// A session in the run directory, as a controller sees it.
#[derive(Debug)]
pub struct NamedSession<'a> {
    pub(super) controller: &'a Controller,
    name: String,
}

/// A requested rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rotation {
    /// The session's generation that contains the request; [wait](NamedSession::wait) for it.
    pub generation: u64,
    /// The number of the rotation. [`Rotated`](crate::Rotated) in the acknowledgements has this number or a later one.
    pub number: u64,
}

impl<'a> NamedSession<'a> {
    pub(super) fn new(controller: &'a Controller, name: &str) -> Self {
        Self { controller, name: name.to_owned() }
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run directory.
    pub(crate) fn run_dir(&self) -> &Path {
        self.controller.path()
    }

    /// The path of the session's directory.
    pub fn path(&self) -> PathBuf {
        self.controller.sessions.path().join(&self.name)
    }

    /// The session's directory, open.
    pub(crate) fn dir(&self) -> Result<PrivateDir, ControlError> {
        self.controller.sessions.open_subdir(&self.name).map_err(|error| self.control_error(error))
    }

    /// The buckets of senders of the session, with that of the session if its streams have a cap of their own.
    pub(crate) fn buckets(&self, has_cap: bool) -> Result<Buckets, ControlError> {
        let session = self.dir()?;
        let failed = |error| session.failed("open", BANDWIDTH, error).into();
        Buckets::open(has_cap.then_some(&session), self.controller.run_dir.dir()).map_err(failed)
    }

    /// The session's current description.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed meanwhile, [`ControlError::Damaged`] if its file cannot be parsed.
    pub fn spec(&self) -> Result<SessionSpec, ControlError> {
        Ok(self.authored_spec()?.0)
    }

    /// The same, and who has written it.
    pub(crate) fn authored_spec(&self) -> Result<(SessionSpec, Author), ControlError> {
        match read_authored_spec(&self.dir()?, &self.name) {
            Err(ControlError::Dir(error)) => Err(self.control_error(error)),
            spec => spec,
        }
    }

    /// Changes the session's description, wakes all processes, and returns the new generation. `what` is written to the session's log.
    /// Changes are serialized by a lock and replace the file atomically. If nothing changes, nothing is written.
    ///
    /// The description is that of its last writer. In a run directory that a group shares, outputs and programs that another user than root has
    /// named can therefore be removed, but not kept; a session that this ends has none.
    ///
    /// # Errors
    ///
    /// The error of `change`, in which case nothing is changed; [`ControlError::NamedByOther`] if another user has named what the session opens;
    /// [`ControlError::Spec`] if the result is invalid; and as [`NamedSession::spec`].
    pub fn change(
        &self,
        what: &str,
        change: impl FnOnce(&mut SessionSpec) -> Result<(), ControlError>,
    ) -> Result<u64, ControlError> {
        let lock = self.controller.lock()?;
        let (mut spec, author) = self.authored_spec()?;
        if super::is_destroyed(&spec) {
            return Err(self.no_session());
        }
        let before = spec.clone();
        change(&mut spec)?;
        if author != Author::Trusted {
            if super::is_destroyed(&spec) {
                spec.open_nothing();
            } else if spec != before && spec.opens_what_is_named_in(&before) {
                return Err(ControlError::NamedByOther { name: self.name.clone(), reason: author.distrust() });
            }
        }
        if spec != before {
            spec.generation = before.generation + 1;
            put(&self.dir()?, &self.name, &spec, what)?;
        }
        drop(lock);
        self.controller.ring_all();
        Ok(spec.generation)
    }

    /// Rotates the session's traces in all processes. The acknowledgements report the result ([`Ack::rotated`]).
    ///
    /// # Errors
    ///
    /// [`ControlError::CannotRotate`] if the session has no CTF output, or is stopped; and as [`NamedSession::change`].
    pub fn rotate(&self) -> Result<Rotation, ControlError> {
        let mut number = 0;
        let generation = self.change("rotate", |spec| {
            let refused = |reason: String| Err(ControlError::CannotRotate { name: self.name.clone(), reason });
            if !spec.sinks.iter().any(|sink| sink.kind == "ctf") {
                return refused("it has no CTF output; create the session with `-o`".to_owned());
            }
            if spec.state != State::Active {
                return refused(format!("it is stopped; start it with `tracectl start {}`", self.name));
            }
            spec.rotations += 1;
            number = spec.rotations;
            Ok(())
        })?;
        Ok(Rotation { generation, number })
    }

    /// The acknowledgements of all processes, including those that have ended.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed meanwhile.
    pub fn acks(&self) -> Result<Vec<Ack>, ControlError> {
        let dir = self.dir()?;
        let mut acks = files::all(&dir, |entry| self.controller.is_alive(entry))?;
        // What a recorder streams, the processes do not know.
        for (process, text) in beside_rings(&dir, STREAMS) {
            let key = ProcessKey::of_directory(&process);
            let found = key.and_then(|key| acks.binary_search_by_key(&key, |ack| ack.process).ok());
            if let Some(ack) = found.map(|index| &mut acks[index]).filter(|ack| ack.streams.is_empty()) {
                ack.streams = serde_json::from_slice(&text).unwrap_or_default();
            }
        }
        Ok(acks)
    }

    /// The acknowledgement that the process with this entry has written last.
    pub(crate) fn last_ack(&self, entry: &str) -> Option<Ack> {
        files::last(&self.dir().ok()?, entry)
    }

    /// The outputs of all its processes: those that they have acknowledged, and those that are named beside their rings.
    pub(crate) fn outputs(&self) -> BTreeSet<PathBuf> {
        let Ok(dir) = self.dir() else { return BTreeSet::new() };
        let acks = files::all(&dir, |_| true).unwrap_or_default();
        acks.into_iter()
            .flat_map(|ack| ack.outputs)
            .chain(tracepoint_run_dir::session_dir::listed_outputs(&dir))
            .collect()
    }

    /// The statistics that the rules of the session compute, in all processes: those that live, and those that have ended or were killed while the
    /// session was active.
    ///
    /// Costs a copy of their files, twice: from 3 KB for a count to a quarter of the session's memory in each process.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed meanwhile.
    pub fn statistics(&self) -> Result<SessionStatistics, ControlError> {
        let dir = self.dir()?;
        Ok(SessionStatistics::read(&dir, |entry| self.controller.is_alive(entry)))
    }

    /// The ring directories of processes that died.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::spec`].
    pub fn rings_of_dead(&self) -> Result<Vec<PathBuf>, ControlError> {
        Ok(tracepoint_run_dir::session_dir::remove_dead(&self.dir()?, KeepDead::ALL))
    }

    /// Removes a directory that [`rings_of_dead`](Self::rings_of_dead) returned, unless its process is alive.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::spec`].
    pub fn remove_rings_of_dead(&self, directory: &Path) -> Result<(), ControlError> {
        tracepoint_run_dir::session_dir::remove_one_dead(&self.dir()?, directory);
        Ok(())
    }

    /// The session's log: one line for each change.
    ///
    /// # Errors
    ///
    /// As [`NamedSession::spec`].
    pub fn log(&self) -> Result<String, ControlError> {
        let dir = self.dir()?;
        let bytes =
            dir.read_file(LOG, u64::MAX - 1).map_err(|error| self.control_error(dir.failed("read", LOG, error)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn no_session(&self) -> ControlError {
        let names = "it was removed meanwhile".to_owned();
        ControlError::NoSession { name: self.name.clone(), names }
    }

    fn control_error(&self, error: DirError) -> ControlError {
        if error.is_missing() { self.no_session() } else { error.into() }
    }
}

/// Writes the session's log and file. The caller holds the lock on the sessions. On a full file system the log lacks the change.
pub(super) fn put(dir: &PrivateDir, name: &str, spec: &SessionSpec, what: &str) -> Result<(), ControlError> {
    if spec.owner.is_some_and(|owner| owner.pipe && owner.is_this_process()) {
        hold(dir, &spec.id).map_err(|error| dir.failed("make", OWNER, error))?;
    }
    let text = spec.to_toml_of(name).map_err(|error| ControlError::Spec { session: name.to_owned(), error })?;
    let line = log_line(spec.generation, what);
    match dir.append_file(LOG).and_then(|log| (&*log).write_all(line.as_bytes())) {
        Err(error) if !is_no_room(&error) => return Err(dir.failed("write", LOG, error).into()),
        _ => {}
    }
    dir.replace_authored(SESSION, text.as_bytes()).map_err(|error| {
        if is_no_room(&error) {
            ControlError::NoRoom { path: dir.path().join(SESSION) }
        } else {
            dir.failed("write", SESSION, error).into()
        }
    })
}

/// A line of the log: seconds since 1970, generation, user, process, and the change.
pub(crate) fn log_line(generation: u64, what: &str) -> String {
    let time = humantime::format_rfc3339_millis(SystemTime::now());
    let user = rustix::process::geteuid().as_raw();
    let process = ProcessKey::of_this_process();
    let what = what.replace(['\n', '\r'], " ");
    format!("{time} generation {generation} user {user} process {process}: {what}\n")
}
