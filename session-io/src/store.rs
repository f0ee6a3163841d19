//! The sessions of a run directory: their descriptions, and changes to them.
//!
//! Used by controllers, and by triggers that act in a traced process.

use crate::error::ControlError;
use crate::owner::{is_left_behind, is_this_process};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::bell::{RingResult, ring};
use tracepoint_run_dir::layout::{APPS, LOG, SESSION, SESSIONS};
use tracepoint_run_dir::lock::Lock;
use tracepoint_run_dir::owner_pipe::{OWNER, hold};
use tracepoint_run_dir::private_dir::{Author, DirError, PrivateDir, is_no_room};
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_spec::{SessionSpec, SinkSpec, State, check_name};

/// Maximum time to wait for other controllers.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The sessions and the traced processes of a run directory.
#[derive(Debug)]
pub struct SessionStore {
    run_dir: RunDir,
    apps: Arc<PrivateDir>,
    sessions: PrivateDir,
}

impl SessionStore {
    /// Opens the sessions of this run directory; creates its subdirectories if they are missing.
    ///
    /// # Errors
    ///
    /// If a subdirectory cannot be made or used.
    pub fn at(run_dir: RunDir) -> Result<Self, ControlError> {
        let (apps, sessions) = (run_dir.dir().subdir(APPS)?, run_dir.dir().subdir(SESSIONS)?);
        Ok(Self::of(run_dir, apps, sessions))
    }

    /// Returns the sessions of a run directory whose subdirectories are open.
    pub fn of(run_dir: RunDir, apps: PrivateDir, sessions: PrivateDir) -> Self {
        Self { run_dir, apps: Arc::new(apps), sessions }
    }

    /// The path of the run directory.
    pub fn path(&self) -> &Path {
        self.run_dir.path()
    }

    /// The run directory.
    pub const fn run_dir(&self) -> &RunDir {
        &self.run_dir
    }

    /// The directory of the traced processes.
    pub const fn apps(&self) -> &Arc<PrivateDir> {
        &self.apps
    }

    /// The directory of the sessions.
    pub const fn sessions(&self) -> &PrivateDir {
        &self.sessions
    }

    /// Returns the directories of all sessions, including those that processes have started in code.
    pub(crate) fn session_dirs(&self) -> impl Iterator<Item = (String, PrivateDir)> + '_ {
        let names = self.sessions.names().unwrap_or_default().into_iter().filter(|name| check_name(name).is_ok());
        names.filter_map(|name| self.sessions.open_subdir(&name).ok().map(|dir| (name, dir)))
    }

    /// Returns the names of the current sessions, sorted. Nothing is removed, in contrast to `Controller::sessions`.
    ///
    /// # Errors
    ///
    /// If the directory of the sessions cannot be read.
    pub(crate) fn names(&self) -> Result<Vec<String>, ControlError> {
        let names = self.sessions.names().map_err(|error| self.sessions.failed("read", "", error))?;
        let mut names: Vec<_> = names.into_iter().filter(|name| self.session(name).is_some()).collect();
        names.sort();
        Ok(names)
    }

    /// Returns a current session. `None` if the name is not valid, there is no such session, it is over, or its description cannot be read.
    pub fn session(&self, name: &str) -> Option<StoredSession<'_>> {
        check_name(name).ok()?;
        let dir = self.sessions.open_subdir(name).ok()?;
        let spec = read_spec(&dir).ok()?;
        (!is_left_behind(&spec, &dir)).then(|| StoredSession::new(self, name))
    }

    /// Takes the lock on the sessions, which is required to create, change and remove them.
    ///
    /// # Errors
    ///
    /// If other processes hold it for 5 s.
    pub fn lock(&self) -> Result<Lock, ControlError> {
        Ok(Lock::take_within(&self.sessions, LOCK_TIMEOUT).map_err(|error| self.sessions.failed("lock", "", error))?)
    }

    /// Wakes the agents of all processes.
    pub fn ring_all(&self) {
        for name in self.apps.names().unwrap_or_default() {
            self.ring_one(&name, "");
        }
    }

    /// Wakes the agent with this entry; the agent answers with the token, if one is given.
    pub fn ring_one(&self, name: &str, token: &str) -> RingResult {
        let result = self.apps.open_subdir(name).ok().and_then(|dir| ring(&dir, token).ok());
        // A process that cannot be reached does not acknowledge, so the caller notices.
        result.unwrap_or(RingResult::NoReader)
    }
}

/// A session of a run directory.
#[derive(Debug)]
pub struct StoredSession<'a> {
    store: &'a SessionStore,
    name: String,
}

/// A requested rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rotation {
    /// The session's generation that contains the request; wait for its acknowledgement.
    pub generation: u64,
    /// The number of the rotation. [`RotationResult`](tracepoint_run_dir::RotationResult) in the acknowledgements has this number or a later one.
    pub number: u64,
}

