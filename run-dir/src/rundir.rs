//! The run directory, through which the processes of a user find each other.

use crate::credentials::{Credentials, Excess};
use crate::private_dir::{DirError, PrivateDir};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tracepoint_reader::secure_exec::secure;

/// A directory that only this user can write to, shared by the user's processes: `$TRACEPOINT_RUN_DIR`, else systemd's
/// `$RUNTIME_DIRECTORY`, else `$XDG_RUNTIME_DIR/tracepoint`, else `/dev/shm/tracepoint-UID`.
#[derive(Debug)]
pub struct RunDir(PrivateDir);

/// The run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.with_mend("name another run directory in TRACEPOINT_RUN_DIR"))]
pub struct RunDirError(#[from] DirError);

#[doc(hidden)]
impl RunDirError {
    /// Returns whether it does not exist.
    pub fn is_missing(&self) -> bool {
        self.0.is_missing()
    }

    /// Returns whether this process has more rights than the owner of the directory.
    pub const fn is_for_rights(&self) -> bool {
        matches!(self.0, DirError::MoreRights { .. })
    }

    /// The underlying error.
    pub(crate) const fn reason(&self) -> &DirError {
        &self.0
    }

    /// The underlying error.
    pub fn into_reason(self) -> DirError {
        self.0
    }
}

impl RunDir {
    /// Finds the run directory; creates it, for this user only, if it does not exist.
    ///
    /// # Errors
    ///
    /// If it cannot be made, is a symbolic link, belongs to another user, or is writable by other users.
    pub fn find() -> Result<Self, RunDirError> {
        Self::at(&Self::place())
    }

    /// Finds the run directory of this process for being controlled by others and for its rings.
    ///
    /// # Errors
    ///
    /// As [`RunDir::find`], and if this process has more rights than the owner of the directory. Nothing is created then.
    #[doc(hidden)]
    pub fn of_traced_process() -> Result<Self, RunDirError> {
        let place = Self::place();
        match Self::open(&place) {
            Err(error) if error.is_missing() => {
                let own = rustix::process::geteuid().as_raw();
                TrustedUsers { path: place.clone(), owner: own, group: None }.check()?;
                Self::at(&place)
            }
            Ok(run_dir) => run_dir.trusted()?.check().map(|()| run_dir),
            refused => refused,
        }
    }

    /// Returns the users to whom a process that uses the directory offers control.
    #[doc(hidden)]
    pub fn trusted(&self) -> Result<TrustedUsers, RunDirError> {
        let stat = self.0.stat().map_err(|error| self.0.failed("open", "", error))?;
        Ok(TrustedUsers { path: self.path().to_owned(), owner: stat.st_uid, group: Some(stat.st_gid) })
    }

    /// Path of the run directory, which may not exist yet.
    #[doc(hidden)]
    pub fn place() -> PathBuf {
        // In a setuid or setgid program, the caller controls the environment and must not choose where the program writes.
        place(|name| if secure() { None } else { env::var_os(name) }, rustix::process::geteuid().as_raw())
    }

    /// Like [`RunDir::find`], for the directory at `path`.
    ///
    /// # Errors
    ///
    /// As [`RunDir::find`].
    pub fn at(path: &Path) -> Result<Self, RunDirError> {
        if path.symlink_metadata().is_err() {
            // The group of an existing directory shows which group its owner may have.
            let own = credentials(path)?;
            own.foreign_group(None).map_or(Ok(()), |excess| Err(more_rights(path, own.user(), excess)))?;
        }
        Ok(Self(PrivateDir::at(path)?))
    }

    /// Opens the directory at `path`, which must exist.
    #[doc(hidden)]
    pub fn open(path: &Path) -> Result<Self, RunDirError> {
        Ok(Self(PrivateDir::open(path)?))
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The open directory.
    #[doc(hidden)]
    pub fn into_dir(self) -> PrivateDir {
        self.0
    }

    /// The directory, open.
    #[doc(hidden)]
    pub const fn dir(&self) -> &PrivateDir {
        &self.0
    }
}

/// The users to whom a process offers control: those who may write to its run directory.
#[derive(Clone, Debug)]
pub struct TrustedUsers {
    path: PathBuf,
    owner: u32,
    /// The group of the directory, if that exists.
    group: Option<u32>,
}

impl TrustedUsers {
    /// Returns whether only root, or users whom root trusts, have control.
    pub const fn is_root(&self) -> bool {
        self.owner == 0
    }

    /// Fails if the calling thread has more rights than these users.
    pub fn check(&self) -> Result<(), RunDirError> {
        self.compare(|own| own)
    }

    /// The same for a process that opens files for these users and has no secrets of its own, such as a process that switched to their ids
    /// for this purpose.
    pub fn check_beside_memory(&self) -> Result<(), RunDirError> {
        self.compare(Credentials::as_dumpable)
    }

    fn compare(&self, of: fn(Credentials) -> Credentials) -> Result<(), RunDirError> {
        if self.is_root() {
            return Ok(());
        }
        let own = of(credentials(&self.path)?);
        let excess = own.beyond(self.owner).or_else(|| own.foreign_group(self.group));
        excess.map_or(Ok(()), |excess| Err(more_rights(&self.path, self.owner, excess)))
    }
}

fn credentials(path: &Path) -> Result<Credentials, RunDirError> {
    let unknown = |error| DirError::Io { action: "find out who may use", path: path.to_owned(), source: error };
    Ok(Credentials::of_this_thread().map_err(unknown)?)
}

fn more_rights(path: &Path, owner: u32, Excess { reason, mend }: Excess) -> RunDirError {
    RunDirError(DirError::MoreRights { path: path.to_owned(), owner, reason, mend })
}

/// Determines the path of the run directory from the environment. An empty variable counts as unset.
pub fn place(variable: impl Fn(&str) -> Option<OsString>, user: u32) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = set("TRACEPOINT_RUN_DIR") {
        return path.into();
    }
    if let Some(list) = set("RUNTIME_DIRECTORY") {
        // systemd separates several directories by colons; the first is used.
        let first = list.as_bytes().split(|byte| *byte == b':').next().unwrap_or_default();
        return OsStr::from_bytes(first).into();
    }
    if let Some(path) = set("XDG_RUNTIME_DIR") {
        return Path::new(&path).join("tracepoint");
    }
    PathBuf::from(format!("/dev/shm/tracepoint-{user}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_in(variables: &[(&str, &str)]) -> PathBuf {
        place(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()), 1000)
    }

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let all = [
            ("TRACEPOINT_RUN_DIR", "/t"),
            ("RUNTIME_DIRECTORY", "/run/a:/run/b"),
            ("XDG_RUNTIME_DIR", "/run/user/1000"),
        ];
        assert_eq!(place_in(&all), Path::new("/t"));
        assert_eq!(place_in(&all[1..]), Path::new("/run/a"));
        assert_eq!(place_in(&all[2..]), Path::new("/run/user/1000/tracepoint"));
        assert_eq!(place_in(&[("TRACEPOINT_RUN_DIR", "")]), Path::new("/dev/shm/tracepoint-1000"));
    }
}
