//! The identity of a collector in leases.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use tracepoint_wire::nats::hex;

/// The file with a collector's id in its output directory.
const OWNER_FILE: &str = ".collector";

/// A collector's id, and the lock on its output directory, which dropping this releases.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) id: String,
    _lock: File,
}

impl Owner {
    /// Returns the identity stored in this output directory; creates it if there is none.
    ///
    /// # Errors
    ///
    /// `ResourceBusy` if another collector uses the directory.
    pub(crate) fn of(output: &Path) -> io::Result<Self> {
        let path = output.join(OWNER_FILE);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another collector has this directory"));
        }
        let mut id = String::new();
        (&mut file).take(64).read_to_string(&mut id)?;
        if id.len() != 32 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let mut random = [0; 16];
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
            id = hex(&random);
            file.set_len(0)?;
            io::Seek::rewind(&mut file)?;
            file.write_all(id.as_bytes())?;
        }
        Ok(Self { id, _lock: file })
    }
}
