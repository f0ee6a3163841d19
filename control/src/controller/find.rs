//! Finds the run directory of another process, and the process's id in its own pid namespace.

use super::ControlError;
use crate::process::{self, ProcessKey};
use crate::rundir::{RunDir, place};
use crate::secure_exec::is_secure;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The run directory of a process, as that process sees it.
pub(super) fn run_dir_of(pid: u32) -> Result<RunDir, ControlError> {
    if process::started_at(pid).is_none() {
        return Err(ControlError::NoProcess { pid });
    }
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let hidden = |source| ControlError::Hidden { pid, source };
    let (place, user) = (place_of(&proc).map_err(hidden)?, user(&proc).map_err(hidden)?);
    let path = if place.is_absolute() { seen_from(&proc, &place) } else { proc.join("cwd").join(place) };
    match RunDir::open(&path) {
        // The environment is under the control of its user. The process has no entry in a directory of another user.
        Ok(run_dir) if !run_dir.is_of(user) => Err(ControlError::NotTraced { pid, run_dir: path }),
        Err(error) if error.is_missing() => Err(ControlError::NotTraced { pid, run_dir: path }),
        opened => Ok(opened?),
    }
}

/// The path of the run directory of the process with this directory in `/proc`, as that process sees it.
pub(crate) fn place_of(proc: &Path) -> io::Result<PathBuf> {
    let environment = fs::read(proc.join("environ"))?;
    let secure = is_secure(proc);
    let variable = |name: &str| if secure { None } else { value(&environment, name) };
    Ok(place(variable, user(proc)?))
}

/// The key of the process in its own pid namespace.
pub(super) fn key_of(pid: u32) -> Option<ProcessKey> {
    let started = process::started_at(pid)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?;
    Some(ProcessKey { pid: own.parse().ok()?, started })
}

/// The value of a variable in an environment of NUL-terminated strings.
fn value(environment: &[u8], name: &str) -> Option<OsString> {
    let mut strings = environment.split(|byte| *byte == 0);
    let found = strings.find_map(|string| string.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsStr::from_bytes(found).to_owned())
}

/// The process's effective user. The owner of `/proc/PID` is root for a process that is not dumpable.
fn user(proc: &Path) -> io::Result<u32> {
    let status = fs::read_to_string(proc.join("status"))?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = ids.and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
    effective.ok_or_else(|| io::Error::other("its status file has no user id"))
}

/// Whether the process shares our root directory and mount namespace.
pub(crate) fn has_our_root(proc: &Path) -> bool {
    let id = |path: PathBuf| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let same = |name| id(proc.join(name)).is_some_and(|its| Some(its) == id(Path::new("/proc/self").join(name)));
    same("root") && same("ns/mnt")
}

/// Translates a path of the process: unchanged if the process shares our root and mount namespace, otherwise through `/proc/PID/root`.
fn seen_from(proc: &Path, path: &Path) -> PathBuf {
    if has_our_root(proc) {
        return path.to_owned();
    }
    proc.join("root").join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_whole_names() {
        let environment = b"XA=0\0A=1\0B=\0C=x=y\0";
        for (name, expected) in [("A", Some("1")), ("B", Some("")), ("C", Some("x=y")), ("D", None), ("X", None)] {
            assert_eq!(value(environment, name), expected.map(OsString::from), "{name}");
        }
    }

    #[test]
    fn this_process_is_found_by_its_id() {
        assert_eq!(key_of(std::process::id()), Some(ProcessKey::of_this_process()));
        assert!(matches!(run_dir_of(u32::MAX), Err(ControlError::NoProcess { .. })));
    }
}
