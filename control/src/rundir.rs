//! The run directory: where the processes of a user find each other.

use rustix::fs::{Mode, OFlags};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory of this user alone, on which the user's processes agree: `$TRACEPOINT_RUN_DIR`, else systemd's
/// `$RUNTIME_DIRECTORY`, else `$XDG_RUNTIME_DIR/tracepoint`, else `/dev/shm/tracepoint-UID`.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    fd: OwnedFd,
}

/// The run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// It belongs to somebody else.
    #[error("{} belongs to user {owner}, not to {user}; name another one in TRACEPOINT_RUN_DIR", path.display())]
    Owner {
        /// The directory.
        path: PathBuf,
        /// Its owner's id.
        owner: u32,
        /// The id of this process's user.
        user: u32,
    },
    /// Others may write to it.
    #[error("others may write to {}; take that right away (`chmod go-w`), or name another one in TRACEPOINT_RUN_DIR", path.display())]
    Writable {
        /// The directory.
        path: PathBuf,
    },
    /// It cannot be made or opened; a symbolic link, too, is not followed.
    #[error("cannot {action} {}: {source}; name another directory in TRACEPOINT_RUN_DIR", path.display())]
    Io {
        /// What was tried: `make`, `open`.
        action: &'static str,
        /// The directory.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

impl RunDir {
    /// Finds the run directory, and makes it, for this user only, if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be made, is a symbolic link, belongs to another user, or is open for others to write.
    pub fn find() -> Result<Self, RunDirError> {
        Self::at(&place(|name| env::var_os(name), rustix::process::geteuid().as_raw()))
    }

    /// The same with the directory at `path`.
    ///
    /// # Errors
    ///
    /// As [`RunDir::find`].
    pub fn at(path: &Path) -> Result<Self, RunDirError> {
        let failed = |action, source| RunDirError::Io { action, path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| failed("make", error))?;
        // The last component is opened, not followed: in a directory like /dev/shm anybody could have put a link there.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| failed("open", errno.into()))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| failed("open", errno.into()))?;
        let user = rustix::process::geteuid().as_raw();
        if stat.st_uid != user {
            return Err(RunDirError::Owner { path: path.to_owned(), owner: stat.st_uid, user });
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(RunDirError::Writable { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), fd })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory, open.
    pub(crate) const fn fd(&self) -> &OwnedFd {
        &self.fd
    }
}

/// Where the run directory is, from the environment. An empty variable counts as none.
fn place(variable: impl Fn(&str) -> Option<OsString>, user: u32) -> PathBuf {
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

    #[test]
    fn a_directory_of_doubtful_ownership_is_refused() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let temp = tempfile::tempdir()?;
        let made = temp.path().join("a/b");
        assert_eq!(RunDir::at(&made)?.path(), made);
        assert_eq!(std::fs::metadata(&made)?.permissions().mode() & 0o777, 0o700);

        let link = temp.path().join("link");
        symlink(&made, &link)?;
        assert!(matches!(RunDir::at(&link), Err(RunDirError::Io { action: "open", .. })));

        std::fs::set_permissions(&made, PermissionsExt::from_mode(0o777))?;
        assert!(matches!(RunDir::at(&made), Err(RunDirError::Writable { .. })));
        Ok(())
    }
}
