//! Decides which processes offer control to which users.
//!
//! A user who may write to the run directory of a process can make it open files and addresses, and sees its recordings. A process offers
//! this only to users who could get the same by a debugger. The rule is that of the kernel for `ptrace` (`PTRACE_MODE_ATTACH_FSCREDS` in
//! `ptrace(2)`), where the debugger is a user without capabilities. For a run directory of user U, it is:
//!
//! ```text
//!   U is root                                                 ─▶ offered: root may do everything
//!   the real, effective or saved users differ, or are root's  ─▶ not offered
//!   the real, effective or saved groups differ                ─▶ not offered
//!   a permitted capability                                    ─▶ not offered (ambient ones are permitted ones)
//!   not dumpable                                              ─▶ not offered
//!   the group is not one of its user                          ─▶ not offered: U could not have it by `newgrp`, either
//!   otherwise                                                 ─▶ offered
//! ```
//!
//! Members of the group in `TRACEPOINT_GROUP` get the same control as the owner of the directory. Only a user who can start the process
//! with all its rights can set this variable, because programs that gain rights ignore it.
//!
//! **When.** An agent checks the rule before it creates anything; whenever it is woken, before it reads files that controllers have
//! written; and once a second while it records for them. If the rule no longer holds, the agent leaves the run directory permanently. After
//! `execve`, the new program starts its own agent.
//!
//! **Threads.** Linux has credentials per thread. The agent checks its own: its thread, and those that it starts, open the files that
//! controllers name. If the rule holds for that thread, a debugger may attach to it, and can then access the memory of all threads. If a
//! thread changes its ids by a system call of its own, the whole process becomes not dumpable.
//!
//! **Groups.** Only a process whose group is one of its user, according to the user database, creates a run directory. Therefore the owner
//! of a directory may have the directory's group, and a process of that group need not query the database again. In containers, many users
//! have no entry there. Such a user may have the group with its own number, and group 0, with which containers are started, unless the
//! process gained it by `execve`.

use crate::users::{Group, User, own_ids};
use rustix::process::{DumpableBehavior, dumpable_behavior, getgroups};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tracepoint_reader::secure_exec::secure;

/// The credentials of a thread: the calling one, or the first one of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Real, effective and saved.
    users: [u32; 3],
    groups: [u32; 3],
    permitted: CapabilitySet,
    is_dumpable: bool,
}

/// A right that the owner of a run directory does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The right, as the end of "who may not debug this process: ".
    pub reason: String,
    /// Advice for the user.
    pub mend: &'static str,
}

const IDS: &str = "start the agent in a program that has one user and one group, for example a child that has called `execve` without the other ids";
const NO_ROOT: &str = "give it a run directory that belongs to root (`TRACEPOINT_RUN_DIR`), shared with the group (`TRACEPOINT_GROUP`) if others are to control it";
const CAPABILITIES: &str = "start the agent when they are dropped, do without them (ports below 1024: `net.ipv4.ip_unprivileged_port_start`, or a \
                            socket of systemd), or give it a run directory that belongs to root and is shared with a group of its user \
                            (`TRACEPOINT_RUN_DIR` and `TRACEPOINT_GROUP`, which programs of `setcap` ignore)";
const DUMPABLE: &str = "have it started as its user (`User=` in a unit) rather than change its user itself or, if that user may see its memory, call \
                        `prctl(PR_SET_DUMPABLE, 1)` before the agent starts";
const GROUP: &str = "start it with a group of its user, make the user a member, or have root make the run directory for this user and group \
                     (`RuntimeDirectory=` in a unit)";

impl Credentials {
    /// Returns the credentials of the calling thread.
    ///
    /// # Errors
    ///
    /// If a system call is not permitted.
    pub fn of_this_thread() -> io::Result<Self> {
        let [users, groups] = own_ids()?;
        Ok(Self {
            users,
            groups,
            permitted: capabilities(None)?.permitted,
            is_dumpable: dumpable_behavior()? == DumpableBehavior::Dumpable,
        })
    }

