//! Ingests messages from a file, a FIFO or a Unix datagram socket.
//!
//! Each message becomes an event `outside:message` in a separate channel, and is sent like other events.

use crate::ctf::MetadataText;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use fileguard::GuardedFd;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use tracepoint_ring::Level;
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader, Policy, StreamId, StreamKey};
use tracepoint_ring::field::{Base, ByteOrder, FieldDescriptor, FieldType, IntegerType};
use tracepoint_wire::udp::{INGEST_CHANNEL, INGEST_EVENT};

/// Returns the time of a trace's clock, in nanoseconds.
pub type TraceClock = Box<dyn Fn() -> u64 + Send>;

/// Maximum length of a message in bytes. Longer ones are counted as lost.
pub const MAX_MESSAGE: usize = 60_000;
/// Number of message bytes read per round.
const AT_ONCE: usize = 64 << 10;
/// Number of reads per round, including messages that are too long.
const READS: usize = 256;
/// Maximum packet size: the bytes of a round, and as many empty lines, each with its header word and length.
const LARGEST_PACKET: usize = HEADER_SIZE + AT_ONCE + AT_ONCE * 12;

const BYTE: FieldType =
    FieldType::Integer(IntegerType { bits: 8, signed: false, base: Base::Hexadecimal, order: ByteOrder::Little });
static FIELDS: [FieldDescriptor; 1] =
    [FieldDescriptor { name: "data", ty: FieldType::Sequence { element: &BYTE }, doc: "The message, as it came." }];

/// Returns the descriptions of the channel with this stream class, and of its event.
pub(super) fn descriptions(class: u32) -> (ChannelDescription, EventDescription) {
    let channel = ChannelDescription {
        class,
        name: INGEST_CHANNEL.to_owned(),
        policy: Policy::Discard,
        packet_size: LARGEST_PACKET,
        context: Vec::new(),
    };
    let event = EventDescription {
        class,
        id: 0,
        name: INGEST_EVENT.to_owned(),
        level: Level::Info,
        fields: &FIELDS,
        doc: "A message from outside of the program.",
        format: "data %*ph",
    };
    (channel, event)
}

/// Returns these descriptions as metadata, to append to that of a trace whose clock has this name.
pub(super) fn metadata(class: u32, clock: &str) -> String {
    let (channel, event) = descriptions(class);
    MetadataText::channel(&channel, clock) + MetadataText::events(&[event]).as_str()
}

/// The source of messages.
#[derive(Debug)]
pub(super) struct Ingest {
    input: Input,
    created: Option<CreatedSocket>,
    uuid: [u8; 16],
    stream: StreamId,
    /// The beginning of a line that was read from a FIFO without its end.
    line: Vec<u8>,
    /// True if that line is too long already.
    overlong: bool,
    buffer: Vec<u8>,
    events: u64,
    last: u64,
    too_long: u64,
    reported: u64,
}

/// The socket that was created, to be removed at the end.
#[derive(Debug)]
struct CreatedSocket {
    path: PathBuf,
    /// Device and inode.
    file: (u64, u64),
}

#[derive(Debug)]
enum Input {
    /// A regular file, and whether it was read to its end.
    File(GuardedFd<File>, bool),
    Fifo(GuardedFd<File>),
    Socket(GuardedFd<UnixDatagram>),
}

/// The messages of a round, as a packet.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) stream: StreamId,
    pub(super) packet: Vec<u8>,
    pub(super) events: u64,
    /// Number of messages so far that were too long.
    pub(super) overlong: u64,
    /// True if they are never dropped in favour of others.
    pub(super) kept: bool,
}

