//! Root, acting as another user where that one's files are, and as itself where its own are.
//!
//! Linux has users for each thread, and that is what is changed here. The real and the saved one stay root's, so that the thread can go
//! back; nothing of another user's is run with them.

use crate::secure_exec::secure;
use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::process;
use std::sync::Arc;

/// As whom a thread acts: as this process, or as another user with whose processes it deals.
#[derive(Clone, Debug, Default)]
pub struct Rights(Option<Arc<Other>>);

/// Another user, and the groups of this process.
#[derive(Debug)]
struct Other {
    user: Uid,
    group: Gid,
    own_group: Gid,
    own_groups: Vec<Gid>,
}

/// The thread acts as the other user again when this is dropped.
struct Back<'a>(&'a Other);

impl Rights {
    /// The calling thread acts as this user from here on, with this group and no others, and as root where it is told to: so do the threads
    /// that it starts.
    ///
    /// # Errors
    ///
    /// If this process is not root's.
    pub fn beside_root(user: u32, group: u32) -> io::Result<Self> {
        if !geteuid().is_root() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "only root can act as another user"));
        }
        secure();
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        let other = Other { user, group, own_group: getegid(), own_groups: getgroups()? };
        other.enter()?;
        Ok(Self(Some(Arc::new(other))))
    }

    /// Acts as this process itself for a while.
    ///
    /// # Panics
    ///
    /// Ends the process if the thread cannot be the other user again: it must not go on as root.
    pub fn as_self<R>(&self, act: impl FnOnce() -> R) -> R {
        let _back = self.0.as_deref().map(|other| {
            // What is then not allowed fails by itself.
            let _ = other.leave();
            Back(other)
        });
        act()
    }
}

impl Other {
    fn enter(&self) -> io::Result<()> {
        set_thread_groups(&[self.group])?;
        set_thread_res_gid(None, self.group, None)?;
        Ok(set_thread_res_uid(None, self.user, None)?)
    }

    fn leave(&self) -> io::Result<()> {
        set_thread_res_uid(None, Uid::ROOT, None)?;
        set_thread_res_gid(None, self.own_group, None)?;
        Ok(set_thread_groups(&self.own_groups)?)
    }
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        if self.0.enter().is_err() {
            process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// Needs to be root, as other tests that play several users.
    #[test]
    fn a_thread_is_two_users() {
        let play = || {
            let temp = tempfile::tempdir_in("/dev/shm").expect("a directory");
            std::fs::set_permissions(temp.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
                .expect("open to all");
            let owner = |name: &str| {
                let path = temp.path().join(name);
                std::fs::write(&path, "").map(|()| path.metadata().map(|file| (file.uid(), file.gid())))
            };
            let rights = Rights::beside_root(65_532, 65_533).expect("root");
            assert_eq!(owner("user").expect("made").expect("there"), (65_532, 65_533));
            assert_eq!(rights.as_self(|| owner("root")).expect("made").expect("there"), (0, 0));
            assert_eq!(owner("again").expect("made").expect("there"), (65_532, 65_533));
            // A thread of its own is both, too.
            let inside = std::thread::scope(|scope| {
                let rights = rights.clone();
                scope.spawn(move || (geteuid().as_raw(), rights.as_self(|| geteuid().as_raw()))).join().expect("ended")
            });
            assert_eq!(inside, (65_532, 0));
            assert!(Rights::beside_root(1, 1).is_err(), "it is not root now");
            rights.as_self(|| drop(temp));
        };
        // Not on the thread of the other tests.
        std::thread::spawn(play).join().expect("as it should be");
        assert_eq!(Rights::default().as_self(geteuid), geteuid());
    }
}
