//! Lets root act as another user while accessing that user's files, and as root for its own.
//!
//! Linux has credentials per thread; only the effective ids of the thread are changed. The real and the saved ids remain root's, so that
//! the thread can switch back. No program is executed as the other user meanwhile.

use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::process;
use std::sync::Arc;
use tracepoint_reader::secure_exec::secure;

/// The credentials of a thread: the process's own, or another user's.
#[derive(Clone, Debug, Default)]
pub struct Rights(Option<Arc<OtherUser>>);

/// Another user's ids, and the groups of this process.
#[derive(Debug)]
struct OtherUser {
    user: Uid,
    group: Gid,
    own_group: Gid,
    own_groups: Vec<Gid>,
}

/// Makes the thread act as the other user again when dropped.
struct SwitchBack<'a>(&'a OtherUser);

impl Rights {
    /// The calling thread acts as `user` from now on, with `group` as its only group, and as root only inside `as_self`. Threads that it
    /// starts inherit this.
    ///
    /// # Errors
    ///
    /// If this process does not run as root.
    pub fn beside_root(user: u32, group: u32) -> io::Result<Self> {
        if !geteuid().is_root() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "only root can act as another user"));
        }
        secure();
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        let other = OtherUser { user, group, own_group: getegid(), own_groups: getgroups()? };
        other.enter()?;
        Ok(Self(Some(Arc::new(other))))
    }

    /// Returns whether the calling thread acts as another user than this process.
    #[doc(hidden)]
    pub const fn are_of_another_user(&self) -> bool {
        self.0.is_some()
    }

    /// Runs `act` with the credentials of this process.
    ///
    /// # Panics
    ///
    /// Aborts the process if the thread cannot switch back to the other user: it must not continue as root.
    pub fn as_self<R>(&self, act: impl FnOnce() -> R) -> R {
        let _back = self.0.as_deref().map(|other| {
            // If the switch fails, operations that need root fail with their own errors.
            let _ = other.leave();
            SwitchBack(other)
        });
        act()
    }
}

impl OtherUser {
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

impl Drop for SwitchBack<'_> {
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

    /// Needs root, like the other tests with several users.
    #[test]
    fn a_thread_switches_between_two_users() {
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
            // A thread started here inherits both identities.
            let inside = std::thread::scope(|scope| {
                let rights = rights.clone();
                scope.spawn(move || (geteuid().as_raw(), rights.as_self(|| geteuid().as_raw()))).join().expect("ended")
            });
            assert_eq!(inside, (65_532, 0));
            assert!(Rights::beside_root(1, 1).is_err(), "it is not root now");
            rights.as_self(|| drop(temp));
        };
        // On a separate thread: the test runner reuses this one.
        std::thread::spawn(play).join().expect("as it should be");
        assert_eq!(Rights::default().as_self(geteuid), geteuid());
    }
}
