//! The living traced processes, each with a pidfd that reports its end.

use super::death::Death;
use crate::described::is_alive_in;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::private_dir::PrivateDir;

#[derive(Debug)]
pub(super) struct ProcessEnd {
    /// The name of its entry in `apps/`.
    pub(super) entry: String,
    pub(super) pid: u32,
    pub(super) death: Death,
}

/// The processes, by the names of their entries.
#[derive(Debug, Default)]
pub(super) struct Processes {
    known: BTreeMap<String, TrackedProcess>,
    /// Entries of processes whose end is known.
    over: BTreeSet<String>,
}

#[derive(Debug)]
struct TrackedProcess {
    key: ProcessKey,
    /// `None` if the process is in another pid namespace, or there was no descriptor: its lock is checked instead.
    handle: Option<OwnedFd>,
    /// True if its lock was free at the last check. An agent creates its entry before it locks it.
    was_free: bool,
}

impl Processes {
    /// Returns the pidfds of all processes that have one.
    pub(super) fn handles(&self) -> impl Iterator<Item = &OwnedFd> {
        self.known.values().filter_map(|known| known.handle.as_ref())
    }

    /// Removes and returns the processes whose pidfds are ready, in the order of [`Processes::handles`].
    pub(super) fn take_ended(&mut self, ready: &[bool]) -> Vec<ProcessEnd> {
        let with_handle = self.known.iter().filter(|(_, known)| known.handle.is_some()).map(|(entry, _)| entry);
        let ended: Vec<_> =
            with_handle.zip(ready).filter(|(_, ready)| **ready).map(|(entry, _)| entry.clone()).collect();
        ended.into_iter().filter_map(|entry| self.end(&entry)).collect()
    }

    /// Looks for new entries in `apps`, and for processes without a handle that have ended.
    pub(super) fn look(&mut self, apps: &PrivateDir) -> Vec<ProcessEnd> {
        let Ok(names) = apps.names() else { return Vec::new() };
        let names: BTreeSet<_> = names.into_iter().collect();
        self.over.retain(|entry| names.contains(entry));
        for entry in &names {
            let Some(key) = ProcessKey::of_directory(entry) else { continue };
            if !self.known.contains_key(entry) && !self.over.contains(entry) {
                self.known.insert(entry.clone(), TrackedProcess { key, handle: handle_of(key), was_free: false });
            }
        }
        // Processes without a pidfd are checked by their locks. A missing entry was removed because its process had ended.
        let is_over = |entry: &str| !is_alive_in(apps, entry);
        let mut ended = Vec::new();
        for (entry, known) in self.known.iter_mut().filter(|(_, known)| known.handle.is_none()) {
            if is_over(entry) && std::mem::replace(&mut known.was_free, true) {
                ended.push(entry.clone());
            }
        }
        ended.into_iter().filter_map(|entry| self.end(&entry)).collect()
    }

    /// Ignores the processes that have ended already.
    pub(super) fn ignore_ended(&mut self) {
        let Self { known, over } = self;
        known.retain(|entry, known| {
            if known.was_free {
                over.insert(entry.clone());
            }
            !known.was_free
        });
    }

    fn end(&mut self, entry: &str) -> Option<ProcessEnd> {
        let TrackedProcess { key, handle, .. } = self.known.remove(entry)?;
        self.over.insert(entry.to_owned());
        let death = handle.map_or(Death::Unknown, |handle| Death::of(&handle, key.pid, key.started));
        Some(ProcessEnd { entry: entry.to_owned(), pid: key.pid, death })
    }
}

/// Returns a pidfd of the process, if it is in this pid namespace and alive.
fn handle_of(key: ProcessKey) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(key.pid).ok()?)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Its id may have been reused for another process, here or in its own namespace.
    key.exists().then_some(handle)
}
