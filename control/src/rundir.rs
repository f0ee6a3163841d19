//! The run directory: where the processes of a user find each other.

use crate::private_dir::{DirError, PrivateDir};
use crate::secure_exec::secure;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A directory of this user alone, on which the user's processes agree: `$TRACEPOINT_RUN_DIR`, else systemd's
/// `$RUNTIME_DIRECTORY`, else `$XDG_RUNTIME_DIR/tracepoint`, else `/dev/shm/tracepoint-UID`.
#[derive(Debug)]
pub struct RunDir(PrivateDir);

/// The run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}; name another run directory in TRACEPOINT_RUN_DIR")]
pub struct RunDirError(#[from] DirError);

impl RunDirError {
    /// Whether it is not there.
    pub(crate) fn is_missing(&self) -> bool {
        self.0.is_missing()
    }

    /// What is wrong with it.
    pub(crate) fn into_reason(self) -> DirError {
        self.0
    }
}

impl RunDir {
    /// Finds the run directory, and makes it, for this user only, if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be made, is a symbolic link, belongs to another user, or is open for others to write.
    pub fn find() -> Result<Self, RunDirError> {
        Self::at(&Self::place())
    }

    /// Where it is, or is to be.
    pub(crate) fn place() -> PathBuf {
        // Who may set the environment of a program with more rights is not who may say where it writes.
        place(|name| if secure() { None } else { env::var_os(name) }, rustix::process::geteuid().as_raw())
    }

    /// The same with the directory at `path`.
    ///
    /// # Errors
    ///
    /// As [`RunDir::find`].
    pub fn at(path: &Path) -> Result<Self, RunDirError> {
        Ok(Self(PrivateDir::at(path)?))
    }

    /// The same without making it.
    pub(crate) fn open(path: &Path) -> Result<Self, RunDirError> {
        Ok(Self(PrivateDir::open(path)?))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The directory, open.
    pub(crate) const fn fd(&self) -> &OwnedFd {
        self.0.fd()
    }

    /// The directory `name` in it, which must be there.
    pub(crate) fn open_subdir(&self, name: &str) -> Result<PrivateDir, DirError> {
        self.0.open_subdir(name)
    }

    /// Whether it is that of a user, or of the group whose members share it.
    pub(crate) fn is_of(&self, user: u32) -> bool {
        self.0.is_of(user).unwrap_or(false)
    }

    /// The directory `name` in it; if it is not there it is made.
    pub(crate) fn subdir(&self, name: &str) -> Result<PrivateDir, DirError> {
        self.0.subdir(name)
    }
}

/// Where the run directory is, from the environment. An empty variable counts as none.
pub(crate) fn place(variable: impl Fn(&str) -> Option<OsString>, user: u32) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = set("TRACEPOINT_RUN_DIR") {
        return path.into();
    }
    if let Some(list) = set("RUNTIME_DIRECTORY") {
        // systemd separates several directories by colons; the first is ours.
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
