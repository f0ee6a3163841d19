//! Who a collector is, for leases.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use tracepoint_wire::nats::hex;

/// The file with the number of a collector, in its output directory.
const OWNER_FILE: &str = ".collector";

/// The number of a collector, and the lock of its output directory, which ends with this.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) id: String,
    _lock: File,
}

impl Owner {
    /// That of the collector with this output directory; a new one where there is none.
    ///
    /// # Errors
    ///
    /// `ResourceBusy` if another collector has the directory.
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