    /// Returns the credentials of the process with this directory in `/proc`. It does not show whether a process of root is dumpable.
    ///
    /// # Errors
    ///
    /// If its `status` file cannot be read.
    pub fn of_process(proc: &Path) -> io::Result<Self> {
        let status = fileguard::read_to_string(proc.join("status"))?;
        let incomplete = || io::Error::other("its status file is incomplete");
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).ok_or_else(incomplete);
        let ids = |name: &str| {
            let all = line(name)?.split_whitespace().map_while(|id| id.parse::<u32>().ok()).collect::<Vec<_>>();
            all.get(..3).and_then(|ids| <[u32; 3]>::try_from(ids).ok()).ok_or_else(incomplete)
        };
        let users = ids("Uid:")?;
        let permitted = u64::from_str_radix(line("CapPrm:")?.trim(), 16).map_err(io::Error::other)?;
        Ok(Self {
            users,
            groups: ids("Gid:")?,
            permitted: CapabilitySet::from_bits_retain(permitted),
            // The kernel assigns the files of processes that are not dumpable to root.
            is_dumpable: fs::metadata(proc.join("status"))?.uid() == users[1],
        })
    }

    /// Returns the same rights as dumpable, for a process whose memory holds no secrets.
    pub(crate) const fn as_dumpable(self) -> Self {
        Self { is_dumpable: true, ..self }
    }

    /// Its effective user.
    pub const fn user(&self) -> u32 {
        self.users[1]
    }

    /// Returns its user, if real, effective and saved users are the same.
    pub fn only_user(&self) -> Option<u32> {
        self.users.iter().all(|user| *user == self.users[0]).then_some(self.users[0])
    }

    /// Returns a right that the user `owner` does not have; groups are not looked up.
    pub fn beyond(&self, owner: u32) -> Option<Excess> {
        let excess = |reason: String, mend| Some(Excess { reason, mend });
        let differ = |ids: &[u32; 3]| ids.iter().any(|id| *id != ids[0]);
        let [real, effective, saved] = self.users;
        if owner == 0 {
            None
        } else if differ(&self.users) {
            excess(format!("its real, effective and saved users are {real}, {effective} and {saved}"), IDS)
        } else if real == 0 {
            excess("it is root's".to_owned(), NO_ROOT)
        } else if differ(&self.groups) {
            let [real, effective, saved] = self.groups;
            excess(format!("its real, effective and saved groups are {real}, {effective} and {saved}"), IDS)
        } else if !self.permitted.is_empty() {
            let mut names = self.permitted.iter_names();
            let mut known: Vec<_> =
                names.by_ref().map(|(name, _)| format!("cap_{}", name.to_ascii_lowercase())).collect();
            // Capabilities of a newer kernel.
            known.extend((!names.remaining().is_empty()).then(|| format!("{:#x}", names.remaining().bits())));
            excess(format!("it has capabilities ({})", known.join(", ")), CAPABILITIES)
        } else if !self.is_dumpable {
            let text = "it is not dumpable: it has changed its ids, was started with more rights or from a file that may not be read, or has \
                        asked for that (`prctl(PR_SET_DUMPABLE)`)";
            excess(text.to_owned(), DUMPABLE)
        } else {
            None
        }
    }

    /// Returns the effective group of the calling thread as an excess, if its user may not have it. `of_dir` is the group of the user's run
    /// directory, if that exists.
    pub(crate) fn foreign_group(&self, of_dir: Option<u32>) -> Option<Excess> {
        let (user, group) = (self.users[1], self.groups[1]);
        if user == 0 || of_dir == Some(group) {
            return None;
        }
        let reason = match is_group_of(user, group) {
            Ok(Some(true)) => return None,
            // A volume of a container may belong to a supplementary group of the process.
            Ok(None) if [user, 0].contains(&group) && !secure() && of_dir.is_none_or(is_own_group) => return None,
            Ok(_) => format!("its group {group} is none of user {user}"),
            Err(error) => format!("whether user {user} may have its group {group} cannot be looked up: {error}"),
        };
        Some(Excess { reason, mend: GROUP })
    }
}

