//! The author of files that name outputs, addresses or programs for a process to open.
//!
//! In a run directory that a group shares, any member can write such a file, and the processes of other members read it. They open the
//! named files with their own rights. They do so only for files written by their own user or by root:
//!
//! ```text
//!   a description is written   ─▶ a new file of its writer, 0640 ─▶ renamed: no other member can change its contents or owner
//!   a description is acted on  ─▶ check of the file that was read: owned by this user or root, and writable by no other user
//! ```
//!
//! A file also names the session that it was written for: a member can move it, but not change that. A process that has more rights than
//! its user acts only on files written by root.

use super::PrivateDir;
use crate::credentials::Credentials;
use crate::group::{group, readable};
use fileguard::CheckedFd;
use rustix::fs::fstat;
use std::fs::File;
use std::io;

/// The result of checking the author of a file: may its targets be opened with the rights of this process?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// It was written by this user or by root; the process trusts both.
    Trusted,
    /// It was written, or can be changed, by this other member of the group, or by the process's own user, who has fewer rights than the
    /// process.
    Other(u32),
    /// It was written for another session, and moved to this one.
    Moved,
}

impl Author {
    /// Returns the author of the file.
    pub fn of(file: &File) -> io::Result<Self> {
        // Without a group, only this user can enter the directory.
        if group().is_none() {
            return Ok(Self::Trusted);
        }
        let stat = fstat(file)?;
        let user = rustix::process::geteuid().as_raw();
        let is_own =
            || Ok::<_, io::Error>(stat.st_uid == user && Credentials::of_this_thread()?.beyond(user).is_none());
        let is_trusted = stat.st_mode & 0o022 == 0 && (stat.st_uid == 0 || is_own()?);
        Ok(if is_trusted { Self::Trusted } else { Self::Other(stat.st_uid) })
    }

    /// The same for a file that states that it was written for the session `found`, and is in the directory of `session`.
    #[must_use]
    pub fn for_session(self, session: &str, found: impl FnOnce() -> Option<String>) -> Self {
        match self {
            Self::Trusted if group().is_some() && found().as_deref() != Some(session) => Self::Moved,
            author => author,
        }
    }

    /// Returns the reason why the targets of the file are not opened.
    pub fn distrust(self) -> String {
        match self {
            Self::Trusted => String::new(),
            Self::Other(author) => format!("user {author} has written or can change its description"),
            Self::Moved => "its description was written for another session".to_owned(),
        }
    }
}

/// Returns the message about targets that are not opened.
pub fn refused(author: Author) -> String {
    let user = rustix::process::geteuid().as_raw();
    let reason = author.distrust();
    format!(
        "it names outputs or programs, and {reason}: they would be opened with the rights of user {user}. Record with \
         `tracectl record`, which writes with your own rights; or have root create the session, or user {user} if the process has no more rights \
         than that user"
    )
}

impl PrivateDir {
    /// Reads the file `name`, which is at most `most` bytes long, and returns its author.
    pub fn read_authored(&self, name: &str, most: u64) -> io::Result<(Vec<u8>, Author)> {
        let file = self.open_file(name)?;
        let author = Author::of(&file)?;
        Ok((Self::read_open(&file, most)?, author))
    }

    /// Writes the file `name` atomically, such that the other members of the group can only read it.
    pub fn put_authored(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put_made(name, bytes, Self::create_readable)
    }

    /// The same, but also works on a full file system, if the file has a spare; the file has a spare afterwards. A file made from the spare
    /// is owned by the spare's creator, and other users do not open its targets.
    pub fn replace_authored(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove_file(&Self::temporary(name));
        self.put_with_spare(name, bytes, Self::put_authored)
    }

    fn create_readable(&self, name: &str, len: u64) -> io::Result<CheckedFd<File>> {
        self.create_unshared(name, len).and_then(|made| readable(&made).map(|()| made))
    }
}
