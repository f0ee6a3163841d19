//! The messages of the notification socket; `docs/format-notify.md` describes their bytes.
//!
//! A message is a header (`cmd`, `msg_size`) and a payload, in the C layout and byte order of the host. The [`Decoder`] takes the bytes as
//! they arrive, in fragments or several messages at once. It keeps at most one known payload, of at most 64 KiB, and only counts the bytes
//! of all others, so that no sender can make it allocate more. For a message that cannot be used it returns the error number to answer
//! with, and continues with the next message.

mod core_dump;
mod json;

pub use core_dump::CoreDump;
pub use json::{FireRequest, Notification};

use core_dump::{DATA, PADDED, WITH_SIGNAL};
use rustix::io::Errno;

/// `LTTCOMM_NOTIFY_TRIGGER_ONANYCOREDUMP`.
pub const CORE_DUMP: u32 = 1;
/// Our extension: the same payload with padding, then the signal and the time.
pub const CORE_DUMP_WITH_SIGNAL: u32 = 0x7470_0001;
/// Requests the notifications of the session named in the payload, or of all sessions.
pub const SUBSCRIBE: u32 = 0x7470_0002;
/// The condition of a trigger has occurred in a traced process.
pub const FIRE: u32 = 0x7470_0003;
/// From the listener to a subscriber: a trigger with the action `notify` has acted.
pub const NOTIFICATION: u32 = 0x7470_0004;
/// Maximum size of a payload that is skipped, in bytes; a longer one closes the connection.
pub const MAX_PAYLOAD: u32 = 64 << 10;

const HEADER: usize = 8;
/// Maximum length of a session's name, in bytes.
const MAX_NAME: usize = 255;

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// A process dumped core.
    CoreDump(CoreDump),
    /// The sender requests the notifications of this session, or of all sessions.
    Subscribe(Option<String>),
    /// A request to perform the actions of a trigger.
    Fire(FireRequest),
    /// For subscribers: a trigger has acted.
    Notification(Notification),
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
    /// A payload that does not match its command.
    Malformed {
        /// `cmd` of the header.
        command: u32,
        /// The problem.
        reason: String,
    },
}

impl Message {
    /// Returns the answer to a message that cannot be used: a negative error number. `None` for a usable message.
    pub const fn refusal(&self) -> Option<i32> {
        match self {
            Self::CoreDump(_) | Self::Subscribe(_) | Self::Fire(_) => None,
            // Listeners send notifications, and do not accept them.
            Self::UnknownCommand { .. } | Self::Notification(_) => Some(-Errno::OPNOTSUPP.raw_os_error()),
            Self::WrongSize { .. } | Self::Malformed { .. } => Some(-Errno::INVAL.raw_os_error()),
        }
    }

    fn new(command: u32, size: u32, payload: &[u8]) -> Self {
        match (command, size as usize) {
            (CORE_DUMP, DATA | PADDED) | (CORE_DUMP_WITH_SIGNAL, WITH_SIGNAL) => {
                Self::CoreDump(CoreDump::parse(payload))
            }
            (SUBSCRIBE, 0) => Self::Subscribe(None),
            (SUBSCRIBE, 1..=MAX_NAME) => match str::from_utf8(payload) {
                Ok(name) => Self::Subscribe(Some(name.to_owned())),
                Err(error) => Self::Malformed { command, reason: error.to_string() },
            },
            (FIRE, _) => json::parse(command, payload, Self::Fire),
            (NOTIFICATION, _) => json::parse(command, payload, Self::Notification),
            (CORE_DUMP | CORE_DUMP_WITH_SIGNAL | SUBSCRIBE, _) => Self::WrongSize { command, size },
            _ => Self::UnknownCommand { command },
        }
    }
}

/// A header announces more than [`MAX_PAYLOAD`] bytes. The payload cannot be distinguished from further messages, so the connection is
/// closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message announces a payload of {size} bytes, and at most {MAX_PAYLOAD} are accepted")]
#[non_exhaustive]
pub struct PayloadTooLong {
    /// `msg_size` of the header, in bytes.
    pub size: u32,
}

/// Decodes messages from a stream of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// `cmd` and `msg_size`, once the header is complete.
    header: Option<(u32, u32)>,
    /// The incomplete header, or the part of the payload that its command uses.
    bytes: Vec<u8>,
    /// Bytes of the payload that have not arrived.
    left: u32,
}

impl Decoder {
    /// Decodes the next message from the front of `input`; `None` if `input` ends before the message is complete.
    ///
    /// # Errors
    ///
    /// [`PayloadTooLong`]; the decoder cannot be used any more.
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
        self.bytes.extend(part.iter().take(longest(command).saturating_sub(self.bytes.len())));
        if self.left > 0 {
            return Ok(None);
        }
        self.header = None;
        let message = Message::new(command, size, &self.bytes);
        self.bytes.clear();
        Ok(Some(message))
    }

    /// Returns whether a part of a message has arrived.
    pub fn is_inside_message(&self) -> bool {
        self.header.is_some() || !self.bytes.is_empty()
    }
}

/// Returns the number of bytes of a payload that are kept.
const fn longest(command: u32) -> usize {
    match command {
        CORE_DUMP | CORE_DUMP_WITH_SIGNAL => WITH_SIGNAL,
        SUBSCRIBE => MAX_NAME,
        FIRE | NOTIFICATION => MAX_PAYLOAD as usize,
        _ => 0,
    }
}

/// Encodes a subscription.
pub fn subscribe(session: Option<&str>) -> Vec<u8> {
    let name = session.unwrap_or_default().as_bytes();
    [&header(SUBSCRIBE, name.len()), name].concat()
}

/// Encodes the header of a message with a payload of `size` bytes.
fn header(command: u32, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    put(&mut bytes, 0, command);
    put(&mut bytes, 4, size as u32);
    bytes
}

/// Splits up to `most` bytes off the front of `input`.
fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (part, rest) = input.split_at(input.len().min(most));
    *input = rest;
    part
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
    use std::time::{Duration, UNIX_EPOCH};

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
    fn texts_are_checked() {
        let message = |command: u32, payload: &[u8]| [&header(command, payload.len()), payload].concat();
        let bytes = [
            subscribe(None),
            subscribe(Some("flight")),
            message(SUBSCRIBE, b"\xFF"),
            message(SUBSCRIBE, &[b'x'; 256]),
            message(FIRE, br#"{"session": "s"}"#),
            message(NOTIFICATION, b""),
        ];
        let read = all(&bytes.concat(), 7).expect("none is too long");
        assert_eq!(read[..2], [Message::Subscribe(None), Message::Subscribe(Some("flight".to_owned()))]);
        assert_eq!(read[3], Message::WrongSize { command: SUBSCRIBE, size: 256 });
        assert!(read[2..].iter().all(|message| message.refusal() == Some(-22)), "{read:?}");
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
