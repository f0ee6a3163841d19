//! The file with the word on which the remote consumer of a session sleeps, and by which the processes of the session wake it.

use crate::private_dir::PrivateDir;
use fileguard::Checked;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;

/// Its name in the directory of a session.
pub const WAKE: &str = "wake";
/// Its size in bytes: a page.
pub const WAKE_SIZE: usize = 4096;

/// Opens the file in the directory of a session, and makes it if it does not exist: the consumer and the processes come in any order.
pub fn open(session: &PrivateDir) -> io::Result<Checked<File>> {
    let file = match session.create_file(WAKE, WAKE_SIZE as u64) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => session.open_to_change(WAKE)?,
        made => made?,
    };
    // By each of them, because the one that made it may not have come this far. A word without memory behind it would end the program.
    fallocate(&file, FallocateFlags::empty(), 0, WAKE_SIZE as u64)?;
    Ok(file)
}
