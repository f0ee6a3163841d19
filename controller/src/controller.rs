//! The controller: manages the sessions of other processes.
//!
//! It writes session files into the run directory, rings the bells of the processes, and reads their acknowledgements.
//! `docs/format-run-directory.md` describes the files and the order in which they are written.

mod acks;
mod application;
pub(crate) mod find;
mod in_code;
mod leftover;
mod listing;
mod matching;
mod missing_feature;
mod named;
mod remove;
mod restored;
mod silence;
mod snapshot;
mod wait;

pub use application::Application;
pub use in_code::SessionInCode;
pub use leftover::{Leftover, rings_behind};
pub use listing::RunDirListing;
pub use matching::{Mismatch, UnmatchedRule};
pub use missing_feature::MissingFeature;
pub use named::NamedSession;
pub use remove::DestroyResult;
pub use silence::SilenceReason;
pub use wait::Acknowledgements;

use crate::described::is_alive_in;
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::ack::{Ack, AckState};
use tracepoint_run_dir::app;
use tracepoint_run_dir::bandwidth::{self, BandwidthUse};
use tracepoint_run_dir::bell::RingResult;
use tracepoint_run_dir::layout::{APPS, PROCESS, SESSION, SESSIONS};
use tracepoint_run_dir::lock::Lock;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_run_dir::session_dir::TRIES;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::outputs::prepare;
use tracepoint_session_io::owner::is_left_behind;
use tracepoint_session_io::store::{SessionStore, put, read_spec};
use tracepoint_session_spec::{SessionSpec, SpecError, check_name};
use tracepoint_sinks::CtfError;

/// Maximum time that a process may take to publish itself in another run directory.
const MOVE_TIMEOUT: Duration = Duration::from_secs(3);

/// Controls the processes that share a run directory.
#[derive(Debug)]
pub struct Controller {
    pub(crate) store: SessionStore,
}

impl Controller {
    /// Returns the controller of the run directory that [`RunDir::find`] finds.
    ///
    /// # Errors
    ///
    /// If the run directory, or a directory in it, cannot be created or trusted.
    pub fn find() -> Result<Self, ControlError> {
        Self::at(RunDir::find()?)
    }

    /// Returns the controller of this run directory.
    ///
    /// # Errors
    ///
    /// As [`Controller::find`].
    pub fn at(run_dir: RunDir) -> Result<Self, ControlError> {
        Ok(Self { store: SessionStore::at(run_dir)? })
    }

    /// Returns the controller of the run directory of the process `pid`, as seen by that process: resolved with its environment and its
    /// root directory.
    ///
    /// # Errors
    ///
    /// If there is no such process, it may not be inspected, or it has not created a run directory; and as [`Controller::find`].
    pub fn of_process(pid: u32) -> Result<Self, ControlError> {
        let run_dir = find::run_dir_of(pid)?;
        Self::where_traced(run_dir, pid)?.followed_user(pid)
    }

    /// Returns the controller of this run directory. Nothing is created: the agent of the process has created the contents.
    fn where_traced(run_dir: RunDir, pid: u32) -> Result<Self, ControlError> {
        let open = |name| match run_dir.dir().open_subdir(name) {
            Err(error) if error.is_missing() => {
                Err(ControlError::ProcessNotTraced { pid, run_dir: run_dir.path().to_owned() })
            }
            opened => Ok(opened?),
        };
        let (apps, sessions) = (open(APPS)?, open(SESSIONS)?);
        Ok(Self { store: SessionStore::of(run_dir, apps, sessions) })
    }

    /// The run directory.
    pub fn path(&self) -> &Path {
        self.store.run_dir().path()
    }

    pub(crate) const fn run_dir(&self) -> &RunDir {
        self.store.run_dir()
    }