impl Ingest {
    /// Opens the file or FIFO at `path`, or creates a socket if nothing exists there.
    pub(super) fn open(path: &Path, uuid: [u8; 16], class: u32) -> Result<Self, SinkError> {
        let failed = |error| SinkError::new(format!("take events from {}", path.display()), error);
        let input = match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_fifo() => Input::fifo(path).map_err(failed)?,
            Ok(found) if found.file_type().is_socket() => {
                let reason = "a socket exists already; remove it if its program has ended, or name another path";
                return Err(failed(io::Error::new(io::ErrorKind::AddrInUse, reason)));
            }
            Ok(found) if found.file_type().is_file() => {
                Input::File(File::open(path).and_then(GuardedFd::new).map_err(failed)?, false)
            }
            Ok(_) => {
                let reason = "it is neither a file nor a FIFO; name one of them, or a path that does not exist";
                return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, reason)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Input::socket(path).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        };
        let created = match input {
            Input::Socket(_) => CreatedSocket::of(path),
            Input::File(..) | Input::Fifo(_) => None,
        };
        let stream = StreamId { class, instance: 0 };
        Ok(Self {
            input,
            created,
            uuid,
            stream,
            line: Vec::new(),
            overlong: false,
            buffer: vec![0; AT_ONCE],
            events: 0,
            last: 0,
            too_long: 0,
            reported: 0,
        })
    }

    /// Returns whether its messages can wait in a file.
    pub(super) const fn can_wait(&self) -> bool {
        matches!(self.input, Input::File(..))
    }

    /// Returns whether no more messages will arrive.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.input, Input::File(_, true))
    }

    /// Returns the source that becomes readable with a message, for polling at once; `None` if the program has closed it.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        match &self.input {
            Input::File(file, _) | Input::Fifo(file) => file.get().ok().map(AsFd::as_fd),
            Input::Socket(socket) => socket.get().ok().map(AsFd::as_fd),
        }
    }

    pub(super) const fn stream(&self) -> StreamId {
        self.stream
    }

    /// Reads the messages that have arrived, with `now` as their time; `None` if there are none and none was too long.
    pub(super) fn messages(&mut self, now: u64) -> Option<Messages> {
        self.last = self.last.max(now);
        let mut records = Vec::new();
        let mut events = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..READS {
            if records.len() >= AT_ONCE {
                break;
            }
            let Ok(size) = self.input.read(&mut buffer) else { break };
            let bytes = buffer.get(..size).unwrap_or_default();
            match &mut self.input {
                Input::Socket(_) => events += self.message(bytes, &mut records),
                Input::File(_, ended) if size == 0 => {
                    *ended = true;
                    // The last line need not have an end.
                    if !self.line.is_empty() || self.overlong {
                        events += self.lines(b"\n", &mut records);
                    }
                    break;
                }
                Input::Fifo(_) if size == 0 => break,
                Input::File(..) | Input::Fifo(_) => events += self.lines(bytes, &mut records),
            }
        }
        self.buffer = buffer;
        let stream = StreamKey { uuid: self.uuid, class: self.stream.class, instance: self.stream.instance };
        let header = PacketHeader {
            events_before: self.events,
            discarded: self.too_long,
            ..PacketHeader::empty(stream, self.last).with_size(HEADER_SIZE + records.len())
        };
        self.events += events;
        let overlong = self.too_long;
        let any = events > 0 || std::mem::replace(&mut self.reported, overlong) < overlong;
        any.then(|| Messages {
            stream: self.stream,
            packet: [&header.bytes()[..], &records].concat(),
            events,
            overlong,
            kept: self.can_wait(),
        })
    }

    fn lines(&mut self, bytes: &[u8], records: &mut Vec<u8>) -> u64 {
        let mut events = 0;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            self.overlong |= self.line.len() + text.len() > MAX_MESSAGE;
            if !self.overlong {
                self.line.extend_from_slice(text);
            }
            if ends {
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.overlong) {
                    self.too_long += 1;
                } else {
                    events += self.message(&line, records);
                }
            }
        }
        events
    }

    fn message(&mut self, bytes: &[u8], records: &mut Vec<u8>) -> u64 {
        if bytes.len() > MAX_MESSAGE {
            self.too_long += 1;
            return 0;
        }
        records.extend_from_slice(&(self.last << 16).to_le_bytes());
        records.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        records.extend_from_slice(bytes);
        1
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        // Another file may have replaced it since.
        let created = self.created.take().filter(|created| file_at(&created.path) == Some(created.file));
        if let Some(created) = created {
            let _ = fs::remove_file(&created.path);
        }
    }
}

impl CreatedSocket {
    /// Keeps the absolute path, because the program may change its working directory.
    fn of(path: &Path) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        let file = file_at(&path)?;
        Some(Self { path, file })
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

impl Input {
    fn fifo(path: &Path) -> io::Result<Self> {
        // Also open for writing, so that the FIFO does not end when its last writer closes it.
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::Fifo {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self::Fifo(GuardedFd::new(file.into())?))
    }

    fn socket(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Socket(GuardedFd::new(socket)?))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            // After an error nothing more can be read.
            Self::File(file, _) => Ok(file.get().and_then(|mut file| file.read(buffer)).unwrap_or(0)),
            Self::Fifo(file) => file.get()?.read(buffer),
            Self::Socket(socket) => socket.get()?.recv(buffer),
        }
    }
}
