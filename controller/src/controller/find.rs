//! Finds the run directory of another process, and the process's id in its own pid namespace.

use super::ControlError;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracepoint_reader::process::{self, ProcessKey};
use tracepoint_reader::secure_exec::is_secure;
use tracepoint_run_dir::app::is_held;
use tracepoint_run_dir::credentials::{Credentials, Excess};
use tracepoint_run_dir::layout::APPS;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::rundir::{RunDir, place};

/// Returns the run directory of a process: the one given by its environment, user and root directory; or the one in which its agent has an
/// open entry, if the process has left the former by `setuid` or `chroot`.
pub(super) fn run_dir_of(pid: u32) -> Result<RunDir, ControlError> {
    let Some(key) = key_of(pid) else { return Err(ControlError::NoProcess(pid)) };
    let has_entry = |run_dir: &RunDir| has_entry(run_dir, key);
    match expected_run_dir(pid) {
        Ok(run_dir) if has_entry(&run_dir) => Ok(run_dir),
        // After `setuid`, the environment of a process is hidden from its own user.
        expected => open_run_dir(&proc_of(pid), key)
            .filter(has_entry)
            .or_else(|| RunDir::open(&RunDir::place()).ok().filter(has_entry))
            .map_or_else(
                || if may_be_for_rights(&expected) { more_rights(pid).map_or(expected, Err) } else { expected },
                Ok,
            ),
    }
}

/// Returns whether this result is possible for a process that offers its user no control, because it has more rights.
const fn may_be_for_rights(expected: &Result<RunDir, ControlError>) -> bool {
    use ControlError::{ProcessHidden, ProcessNotTraced, RunDirOfOtherUser};
    matches!(expected, Ok(_) | Err(ProcessHidden { .. } | ProcessNotTraced { .. } | RunDirOfOtherUser { .. }))
}

/// Returns that error, if it is such a process.
fn more_rights(pid: u32) -> Option<ControlError> {
    let credentials = Credentials::of_process(&proc_of(pid)).ok()?;
    let user = credentials.user();
    let Excess { reason, mend } = credentials.beyond(user)?;
    Some(ControlError::ProcessPrivileged { pid, user, reason, mend })
}

/// Returns whether the process has an entry there that it has not left. In another time namespace its start time may be rounded
/// differently.
fn has_entry(run_dir: &RunDir, key: ProcessKey) -> bool {
    run_dir.dir().open_subdir(APPS).is_ok_and(|apps| held_entry(&apps, key).is_some())
}

fn held_entry(apps: &PrivateDir, key: ProcessKey) -> Option<PrivateDir> {
    let is_it = |name: &String| ProcessKey::of_directory(name).is_some_and(|found| found.is_same(key));
    let names = apps.names().ok()?;
    names.iter().filter(|name| is_it(name)).find_map(|name| apps.open_subdir(name).ok().filter(is_held))
}

/// Returns whether the process with this id is the one that made the entry in `apps`: it has the start time in the name of the entry, and the user who
/// owns the entry. It is another process if the entry comes from another pid namespace, or from a user who named a process of somebody else. `None` if
/// there is no such entry, or its process has left it.
pub(super) fn is_of_entry(apps: &PrivateDir, key: ProcessKey) -> Option<bool> {
    let owner = held_entry(apps, key)?.owner().ok();
    let is_it = key_of(key.pid).is_some_and(|found| found.is_same(key));
    Some(is_it && owner.is_some() && owner == user(&proc_of(key.pid)).ok())
}

fn proc_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Returns the run directory of a process, as that process sees it now.
fn expected_run_dir(pid: u32) -> Result<RunDir, ControlError> {
    let proc = proc_of(pid);
    let hidden = |source| ControlError::ProcessHidden { pid, source };
    let (place, user) = (place_of(&proc).map_err(hidden)?, user(&proc).map_err(hidden)?);
    let path = if place.is_absolute() { seen_from(&proc, &place) } else { proc.join("cwd").join(place) };
    match RunDir::open(&path) {
        // The environment is under the control of the process's user. The process has no entry in a directory of another user.
        Ok(run_dir) if !run_dir.dir().is_of(user) => Err(ControlError::ProcessUserChanged { pid, user, run_dir: path }),
        Err(error) if error.is_missing() => Err(ControlError::ProcessNotTraced { pid, run_dir: path }),
        opened => Ok(opened?),
    }
}

/// Returns the run directory that contains the entry which a process has open: `apps/PID-START`.
fn open_run_dir(proc: &Path, key: ProcessKey) -> Option<RunDir> {
    let is_entry = |path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str).and_then(ProcessKey::of_directory);
        name.is_some_and(|name| name.is_same(key)) && path.parent().is_some_and(|apps| apps.ends_with(APPS))
    };
    let mut open = fs::read_dir(proc.join("fd")).ok()?.flatten().map(|entry| entry.path());
    let entry = open.find(|fd| fs::read_link(fd).is_ok_and(|path| is_entry(&path)))?;
    let path = fs::read_link(&entry).ok()?;
    // By its name, if the same directory has this name here.
    let here = path.ancestors().nth(2).and_then(|path| RunDir::open(path).ok());
    here.filter(|run_dir| has_entry(run_dir, key)).or_else(|| RunDir::open(&entry.join("../..")).ok())
}

/// Returns the user of a process, if it differs from the owner of its run directory, so that the process may not use the directory.
pub(super) fn other_user(pid: u32, run_dir: &RunDir) -> Option<u32> {
    user(&proc_of(pid)).ok().filter(|user| *user != 0 && !run_dir.dir().is_of(*user))
}

/// Returns the path of the run directory of the process with this directory in `/proc`, as that process sees it.
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
    Some(ProcessKey::new(own.parse().ok()?, started))
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

/// Returns whether the process shares our root directory and mount namespace.
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
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use tracepoint_run_dir::lock::lock_own;

    #[test]
    fn variables_are_found_by_their_whole_names() {
        let environment = b"XA=0\0A=1\0B=\0C=x=y\0";
        for (name, expected) in [("A", Some("1")), ("B", Some("")), ("C", Some("x=y")), ("D", None), ("X", None)] {
            assert_eq!(value(environment, name), expected.map(OsString::from), "{name}");
        }
    }

    /// Needs root, like the other tests with several users.
    #[test]
    fn an_entry_is_of_a_process_of_its_user_and_pid_namespace() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let run_dir = RunDir::at(temp.path())?;
        let apps = run_dir.dir().subdir(APPS)?;
        let own = ProcessKey::of_this_process();
        let mut other = Command::new("sleep").arg("60").uid(65_532).spawn()?;
        let of_other = key_of(other.id()).ok_or("no process")?;
        // As if it had this id in a pid namespace of its own.
        let elsewhere = ProcessKey::new(own.pid, own.started + 1000);
        for (key, expected) in [(own, true), (of_other, false), (elsewhere, false)] {
            assert_eq!(is_of_entry(&apps, key), None);
            let entry = apps.make_subdir(&key.to_string())?;
            let _lock = lock_own(&apps, &key.to_string(), &entry)?.ok_or("no lock")?;
            assert_eq!(is_of_entry(&apps, key), Some(expected), "{key}");
        }
        other.kill()?;
        other.wait()?;
        Ok(())
    }

    #[test]
    fn this_process_is_found_by_its_id() {
        assert_eq!(key_of(std::process::id()), Some(ProcessKey::of_this_process()));
        assert!(matches!(run_dir_of(u32::MAX), Err(ControlError::NoProcess { .. })));
    }
}