/// Returns whether the process has this group as a supplementary group.
fn is_own_group(group: u32) -> bool {
    getgroups().is_ok_and(|groups| groups.iter().any(|own| own.as_raw() == group))
}

/// Returns whether the user may have the group; `None` if the user is not in the user database. The last answer is cached: the agent asks
/// whenever it is woken, and the database may be remote.
fn is_group_of(user: u32, group: u32) -> io::Result<Option<bool>> {
    static LAST: Mutex<Option<(u32, u32, Option<bool>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, is_of)) = last.filter(|(u, g, _)| (*u, *g) == (user, group)) {
        return Ok(is_of);
    }
    let is_of = match User::by_id(user)? {
        None => None,
        Some(entry) if entry.gid == group => Some(true),
        Some(entry) => Some(Group::by_id(group)?.is_some_and(|group| group.members.contains(&entry.name))),
    };
    *last = Some((user, group, is_of));
    Ok(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Credentials =
        Credentials { users: [7; 3], groups: [8; 3], permitted: CapabilitySet::empty(), is_dumpable: true };

    #[test]
    fn more_rights_than_the_owner_are_named() {
        let odd = CapabilitySet::from_bits_retain(1 << 60) | CapabilitySet::NET_BIND_SERVICE;
        for (credentials, word) in [
            (Credentials { users: [7, 7, 0], ..PLAIN }, "users are 7, 7 and 0"),
            (Credentials { users: [9, 7, 7], ..PLAIN }, "users are 9, 7 and 7"),
            (Credentials { users: [0; 3], ..PLAIN }, "root's"),
            (Credentials { groups: [8, 42, 42], ..PLAIN }, "groups are 8, 42 and 42"),
            (Credentials { permitted: CapabilitySet::DAC_OVERRIDE, ..PLAIN }, "(cap_dac_override)"),
            (Credentials { permitted: odd, ..PLAIN }, "(cap_net_bind_service, 0x1000000000000000)"),
            (Credentials { is_dumpable: false, ..PLAIN }, "not dumpable"),
        ] {
            let excess = credentials.beyond(7).expect(word);
            assert!(excess.reason.contains(word), "{excess:?}");
            assert_eq!(credentials.beyond(0), None, "{word}");
        }
        assert_eq!(PLAIN.beyond(7), None);
    }

    #[test]
    fn the_files_of_a_process_tell_the_same() {
        let own = Credentials::of_this_thread().expect("they can be read");
        assert_eq!(Credentials::of_process(Path::new("/proc/thread-self")).expect("they can be read"), own);
        assert_eq!(own.only_user(), Some(own.user()));
    }

    /// `nobody` exists on every system, and is not a member of root's group.
    #[test]
    fn groups_of_others_are_found_in_the_database() {
        let nobody = User::by_name("nobody").expect("a database").expect("an entry");
        let of = |group| Credentials { users: [nobody.uid; 3], groups: [group; 3], ..PLAIN };
        let own = nobody.gid;
        assert_eq!(of(own).foreign_group(None), None);
        let excess = of(0).foreign_group(Some(own)).expect("another group");
        assert!(excess.reason.contains("its group 0 is none of user"), "{excess:?}");
        assert_eq!(of(0).foreign_group(Some(0)), None, "the directory has it");
        // A user without an entry: its group is that of the process, or that of a directory on a volume.
        let unknown = |group| Credentials { users: [3_999_999_999; 3], ..of(group) };
        for (group, of_dir, is_foreign) in [
            (0, None, false),
            (3_999_999_999, None, false),
            (0, Some(3_999_999_999), true),
            (42, None, true),
            (42, Some(42), false),
        ] {
            assert_eq!(unknown(group).foreign_group(of_dir).is_some(), is_foreign, "{group} {of_dir:?}");
        }
    }
}