impl<'a> StoredSession<'a> {
    /// The session of this name, which may be missing.
    pub fn new(store: &'a SessionStore, name: &str) -> Self {
        Self { store, name: name.to_owned() }
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of the session's directory.
    pub fn path(&self) -> PathBuf {
        self.store.sessions.path().join(&self.name)
    }

    /// The session's directory, open.
    ///
    /// # Errors
    ///
    /// As [`StoredSession::spec`].
    pub fn dir(&self) -> Result<PrivateDir, ControlError> {
        self.store.sessions.open_subdir(&self.name).map_err(|error| self.control_error(error))
    }

    /// Returns the session's current description.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed meanwhile, [`ControlError::SessionDamaged`] if its file cannot be parsed.
    pub fn spec(&self) -> Result<SessionSpec, ControlError> {
        Ok(self.authored_spec()?.0)
    }

    /// Returns the description and its author.
    ///
    /// # Errors
    ///
    /// As [`StoredSession::spec`].
    pub(crate) fn authored_spec(&self) -> Result<(SessionSpec, Author), ControlError> {
        match read_authored_spec(&self.dir()?, &self.name) {
            Err(ControlError::Dir(error)) => Err(self.control_error(error)),
            spec => spec,
        }
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
    /// programs of the session; [`ControlError::SessionSpec`] if the result is invalid; and as [`StoredSession::spec`].
    pub fn change(
        &self,
        what: &str,
        change: impl FnOnce(&mut SessionSpec) -> Result<(), ControlError>,
    ) -> Result<u64, ControlError> {
        let lock = self.store.lock()?;
        let (mut spec, author) = self.authored_spec()?;
        if is_destroyed(&spec) {
            return Err(self.no_session());
        }
        let before = spec.clone();
        change(&mut spec)?;
        if author != Author::Trusted {
            if is_destroyed(&spec) {
                spec.open_nothing();
            } else if spec != before && spec.opens_what_is_named_in(&before) {
                return Err(ControlError::SessionOfOtherUser { name: self.name.clone(), reason: author.distrust() });
            }
        }
        if spec != before {
            spec.generation = before.generation + 1;
            put(&self.dir()?, &self.name, &spec, what)?;
        }
        drop(lock);
        self.store.ring_all();
        Ok(spec.generation)
    }

    /// Rotates the session's traces in all processes. The acknowledgements report the result (`Ack::rotated`).
    ///
    /// # Errors
    ///
    /// [`ControlError::SessionCannotRotate`] if the session has no CTF output, or is stopped; and as [`StoredSession::change`].
    pub fn rotate(&self) -> Result<Rotation, ControlError> {
        let mut number = 0;
        let generation = self.change("rotate", |spec| {
            let refused = |reason: String| Err(ControlError::SessionCannotRotate { name: self.name.clone(), reason });
            if !spec.sinks.iter().any(|sink| matches!(sink, SinkSpec::Ctf(_))) {
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

    /// The error for a session that was removed.
    fn no_session(&self) -> ControlError {
        let names = "it was removed meanwhile".to_owned();
        ControlError::NoSession { name: self.name.clone(), names }
    }

    /// The error for a failed access to the session's files.
    pub fn control_error(&self, error: DirError) -> ControlError {
        if error.is_missing() { self.no_session() } else { error.into() }
    }
}

/// Writes the session's log and file. The caller holds the lock on the sessions. On a full file system, the change is missing from the log.
///
/// # Errors
///
/// If the description is invalid, or a file cannot be written.
pub fn put(dir: &PrivateDir, name: &str, spec: &SessionSpec, what: &str) -> Result<(), ControlError> {
    if spec.owner.is_some_and(|owner| owner.pipe && is_this_process(&owner)) {
        hold(dir, &spec.id).map_err(|error| dir.failed("make", OWNER, error))?;
    }
    let text = spec.to_toml_of(name).map_err(|error| ControlError::SessionSpec { session: name.to_owned(), error })?;
    let line = log_line(spec.generation, what);
    match dir.append_file(LOG).and_then(|log| (&*log).write_all(line.as_bytes())) {
        Err(error) if !is_no_room(&error) => return Err(dir.failed("write", LOG, error).into()),
        _ => {}
    }
    dir.replace_authored(SESSION, text.as_bytes()).map_err(|error| {
        if is_no_room(&error) {
            ControlError::RunDirFull(dir.path().join(SESSION))
        } else {
            dir.failed("write", SESSION, error).into()
        }
    })
}

/// Formats a line of the log: time, generation, user, process, and the change.
pub fn log_line(generation: u64, what: &str) -> String {
    let time = humantime::format_rfc3339_millis(SystemTime::now());
    let user = rustix::process::geteuid().as_raw();
    let process = ProcessKey::of_this_process();
    let what = what.replace(['\n', '\r'], " ");
    format!("{time} generation {generation} user {user} process {process}: {what}\n")
}

/// Returns whether the session is to be removed.
const fn is_destroyed(spec: &SessionSpec) -> bool {
    matches!(spec.state, State::Destroyed)
}

/// Reads the description in a session's directory.
///
/// # Errors
///
/// If there is none, or it cannot be parsed.
pub fn read_spec(dir: &PrivateDir) -> Result<SessionSpec, ControlError> {
    Ok(read_described(dir)?.0)
}

/// Reads the description of the session called `name`, and returns it with its author.
///
/// # Errors
///
/// As [`read_spec`].
fn read_authored_spec(dir: &PrivateDir, name: &str) -> Result<(SessionSpec, Author), ControlError> {
    let (spec, author, bytes) = read_described(dir)?;
    Ok((spec, author.for_session(name, || SessionSpec::written_for(&bytes))))
}

fn read_described(dir: &PrivateDir) -> Result<(SessionSpec, Author, Vec<u8>), ControlError> {
    let read = dir.read_authored(SESSION, SessionSpec::MAX_SIZE).map_err(|error| dir.failed("read", SESSION, error));
    let (bytes, author) = read?;
    let damaged = |error| ControlError::SessionDamaged { path: dir.path().join(SESSION), error };
    Ok((SessionSpec::parse(&bytes).map_err(damaged)?, author, bytes))
}
