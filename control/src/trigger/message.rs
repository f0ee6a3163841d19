//! The messages of the notification socket; `docs/format-notify.md` has their bytes.
//!
//! A message is a header (`cmd`, `msg_size`) and a payload, in the C layout and byte order of the host. The [`Decoder`] takes the bytes as they
//! arrive, in fragments or several messages at once. It keeps at most one known payload and counts the bytes of all others, so that no sender
//! can make it allocate. A message that it cannot use is returned with the error number that answers it, and the next message follows.

use rustix::io::Errno;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `LTTCOMM_NOTIFY_TRIGGER_ONANYCOREDUMP`.
pub const CORE_DUMP: u32 = 1;
/// Our own: the same payload with padding, then the signal and the time.
pub const CORE_DUMP_WITH_SIGNAL: u32 = 0x7470_0001;
/// The largest payload that is skipped, in bytes; a longer one closes the connection.
pub const MAX_PAYLOAD: u32 = 64 << 10;

const HEADER: usize = 8;
const NAME: usize = 255;
const EXECUTABLE_AT: usize = 12;
const HOST_AT: usize = EXECUTABLE_AT + NAME;
const DATA: usize = HOST_AT + NAME;
/// C pads the structure to a multiple of 4.
const PADDED: usize = DATA + 2;
const SIGNAL_AT: usize = PADDED;
const TIME_AT: usize = SIGNAL_AT + 4;
const WITH_SIGNAL: usize = TIME_AT + 8;

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
    /// The signal that caused the dump (`%s`), if it is known.
    pub signal: Option<u32>,
    /// When it dumped core, if it is known.
    pub time: Option<SystemTime>,
}

impl CoreDump {
    /// A core dump of which signal and time are not known; they can be set.
    pub fn new(pid: u32, uid: u32, gid: u32, executable: impl Into<OsString>, host: impl Into<OsString>) -> Self {
        Self { pid, uid, gid, executable: executable.into(), host: host.into(), signal: None, time: None }
    }

    /// The message: header and payload. With a signal or a time it has the command [`CORE_DUMP_WITH_SIGNAL`], otherwise [`CORE_DUMP`].
    pub fn to_message(&self) -> Vec<u8> {
        let extended = self.signal.is_some() || self.time.is_some();
        let (command, size) = if extended { (CORE_DUMP_WITH_SIGNAL, WITH_SIGNAL) } else { (CORE_DUMP, PADDED) };
        let mut bytes = vec![0; HEADER + size];
        let (header, payload) = bytes.split_at_mut(HEADER);
        put(header, 0, command);
        put(header, 4, size as u32);
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

    /// Reads a payload of a known size.
    fn parse(payload: &[u8]) -> Self {
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

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// A process dumped core.
    CoreDump(CoreDump),
    /// A command that this version does not know; its payload was skipped.
    UnknownCommand {
        /// `cmd` of the header.
        command: u32,
    },
    /// A payload whose size does not fit its command; it was skipped.
    WrongSize {
        /// `cmd` of the header.
        command: u32,
        /// `msg_size` of the header, in bytes.
        size: u32,
    },
}

impl Message {
    /// The answer to a message that cannot be used: a negative error number. `None` for one that can.
    pub const fn refusal(&self) -> Option<i32> {
        match self {
            Self::CoreDump(_) => None,
            Self::UnknownCommand { .. } => Some(-Errno::OPNOTSUPP.raw_os_error()),
            Self::WrongSize { .. } => Some(-Errno::INVAL.raw_os_error()),
        }
    }

    fn new(command: u32, size: u32, payload: &[u8]) -> Self {
        match (command, size as usize) {
            (CORE_DUMP, DATA | PADDED) | (CORE_DUMP_WITH_SIGNAL, WITH_SIGNAL) => {
                Self::CoreDump(CoreDump::parse(payload))
            }
            (CORE_DUMP | CORE_DUMP_WITH_SIGNAL, _) => Self::WrongSize { command, size },
            _ => Self::UnknownCommand { command },
        }
    }
}

/// A header announces more than [`MAX_PAYLOAD`] bytes. What follows it cannot be told apart from messages, so the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message announces a payload of {size} bytes, and at most {MAX_PAYLOAD} are accepted")]
#[non_exhaustive]
pub struct PayloadTooLong {
    /// `msg_size` of the header, in bytes.
    pub size: u32,
}

/// Takes messages from a stream of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// `cmd` and `msg_size`, once the header is complete.
    header: Option<(u32, u32)>,
    /// The incomplete header, or the payload as far as any known one reaches.
    bytes: Vec<u8>,
    /// Bytes of the payload that have not arrived.
    left: u32,
}

impl Decoder {
    /// Takes the next message from the front of `input`; `None` if `input` is used up before the message is complete.
    ///
    /// # Errors
    ///
    /// [`PayloadTooLong`]; the decoder is of no further use then.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Message>, PayloadTooLong> {
        if self.header.is_none() {
            let missing = HEADER - self.bytes.len();
            self.bytes.extend(take(input, missing));
            if self.bytes.len() == HEADER {
                let (command, size) = (get(&self.bytes, 0), get(&self.bytes, 4));
                if size > MAX_PAYLOAD {
                    return Err(PayloadTooLong { size });
                }
                self.bytes.clear();
                self.left = size;
                self.header = Some((command, size));
            }
        }
        let Some((command, size)) = self.header else { return Ok(None) };
        let part = take(input, self.left as usize);
        self.left -= part.len() as u32;
        self.bytes.extend(part.iter().take(WITH_SIGNAL.saturating_sub(self.bytes.len())));
        if self.left > 0 {
            return Ok(None);
        }
        self.header = None;
        let message = Message::new(command, size, &self.bytes);
        self.bytes.clear();
        Ok(Some(message))
    }

