//! The file with the word that the remote consumer of a session sleeps on. The processes of the session wake the consumer by it.

use crate::private_dir::PrivateDir;
use fileguard::CheckedFd;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;

/// Its name in the directory of a session.
pub const WAKE: &str = "wake";
/// Its size in bytes: a page.
pub const WAKE_SIZE: usize = 4096;

/// Opens the file in the directory of a session, and creates it if it does not exist: the consumer and the processes may come in any order.
pub fn open(session: &PrivateDir) -> io::Result<CheckedFd<File>> {
    let file = match session.create_file(WAKE, WAKE_SIZE as u64) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => session.open_to_change(WAKE)?,
        made => made?,
    };
    // Each process allocates, because the creator may not have done so yet. A store to a page without allocated space would end the
    // program.
    fallocate(&file, FallocateFlags::empty(), 0, WAKE_SIZE as u64)?;
    Ok(file)
}
