//! The process that dumps core, as visible in `/proc`, and acting with its rights.

use crate::controller::find;
use crate::trigger::CoreDump;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, chroot, fchdir, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use tracepoint_run_dir::rundir;

const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The data needed to act as the process. They are read before the core image, because the process ends after that.
#[derive(Debug)]
pub(super) struct Dumper {
    user: Uid,
    group: Gid,
    groups: Vec<Gid>,
    /// The path of its run directory, as seen by the process.
    run_dir: PathBuf,
    /// Its working directory, for a relative path.
    cwd: Option<OwnedFd>,
    /// Its root directory, if it differs from ours.
    root: Option<OwnedFd>,
}

impl Dumper {
    /// Reads `/proc`. If the process has ended already, which is possible if its core image is small, uses the user's usual run directory.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub(super) fn read(core: &CoreDump) -> io::Result<Self> {
        match open(format!("/proc/{}", core.pid), DIR, Mode::empty()) {
            Ok(dir) => {
                // Through this path, all files belong to this process, even if its id is reused meanwhile.
                let proc = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
                match Self::of_directory(core, &proc, &dir) {
                    Err(error) if is_gone(&error) => Ok(Self::without_process(core)),
                    read => read,
                }
            }
            Err(Errno::NOENT) => Ok(Self::without_process(core)),
            Err(errno) => Err(errno.into()),
        }
    }

    fn of_directory(core: &CoreDump, proc: &Path, dir: &OwnedFd) -> io::Result<Self> {
        let status = fs::read_to_string(proc.join("status"))?;
        let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
        let groups = groups.split_whitespace().filter_map(|group| group.parse().ok().map(Gid::from_raw)).collect();
        let run_dir = find::place_of(proc)?;
        let cwd = if run_dir.is_relative() { Some(openat(dir, "cwd", DIR, Mode::empty())?) } else { None };
        let root = if find::has_our_root(proc) { None } else { Some(openat(dir, "root", DIR, Mode::empty())?) };
        Ok(Self { user: Uid::from_raw(core.uid), group: Gid::from_raw(core.gid), groups, run_dir, cwd, root })
    }

    fn without_process(core: &CoreDump) -> Self {
        let runtime = PathBuf::from(format!("/run/user/{}", core.uid));
        let variable = |name: &str| (name == "XDG_RUNTIME_DIR" && runtime.is_dir()).then(|| runtime.clone().into());
        let run_dir = rundir::place(variable, core.uid);
        let (user, group) = (Uid::from_raw(core.uid), Gid::from_raw(core.gid));
        Self { user, group, groups: vec![group], run_dir, cwd: None, root: None }
    }

    /// Gives this process the root directory, user and groups of the dumping process, irrevocably; returns the path of the run directory
    /// from there. This process must have one thread.
    ///
    /// In another root directory no path leads outside, whatever symbolic links its user has created; therefore root in a container cannot
    /// access anything outside.
    ///
    /// # Errors
    ///
    /// If this process runs as another user, and not as root.
    pub(super) fn enter(self) -> io::Result<PathBuf> {
        if getuid().is_root() {
            if let Some(root) = &self.root {
                fchdir(root)?;
                chroot(".")?;
            }
            if let Some(cwd) = &self.cwd {
                fchdir(cwd)?;
            }
            set_thread_groups(&self.groups)?;
            set_thread_res_gid(self.group, self.group, self.group)?;
            set_thread_res_uid(self.user, self.user, self.user)?;
            if self.root.is_some() {
                // Root in a container has a few of them. For other users the kernel has removed them.
                let none = CapabilitySet::empty();
                set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
            }
        } else if getuid() != self.user || self.root.is_some() {
            return Err(Errno::PERM.into());
        } else if let Some(cwd) = &self.cwd {
            fchdir(cwd)?;
        }
        set_no_new_privs(true)?;
        Ok(self.run_dir)
    }
}

/// Returns whether a file of a process could not be read because the process has ended.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(pid: u32) -> CoreDump {
        CoreDump::new(pid, getuid().as_raw(), rustix::process::getgid().as_raw(), "tool", "host")
    }

    #[test]
    fn a_process_is_read_while_it_is_there() {
        let dumper = Dumper::read(&core(std::process::id())).expect("it can be read");
        assert_eq!(dumper.run_dir, rundir::RunDir::place());
        assert!(dumper.root.is_none());
    }

    #[test]
    fn of_a_process_that_is_gone_the_usual_run_directory_is_taken() {
        let dumper = Dumper::read(&core(u32::MAX)).expect("that is no error");
        assert!(dumper.run_dir.is_absolute() && dumper.cwd.is_none(), "{dumper:?}");
    }
}
