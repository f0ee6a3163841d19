//! The file with the word that the remote consumer of a session sleeps on. The processes of the session wake the consumer by it.

use crate::private_dir::PrivateDir;
use fileguard::CheckedFd;
use std::fs::File;
use std::io;

/// Its name in the directory of a session.
pub const WAKE: &str = "wake";
/// Its size in bytes: a page.
pub const WAKE_SIZE: usize = 4096;

/// Opens the file in the directory of a session, and creates it if it does not exist: the consumer and the processes may come in any order.
pub fn open(session: &PrivateDir) -> io::Result<CheckedFd<File>> {
    session.open_allocated(WAKE, WAKE_SIZE as u64)
}
