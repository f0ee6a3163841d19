//! Files that name what a process is to open: outputs, addresses, programs.
//!
//! In a run directory that a group shares, any member can write such a file, and the processes of another one read it. They open what it names with
//! their own rights. That is done for the process's own user and for root only:
//!
//! ```text
//!   a description is written   ─▶ a new file of its writer, 0640 ─▶ renamed: no other member can change what it says, or whose it is
//!   a description is acted on  ─▶ the file that was read: of this user or of root, and nobody else may write to it?
//! ```
//!
//! A file also says for which session it was written: a member can move it, and cannot change that. A process that has more rights than its user
//! acts on what root has written only.

use super::{PrivateDir, is_no_room};
use crate::credentials::Credentials;
use crate::group::{group, readable};
use fileguard::Checked;
use rustix::fs::fstat;
use std::fs::File;
use std::io;

/// Whether what a file names may be opened with the rights of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// It was written by this user or by root, whom the process serves anyway.
    Trusted,
    /// It was written, or can be changed, by this other member of the group, or by its own user, who has fewer rights.
    Other(u32),
    /// It was written for another session, and moved to this one.
    Moved,
}

impl Author {
    /// Who has written the file.
    pub fn of(file: &File) -> io::Result<Self> {
        // Nobody else can enter the directory.
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

    /// The same for a file that says that it was written for the session `found`, and is in the place of that of `session`.
    #[must_use]
    pub fn for_session(self, session: &str, found: impl FnOnce() -> Option<String>) -> Self {
        match self {
            Self::Trusted if group().is_some() && found().as_deref() != Some(session) => Self::Moved,
            author => author,
        }
    }

    /// Why what the file names is not opened.
    pub fn distrust(self) -> String {
        match self {
            Self::Trusted => String::new(),
            Self::Other(author) => format!("user {author} has written or can change its description"),
            Self::Moved => "its description was written for another session".to_owned(),
        }
    }
}

/// Why nothing is opened that the file names.
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
    /// Reads the file `name`, which is no longer than `most` bytes, and tells who has written it.
    pub fn read_authored(&self, name: &str, most: u64) -> io::Result<(Vec<u8>, Author)> {
        let file = self.open_file(name)?;
        let author = Author::of(&file)?;
        Ok((Self::read_open(&file, most)?, author))
    }

    /// Writes the file `name` atomically, such that the other members of the group can only read it.
    pub fn put_authored(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put_made(name, bytes, Self::create_readable)
    }

    /// Does the same also on a full file system, if the file has a spare, which it has afterwards. What comes out of the spare is
    /// the file of who has made that, and names nothing to others.
    pub fn replace_authored(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.remove_file(&Self::temporary(name));
        match self.put_authored(name, bytes) {
            Err(error) if is_no_room(&error) => self.use_spare(name, bytes).map_err(|_| error)?,
            replaced => replaced?,
        }
        self.keep_spare(name, bytes.len() as u64);
        Ok(())
    }

    fn create_readable(&self, name: &str, len: u64) -> io::Result<Checked<File>> {
        let made = self.create_unshared(name, len)?;
        readable(&made)?;
        Ok(made)
    }
}
