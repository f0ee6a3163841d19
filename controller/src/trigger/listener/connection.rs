//! One client of the listener.
//!
//! ```text
//!             ┌────────── all written ◀── answering ◀── result ──┐
//!             ▼                              ▲                   │
//!   ──▶ receiving ── message, refused ───────┘                   │
//!             ├───── message, usable ───────────────────────▶ acting
//!             ├───── end of input, too long a payload ──▶ closed
//!             └───── 10 s without a whole message ──────▶ closed
//! ```
//!
//! One message is processed at a time: while its actions are done, nothing is read, and the next messages wait in the socket's buffer. A
//! client that has closed its end is served until its messages are used up; failing to answer it is not an error.

use super::work::Task;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tracepoint_session_io::trigger::{Decoder, Message};

/// Maximum time that a client may take to send a message, and to read an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Number of bytes read at a time.
const PART: usize = 4096;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    /// Its process; 0 if it is in another pid namespace.
    pub(super) pid: u32,
    decoder: Decoder,
    /// Bytes that were read and not decoded yet.
    input: Vec<u8>,
    /// The rest of an answer.
    output: Vec<u8>,
    is_acting: bool,
    /// The time at which the client must have made progress; not used while its message is acted on.
    pub(super) deadline: Instant,
}

/// The result of processing a client's bytes.
#[derive(Debug)]
pub(super) enum Progress {
    /// The client has to send more, or to read its answer.
    Waits,
    /// A message to act on; [`Connection::answer`] decodes the next one.
    Task(Box<Task>),
    /// The client requests the notifications of this session, or of all sessions, after its answer.
    Subscribes(Option<String>),
    /// A message that was answered with this error number.
    Refused(String, i32),
    /// The connection has to be closed, for this reason if it should be reported.
    Closed(Option<String>),
}

impl Connection {
    pub(super) fn new(fd: OwnedFd, pid: u32, now: Instant) -> Self {
        Self {
            fd,
            pid,
            decoder: Decoder::default(),
            input: Vec::new(),
            output: Vec::new(),
            is_acting: false,
            deadline: now + TIMEOUT,
        }
    }

    /// Returns true if it waits for the client to read, and false if it waits for bytes of the client; `None` while its message is acted
    /// on.
    pub(super) fn waits_to_write(&self) -> Option<bool> {
        (!self.is_acting).then_some(!self.output.is_empty())
    }

    /// Returns whether the client has taken too long.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        !self.is_acting && now >= self.deadline
    }

    /// Answers the message that was acted on.
    pub(super) fn answer(&mut self, answer: i32) {
        self.is_acting = false;
        self.deadline = Instant::now() + TIMEOUT;
        #[expect(clippy::host_endian_bytes, reason = "the socket is local: answers have the byte order of the host")]
        self.output.extend(answer.to_ne_bytes());
    }

    /// Returns its socket, and the bytes that are still to be written to it.
    pub(super) fn into_parts(self) -> (OwnedFd, Vec<u8>) {
        (self.fd, self.output)
    }

    /// Writes and reads as far as possible without blocking. Returns after each message; call it until it waits. Reads only if `may_read`,
    /// and then once, so that a client that sends continuously does not delay others.
    pub(super) fn go_on(&mut self, may_read: &mut bool) -> Progress {
        loop {
            match self.write() {
                Ok(()) if self.output.is_empty() => {}
                Ok(()) => return Progress::Waits,
                Err(error) => return Progress::Closed(Some(format!("it cannot be answered: {error}"))),
            }
            let mut input = &self.input[..];
            let decoded = self.decoder.next(&mut input);
            let used = self.input.len() - input.len();
            self.input.drain(..used);
            match decoded {
                Err(error) => return Progress::Closed(Some(error.to_string())),
                Ok(Some(message)) => {
                    self.is_acting = true;
                    return match message {
                        Message::CoreDump(core) => Progress::Task(Box::new(Task::CoreDump(core))),
                        Message::Fire(request) => Progress::Task(Box::new(Task::Fire(request))),
                        Message::Subscribe(session) => Progress::Subscribes(session),
                        message => {
                            let answer = message.refusal().unwrap_or(-Errno::OPNOTSUPP.raw_os_error());
                            self.answer(answer);
                            Progress::Refused(format!("{message:?}"), answer)
                        }
                    };
                }
                Ok(None) => {}
            }
            if !std::mem::take(may_read) {
                return Progress::Waits;
            }
            match self.read() {
                Ok(0) if self.decoder.is_inside_message() => {
                    return Progress::Closed(Some("it closed the connection within a message".to_owned()));
                }
                Ok(0) => return Progress::Closed(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Progress::Waits,
                Err(error) => return Progress::Closed(Some(error.to_string())),
            }
        }
    }

    /// Writes as much of the answers as fits into the socket's buffer.
    pub(super) fn write(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match send(&self.fd, &self.output, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // The client does not read the answer; its further messages are still processed.
                Err(Errno::PIPE | Errno::CONNRESET) => self.output.clear(),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut part = [0; PART];
        loop {
            match recv(&self.fd, &mut part, RecvFlags::empty()) {
                Ok((read, _)) => {
                    self.input.extend(&part[..read]);
                    return Ok(read);
                }
                Err(Errno::INTR) => {}
                // The client has closed its end without reading an answer: all its messages have been read.
                Err(Errno::CONNRESET) => return Ok(0),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