    /// Returns the cap on the bandwidth of all senders of the run directory, and its use.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn bandwidth(&self) -> Result<BandwidthUse, ControlError> {
        Ok(bandwidth::read(self.store.run_dir().dir())?)
    }

    /// Sets the cap on the bandwidth of all senders of the run directory, in bytes per second; `None` for no limit. It applies to running
    /// senders immediately.
    ///
    /// # Errors
    ///
    /// [`ControlError::SessionSpec`] if a packet of a session that streams would take more than 10 s, in which case nothing is changed; and
    /// if the file cannot be written.
    pub fn set_bandwidth(&self, rate: Option<u64>) -> Result<(), ControlError> {
        if let Some(rate) = rate {
            let named = |name: String| Some((NamedSession::new(self, &name).spec().ok()?, name));
            let in_code = self.sessions_in_code().into_iter().filter_map(|session| Some((session.spec?, session.name)));
            for (spec, name) in self.sessions()?.into_iter().filter_map(named).chain(in_code) {
                spec.check_bandwidth(&name, rate)
                    .map_err(|error| ControlError::SessionSpec { session: name, error })?;
            }
        }
        Ok(bandwidth::set(self.store.run_dir().dir(), rate)?)
    }

    /// Returns whether the process with this id is the one that made the entry with this name; `None` if there is none, or its process has left it.
    pub(crate) fn is_of_entry(&self, key: ProcessKey) -> Option<bool> {
        find::is_of_entry(self.apps(), key)
    }

    /// Makes a process that has changed its user leave the run directory of the former user, which it may no longer use. The process
    /// detects this when it is woken, and continues in the run directory of its new user, if it can.
    fn followed_user(self, pid: u32) -> Result<Self, ControlError> {
        let Some(user) = find::other_user(pid, self.store.run_dir()) else { return Ok(self) };
        let Some(entry) = find::key_of(pid).map(|key| key.to_string()) else {
            return Err(ControlError::NoProcess(pid));
        };
        let has_left = || !is_alive_in(self.store.apps(), &entry);
        self.store.ring_one(&entry, "");
        wait::poll_until(MOVE_TIMEOUT, || Ok(has_left()))?;
        if has_left() {
            find::run_dir_of(pid).and_then(|run_dir| Self::where_traced(run_dir, pid))
        } else {
            Err(ControlError::ProcessUserChanged { pid, user, run_dir: self.path().to_owned() })
        }
    }

    /// The living traced processes, ordered by process id. Stale entries are removed.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn processes(&self) -> Result<Vec<Application>, ControlError> {
        // If another process holds the lock, it removes the stale entries itself.
        if let Ok(_lock) = Lock::take(self.store.apps()) {
            let _ = app::remove_stale(self.store.apps());
        }
        let names = self.store.apps().names().map_err(|error| self.store.apps().failed("read", "", error))?;
        let open = |name: String| {
            let dir = self.store.apps().open_subdir(&name).ok()?;
            // An agent that is starting publishes its process now; an agent whose file was removed does so when its bell is rung.
            let is_published = dir.file_len(PROCESS).is_ok() || self.store.ring_one(&name, "") == RingResult::NoReader;
            is_published.then(|| Application::open(name, &dir, self.store.apps())).flatten()
        };
        let mut all: Vec<_> = names.into_iter().filter_map(open).collect();
        all.sort_by(|a, b| (a.info().pid, a.name()).cmp(&(b.info().pid, b.name())));
        Ok(all)
    }

    /// Returns the processes that died while they recorded for a session, each with the session's name. They are known until the session is
    /// removed.
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn dead(&self) -> Result<Vec<(String, Ack)>, ControlError> {
        let mut dead = Vec::new();
        for name in self.sessions()? {
            let acks = NamedSession::new(self, &name).acks().unwrap_or_default();
            let of_dead = acks.into_iter().filter(|ack| ack.state == AckState::Dead);
            dead.extend(of_dead.map(|ack| (name.clone(), ack)));
        }
        Ok(dead)
    }

    /// The directory of the entries of processes.
    pub(crate) fn apps(&self) -> &PrivateDir {
        self.store.apps()
    }

    /// The traced process with this id, in the caller's pid namespace.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoProcess`] if there is no such process, [`ControlError::ProcessNotTraced`] if it has no agent.
    pub fn process(&self, pid: u32) -> Result<Application, ControlError> {
        let key = find::key_of(pid).ok_or(ControlError::NoProcess(pid))?;
        let find = || -> Result<_, ControlError> {
            Ok(self.processes()?.into_iter().find(|process| process.info().key().is_same(key)))
        };
        let mut found = find()?;
        if found.is_none() && self.has_restored(key.pid) {
            wait::poll_until(MOVE_TIMEOUT, || {
                found = find()?;
                Ok(found.is_some())
            })?;
        }
        found.ok_or_else(|| ControlError::ProcessNotTraced { pid, run_dir: self.path().to_owned() })
    }

    /// The names of the sessions, sorted. The files of sessions that are over are removed, except for rings within the limits of
    /// [`Controller::leftovers`].
    ///
    /// # Errors
    ///
    /// If the run directory cannot be read.
    pub fn sessions(&self) -> Result<Vec<String>, ControlError> {
        let names = self.store.sessions().names().map_err(|error| self.store.sessions().failed("read", "", error))?;
        let (mut found, mut any_over) = (Vec::new(), false);
        for name in names.into_iter().filter(|name| check_name(name).is_ok()) {
            let Ok(dir) = self.store.sessions().open_subdir(&name) else { continue };
            match read_spec(&dir) {
                Ok(spec) if is_left_behind(&spec, &dir) => {
                    // Checked again under the lock: another controller may have replaced the session meanwhile.
                    let is_left = |dir: &PrivateDir| read_spec(dir).is_ok_and(|spec| is_left_behind(&spec, dir));
                    drop(self.remove(&name, false, is_left));
                    any_over = true;
                }
                Err(ControlError::Dir(error)) if error.is_missing() => {
                    self.remove_rest(&name, &dir);
                    any_over = true;
                }
                _ => found.push(name),
            }
        }
        if any_over {
            self.leftovers()?;
        }
        found.sort();
        Ok(found)
    }

    /// The session called `name`.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if there is none, [`ControlError::SessionInCode`] if a program has started it in code,
    /// [`ControlError::SessionName`] if the name is invalid.
    pub fn session(&self, name: &str) -> Result<NamedSession<'_>, ControlError> {
        check_name(name).map_err(|error| ControlError::name(&error))?;
        // For a current session, the other sessions need not be read.
        if self.store.session(name).is_some() {
            return Ok(NamedSession::new(self, name));
        }
        if let Some(error) = self.is_in_code(name) {
            return Err(error);
        }
        let names = self.sessions()?;
        if !names.iter().any(|known| known == name) {
            let names = if names.is_empty() {
                format!("no session exists; create it with `tracectl create {name} -e RULE --start`")
            } else {
                format!("there are: {}", names.join(", "))
            };
            return Err(ControlError::NoSession { name: name.to_owned(), names });
        }
        Ok(NamedSession::new(self, name))
    }

    /// Creates a session. It applies to running and future processes when this function returns.
    ///
    /// # Errors
    ///
    /// [`ControlError::SessionExists`] or [`ControlError::SessionInCode`] if there is one of that name; [`ControlError::SessionName`] or
    /// [`ControlError::SessionSpec`] if the name or the description is invalid, a packet of its streams would take more than 10 s at the
    /// [cap](Self::bandwidth) of the run directory, or a sink cannot [replace](tracepoint_session_spec::CtfSinkSpec::existing) the contents
    /// of its directory.
    pub fn create(&self, name: &str, spec: &SessionSpec) -> Result<NamedSession<'_>, ControlError> {
        check_name(name).map_err(|error| ControlError::name(&error))?;
        let cap = || self.bandwidth().ok()?.rate;
        let checked = spec.check().and_then(|()| cap().map_or(Ok(()), |rate| spec.check_bandwidth(name, rate)));
        checked.map_err(|error| ControlError::SessionSpec { session: name.to_owned(), error })?;
        if self.sessions()?.iter().any(|known| known == name) {
            return Err(ControlError::SessionExists(name.to_owned()));
        }
        if let Some(error) = self.is_in_code(name) {
            return Err(error);
        }
        let _lock = self.store.lock()?;
        let mut spec = spec.clone();
        let failed = |error: CtfError| ControlError::SessionSpec {
            session: name.to_owned(),
            error: SpecError::Invalid(error.to_string()),
        };
        spec.sinks.iter_mut().try_for_each(prepare).map_err(failed)?;
        let spec = &spec;
        let mut made = self.make(name, spec);
        for _ in 1..TRIES {
            // A process that left an earlier session of this name may remove the directory while it is still empty: try again.
            if !matches!(&made, Err(ControlError::Dir(error)) if error.is_missing()) {
                break;
            }
            made = self.make(name, spec);
        }
        made?;
        self.store.ring_all();
        Ok(NamedSession::new(self, name))
    }

    fn make(&self, name: &str, spec: &SessionSpec) -> Result<(), ControlError> {
        let dir = self.store.sessions().subdir(name)?;
        if dir.file_len(SESSION).is_ok() {
            return Err(ControlError::SessionExists(name.to_owned()));
        }
        put(&dir, name, spec, "create")
    }
}
