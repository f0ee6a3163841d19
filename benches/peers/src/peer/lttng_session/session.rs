//! An LTTng session, controlled by its command line.

use crate::peer::{babeltrace, memory_directory};
use crate::tally;
use crate::variant::Unusable;
use std::ffi::{CStr, c_int};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The policy when a ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The oldest are overwritten; the others are written on request.
    Snapshot,
    /// They are written continuously; the newest are dropped.
    Discard,
}

/// A running session.
pub(super) struct Session {
    kind: Kind,
    name: String,
    directory: PathBuf,
}

impl Session {
    /// Starts a session for one event of ours.
    pub(super) fn start(kind: Kind, event: &str) -> Result<Self, Unusable> {
        load_provider()?;
        let name = format!("tracepoint-peers-{}-{event}", std::process::id());
        let directory = memory_directory().join(&name);
        let output = format!("--output={}", directory.display());
        let channel = format!("--session={name}");
        match kind {
            Kind::Snapshot => {
                lttng(&["create", &name, "--snapshot", &output])?;
                lttng(&[
                    "enable-channel",
                    "-u",
                    &channel,
                    "--overwrite",
                    "--subbuf-size=64k",
                    "--num-subbuf=4",
                    "ring",
                ])?;
            }
            Kind::Discard => {
                lttng(&["create", &name, &output])?;
                lttng(&["enable-channel", "-u", &channel, "--discard", "--subbuf-size=1M", "--num-subbuf=8", "ring"])?;
            }
        }
        let session = Self { kind, name, directory };
        lttng(&["enable-event", "-u", &channel, "--channel=ring", &format!("peers_session:{event}")])?;
        lttng(&["start", &session.name])?;
        Ok(session)
    }

    /// Ends it, and passes the events that babeltrace2 finds in it to the tally.
    pub(super) fn stop(self, marks: &[&str], named: bool) {
        let must = |arguments: &[&str]| lttng(arguments).unwrap_or_else(|error| panic!("{error}"));
        must(&["stop", &self.name]);
        if self.kind == Kind::Snapshot {
            must(&["snapshot", "record", &format!("--session={}", self.name)]);
        }
        must(&["destroy", &self.name]);
        babeltrace::add_to_tally(&self.directory, marks, named);
        tally::add_bytes(content(&self.directory));
        fs::remove_dir_all(&self.directory).expect("a directory of our own");
    }
}

/// Loads the tracepoint provider, and with it LTTng's own threads, which connect to the session daemon.
pub fn load_provider() -> Result<(), Unusable> {
    const NOW: c_int = libc::RTLD_NOW | libc::RTLD_GLOBAL;
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        lttng(&["list"]).map_err(|error| error.to_string())?;
        let path = concat!(env!("PEERS_LTTNG_PROVIDER"), "\0");
        let path = CStr::from_bytes_with_nul(path.as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: a path; the object's constructors are LTTng's.
        if unsafe { libc::dlopen(path.as_ptr(), NOW) }.is_null() {
            return Err(format!("{} was not loaded: liblttng-ust.so is missing", path.to_string_lossy()));
        }
        Ok(())
    });
    loaded.clone().map_err(Unusable)
}

/// Runs a command of LTTng without letting it start a daemon, which would not be stopped. Returns what it prints.
pub fn lttng(arguments: &[&str]) -> Result<String, Unusable> {
    let output = Command::new("lttng")
        .arg("--no-sessiond")
        .args(arguments)
        .output()
        .map_err(|error| Unusable(format!("lttng (Debian: lttng-tools): {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default();
    Err(Unusable(format!("lttng {}: {said}; scripts/peers.sh starts lttng-sessiond", arguments[0])))
}

/// Total size of the events in the packets below a directory. A packet contains the number of used bits, including its header.
fn content(directory: &Path) -> u64 {
    /// Magic number, identity, stream and instance; then times, sizes, number, discarded events, processor.
    const HEADER: u64 = 32 + 5 * 8 + 8 + 4;
    const CONTENT_SIZE: usize = 48;
    const PACKET_SIZE: usize = 56;
    const MAGIC: [u8; 4] = 0xc1fc_1fc1u32.to_le_bytes();
    let entries = fs::read_dir(directory).expect("a directory of our own").flatten().map(|entry| entry.path());
    let mut total = 0;
    for path in entries {
        if path.is_dir() {
            // The index repeats data of the packets.
            total += if path.ends_with("index") { 0 } else { content(&path) };
            continue;
        }
        let bytes = fs::read(&path).expect("a file of our own");
        let mut packets = &bytes[..];
        while packets.starts_with(&MAGIC) && packets.len() > HEADER as usize {
            let bits = |at: usize| u64::from_le_bytes(packets[at..at + 8].try_into().expect("eight bytes")) / 8;
            total += bits(CONTENT_SIZE).saturating_sub(HEADER);
            let size = bits(PACKET_SIZE) as usize;
            packets = packets.get(size.max(1)..).unwrap_or_default();
        }
    }
    total
}
