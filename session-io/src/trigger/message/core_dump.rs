//! The payload of ONANYCOREDUMP, with and without a signal.

use super::{CORE_DUMP, CORE_DUMP_WITH_SIGNAL, get, header, put};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NAME: usize = 255;
const EXECUTABLE_AT: usize = 12;
const HOST_AT: usize = EXECUTABLE_AT + NAME;
/// The data, in bytes.
pub(super) const DATA: usize = HOST_AT + NAME;
/// C pads the structure to a multiple of 4.
pub(super) const PADDED: usize = DATA + 2;
const SIGNAL_AT: usize = PADDED;
const TIME_AT: usize = SIGNAL_AT + 4;
/// With signal and time.
pub(super) const WITH_SIGNAL: usize = TIME_AT + 8;

/// A process that dumped core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreDump {
    /// Its process id in the initial pid namespace (`%P` of `core_pattern`).
    pub pid: u32,
    /// Its real user id (`%u`).
    pub uid: u32,
    /// Its real group id (`%g`).
    pub gid: u32,
    /// The name of its executable (`%e`); at most 254 bytes of it are sent, without a NUL.
    pub executable: OsString,
    /// The name of its host (`%h`); at most 254 bytes of it are sent, without a NUL.
    pub host: OsString,
    /// The signal that caused the dump (`%s`), if known.
    pub signal: Option<u32>,
    /// The time of the dump, if known.
    pub time: Option<SystemTime>,
}

impl CoreDump {
    /// Creates a core dump without signal and time; they can be set.
    pub fn new(pid: u32, uid: u32, gid: u32, executable: impl Into<OsString>, host: impl Into<OsString>) -> Self {
        Self { pid, uid, gid, executable: executable.into(), host: host.into(), signal: None, time: None }
    }

    /// Encodes the message: header and payload. With a signal or a time it has the command [`CORE_DUMP_WITH_SIGNAL`], otherwise
    /// [`CORE_DUMP`].
    pub fn to_message(&self) -> Vec<u8> {
        let extended = self.signal.is_some() || self.time.is_some();
        let (command, size) = if extended { (CORE_DUMP_WITH_SIGNAL, WITH_SIGNAL) } else { (CORE_DUMP, PADDED) };
        let mut bytes = header(command, size);
        let at = bytes.len();
        bytes.resize(at + size, 0);
        let payload = &mut bytes[at..];
        for (at, number) in [(0, self.pid), (4, self.uid), (8, self.gid)] {
            put(payload, at, number);
        }
        for (at, name) in [(EXECUTABLE_AT, &self.executable), (HOST_AT, &self.host)] {
            let name = up_to_nul(name.as_bytes());
            let len = name.len().min(NAME - 1);
            payload[at..at + len].copy_from_slice(&name[..len]);
        }
        if extended {
            put(payload, SIGNAL_AT, self.signal.unwrap_or(0));
            let time = self.time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            let ns = u64::try_from(time.as_nanos()).unwrap_or(0);
            #[expect(
                clippy::host_endian_bytes,
                reason = "the socket is local: messages have the byte order of the host"
            )]
            payload[TIME_AT..].copy_from_slice(&ns.to_ne_bytes());
        }
        bytes
    }

    /// Decodes a payload of a known size.
    pub(super) fn parse(payload: &[u8]) -> Self {
        let name = |at: usize| OsString::from_vec(up_to_nul(&payload[at..at + NAME]).to_vec());
        let mut core = Self::new(get(payload, 0), get(payload, 4), get(payload, 8), name(EXECUTABLE_AT), name(HOST_AT));
        if let Some(&time) = payload.get(TIME_AT..).and_then(|rest| rest.first_chunk()) {
            core.signal = Some(get(payload, SIGNAL_AT)).filter(|signal| *signal != 0);
            #[expect(
                clippy::host_endian_bytes,
                reason = "the socket is local: messages have the byte order of the host"
            )]
            let ns = Some(u64::from_ne_bytes(time)).filter(|ns| *ns != 0);
            core.time = ns.map(|ns| UNIX_EPOCH + Duration::from_nanos(ns));
        }
        core
    }
}

fn up_to_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
