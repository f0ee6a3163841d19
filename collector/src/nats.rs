//! Takes traces from a NATS broker, with other collectors: see `docs/nats.md`.
//!
//! ```text
//!   search: which traces has the broker, and who has their leases? ──claimed──▶ a task for each trace that this collector has
//!   trace:  hello, control ─▶ hub ◀─ messages, in the order of the broker
//!             │ each second, and when much was stored: what the storage has done
//!             ▼
//!           commit to the lease ─▶ acknowledge, purge
//! ```
//!
//! [`lease`] has what an entry of the bucket says and who may change it, [`search`] finds traces to collect, and [`trace`] collects one by the state
//! machine of our own senders, [`StreamControl`](crate::stream_control::StreamControl). All run on the thread of the [`Hub`](crate::hub::Hub).

mod account;
mod broker;
mod former;
mod lease;
mod replay;
mod search;
mod trace;

use rustix::fs::{FlockOperation, flock};
pub(crate) use search::search;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::net::nats::{self, hex};

/// The time after which a lease that does not change may be taken, by default.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);
/// The shortest one: commits are a quarter of it apart, and must come through.
pub const LEAST_LEASE: Duration = Duration::from_secs(1);
/// The file with the number of a collector, in its output directory.
const OWNER_FILE: &str = ".collector";

/// Where traces are taken from.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) broker: nats::Broker,
    pub(crate) lease: Duration,
}

/// What is known of the traces of this collector, for its status.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) is_connected: Cell<bool>,
    /// Messages that the broker has and that are not stored, by the key of the trace.
    pub(crate) unstored: RefCell<BTreeMap<String, u64>>,
    /// The collector ends: its leases are to be released.
    pub(crate) is_ending: Cell<bool>,
    /// They are.
    pub(crate) has_ended: Cell<bool>,
}

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