    /// Whether a part of a message has arrived.
    pub fn is_inside_message(&self) -> bool {
        self.header.is_some() || !self.bytes.is_empty()
    }
}

/// Splits up to `most` bytes off the front of `input`.
fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (part, rest) = input.split_at(input.len().min(most));
    *input = rest;
    part
}

fn up_to_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn get(bytes: &[u8], at: usize) -> u32 {
    #[expect(clippy::host_endian_bytes, reason = "the socket is local: messages have the byte order of the host")]
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    #[expect(clippy::host_endian_bytes, reason = "the socket is local: messages have the byte order of the host")]
    bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
}

#[cfg(test)]
#[expect(clippy::host_endian_bytes, reason = "messages have the byte order of the host")]
mod tests {
    use super::*;

    fn all(bytes: &[u8], part: usize) -> Result<Vec<Message>, PayloadTooLong> {
        let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
        for mut input in bytes.chunks(part) {
            while let Some(message) = decoder.next(&mut input)? {
                messages.push(message);
            }
        }
        assert!(!decoder.is_inside_message());
        Ok(messages)
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let mut core = CoreDump::new(42, 1000, 1001, "apache2", "A_HOST_NAME");
        let plain = core.to_message();
        (core.signal, core.time) = (Some(11), Some(UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789)));
        let mut bytes = [plain, core.to_message()].concat();
        let unknown = (7_u32, 70_000_u32 - 10_000);
        for number in [unknown.0, unknown.1] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(vec![1; unknown.1 as usize]);
        bytes.extend([CORE_DUMP.to_ne_bytes(), 0_u32.to_ne_bytes()].concat());
        let expected = [
            Message::CoreDump(CoreDump::new(42, 1000, 1001, "apache2", "A_HOST_NAME")),
            Message::CoreDump(core),
            Message::UnknownCommand { command: 7 },
            Message::WrongSize { command: CORE_DUMP, size: 0 },
        ];
        for part in [1, 3, 8, 9, 500, 532, 1000, 1 << 20] {
            assert_eq!(all(&bytes, part).expect("no payload is too long"), expected, "{part}");
        }
        assert_eq!(expected.map(|message| message.refusal()), [None, None, Some(-95), Some(-22)]);
    }

    #[test]
    fn names_end_at_a_nul_and_have_254_bytes_at_most() {
        let long = "x".repeat(300);
        let core = CoreDump::new(1, 2, 3, "a\0b", &long);
        let read = all(&core.to_message(), 64).expect("it is short");
        assert_eq!(read, [Message::CoreDump(CoreDump::new(1, 2, 3, "a", &long[..254]))]);
    }

    #[test]
    fn a_payload_of_64_kib_is_skipped_and_a_longer_one_is_an_error() {
        let header = |size: u32| [9_u32.to_ne_bytes(), size.to_ne_bytes()].concat();
        let whole = [header(MAX_PAYLOAD), vec![0; MAX_PAYLOAD as usize]].concat();
        assert_eq!(all(&whole, 4096), Ok(vec![Message::UnknownCommand { command: 9 }]));
        assert_eq!(all(&header(MAX_PAYLOAD + 1), 4096), Err(PayloadTooLong { size: MAX_PAYLOAD + 1 }));
    }
}
