//! What is to be published of a trace: its log and the files of its streams, from a position on.

use super::chunk::Chunk;
use super::log::{LOG, frame_at};
use super::position::{Place, Position};
use crate::names::sanitised;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracepoint_wire::nats::{Publication, Publish};
use tracepoint_wire::stream::{ClosedStream, ToCollector};

/// A stream of the trace.
#[derive(Debug)]
struct Stream {
    key: (u32, u64),
    /// The name that the sender gives it, and that of its file.
    name: String,
    file: String,
    /// The events up to its end, once its sender has told them.
    events_after: u64,
    /// The next packet to be read, and the packets that are known to be in files.
    place: Place,
    known: u64,
}

/// A packet that is to be published.
#[derive(Debug)]
pub(super) struct Packet {
    /// The number of its stream, and where that is behind it.
    pub(super) stream: usize,
    pub(super) behind: Place,
    /// The number of the packet before it.
    pub(super) previous: u64,
    pub(super) file: Arc<File>,
    pub(super) offset: u64,
    /// Bytes without padding.
    pub(super) size: usize,
}

/// What comes next in a stream.
#[derive(Debug)]
pub(super) enum Item {
    Packet(Packet),
    /// So many packets were removed before they were read.
    Removed {
        stream: usize,
        behind: Place,
        packets: u64,
    },
}

/// A trace that is published.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) root: PathBuf,
    pub(super) name: String,
    pub(super) publication: Publication,
    /// What the broker has.
    pub(super) position: Position,
    log: File,
    /// Up to where the log is read.
    read: u64,
    /// Messages of the log, with where they end in it.
    control: VecDeque<(Publish, u64)>,
    streams: Vec<Stream>,
    account: Vec<u8>,
    is_whole: bool,
    /// The present chunk; `None`: the first one from this number on.
    chunk: Option<Chunk>,
    from: u64,
    /// The stream that is looked at first.
    turn: usize,
}

impl Spool {
    /// That of the session in this directory; `None`: it has none.
    pub(super) fn open(root: &Path) -> io::Result<Option<Self>> {
        let log = match File::open(root.join(LOG)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let Some(first) = frame_at(&log, 0)? else { return Ok(None) };
        let Some(ToCollector::Hello(hello)) = first.message() else { return Err(ErrorKind::InvalidData.into()) };
        let mut spool = Self {
            root: root.to_owned(),
            name: format!("{}-{}", hello.session, hello.process),
            publication: Publication::new(&hello),
            position: Position::read(root),
            log,
            read: first.end,
            control: VecDeque::new(),
            streams: Vec::new(),
            account: Vec::new(),
            is_whole: false,
            chunk: None,
            from: 0,
            turn: 0,
        };
        spool.rewind()?;
        Ok(Some(spool))
    }

    /// Begins anew at the position: what was read behind it is read again.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        (self.read, self.from, self.chunk, self.is_whole) = (0, 0, None, false);
        self.control.clear();
        self.streams.clear();
        self.account.clear();
        self.refresh()
    }

    /// Reads what the log has more.
    pub(super) fn refresh(&mut self) -> io::Result<()> {
        while let Some(logged) = frame_at(&self.log, self.read)? {
            self.read = logged.end;
            let message = match logged.message() {
                Some(ToCollector::Metadata(piece)) => self.publication.metadata(piece),
                Some(ToCollector::Announce(announce)) => {
                    let number = self.streams.len();
                    if self.position.streams.len() <= number {
                        self.position.streams.push(Place::default());
                    }
                    self.streams.push(Stream {
                        key: (announce.class, announce.instance),
                        name: announce.names[4].to_owned(),
                        file: sanitised(announce.names[4], 4),
                        events_after: 0,
                        place: self.position.streams[number],
                        known: 0,
                    });
                    self.publication.announce(announce)
                }
                Some(ToCollector::Close(close)) => {
                    for end in close.entries {
                        let stream = usize::try_from(end.handle).ok().and_then(|number| self.streams.get_mut(number));
                        if let Some(stream) = stream {
                            stream.events_after = end.events_after;
                        }
                    }
                    continue;
                }
                Some(ToCollector::Account(piece, whole)) => {
                    if piece.offset == 0 {
                        // It comes once more if it could not be written whole.
                        self.account.clear();
                    }
                    self.account.extend_from_slice(piece.bytes);
                    self.is_whole = self.account.len() as u64 >= whole;
                    continue;
                }
                _ => continue,
            };
            if logged.end > self.position.log {
                self.control.push_back((message, logged.end));
            }
        }
        Ok(())
    }

    /// The next message of the log, with where it ends there.
    pub(super) fn pop_control(&mut self) -> Option<(Publish, u64)> {
        self.control.pop_front()
    }

    /// Whether the broker has something of the trace. Its first message is metadata: a trace without any is none.
    pub(super) const fn has_begun(&self) -> bool {
        self.position.log > 0
    }

    /// Whether the sender has sent its account, behind which nothing comes.
    pub(super) const fn has_account(&self) -> bool {
        self.is_whole
    }

    /// The messages that end the trace. Packets are as many as the collector has stored, so that what it has removed is missing.
    pub(super) fn end(&self) -> Vec<Publish> {
        let entry = |(number, stream): (usize, &Stream)| ClosedStream {
            handle: number as u64,
            last: stream.place.last,
            packets: stream.place.passed,
            events_after: stream.events_after,
        };
        let entries: Vec<_> = self.streams.iter().enumerate().map(entry).collect();
        let mut messages = self.publication.close(&entries);
        messages.extend(self.publication.account(&self.account));
        messages
    }

    /// Bytes in the log.
    pub(super) const fn log_size(&self) -> u64 {
        self.read
    }

    /// The class, instance and name of a stream.
    pub(super) fn stream(&self, number: usize) -> ((u32, u64), &str) {
        let stream = &self.streams[number];
        (stream.key, &stream.name)
    }

    /// What comes next, if anything does.
    pub(super) fn next(&mut self) -> io::Result<Option<Item>> {
        loop {
            if self.chunk.is_none() {
                self.chunk = Chunk::find(&self.root, self.from)?;
            }
            if let Some(item) = self.look()? {
                return Ok(Some(item));
            }
            let Some(chunk) = &self.chunk else { return Ok(None) };
            if !chunk.is_over(&self.root)? {
                return Ok(None);
            }
            // Nothing is added any more: what was added before that was known is the rest, also of streams that began since.
            self.from = chunk.number + 1;
            self.refresh()?;
            if let Some(item) = self.look()? {
                return Ok(Some(item));
            }
            self.chunk = None;
            self.streams.iter_mut().for_each(|stream| stream.known = 0);
        }
    }

    /// Looks at the streams in the present chunk, from one after the other.
    fn look(&mut self) -> io::Result<Option<Item>> {
        let Some(chunk) = &mut self.chunk else { return Ok(None) };
        let count = self.streams.len();
        for at in 0..count {
            let number = (self.turn + at) % count;
            let stream = &mut self.streams[number];
            let before = chunk.before(stream.key);
            if let Some(packets) = before.checked_sub(stream.place.passed).filter(|packets| *packets > 0) {
                stream.place.passed = before;
                return Ok(Some(Item::Removed { stream: number, behind: stream.place, packets }));
            }
            if stream.place.passed >= stream.known {
                stream.known = chunk.packets(stream.key, &stream.file)?;
            }
            if stream.place.passed >= stream.known {
                continue;
            }
            let Some(file) = chunk.file(stream.key, &stream.file)? else { continue };
            let (offset, index) = file.entry(stream.place.passed - before)?;
            let previous = stream.place.last;
            stream.place = Place { passed: stream.place.passed + 1, last: index.packet_number };
            self.turn = number + 1;
            return Ok(Some(Item::Packet(Packet {
                stream: number,
                behind: stream.place,
                previous,
                file: Arc::clone(&file.data),
                offset,
                size: usize::try_from(index.content_size / 8).unwrap_or(usize::MAX),
            })));
        }
        Ok(None)
    }

    /// The number of the last packet of a stream that was read, or [`NO_SEQ`](tracepoint_wire::stream::NO_SEQ).
    pub(super) fn last(&self, number: u64) -> Option<u64> {
        Some(self.streams.get(usize::try_from(number).ok()?)?.place.last)
    }

    /// A packet that was read is passed over: the next one of its stream names the one before it.
    pub(super) fn pass_over(&mut self, number: usize, previous: u64) -> Place {
        let place = &mut self.streams[number].place;
        place.last = previous;
        *place
    }

    /// Whether there is something to publish.
    pub(super) fn has_more(&mut self) -> bool {
        !self.control.is_empty() || self.is_whole || self.unpublished().is_ok_and(|packets| packets > 0)
    }

    /// The packets that are stored, and that the broker does not have.
    pub(super) fn unpublished(&mut self) -> io::Result<u64> {
        let mut last;
        let chunk = match &mut self.chunk {
            Some(chunk) if !chunk.is_over(&self.root)? => chunk,
            _ => {
                last = Chunk::last(&self.root)?;
                let Some(last) = &mut last else { return Ok(0) };
                last
            }
        };
        let mut packets = 0;
        for (stream, published) in self.streams.iter().zip(&self.position.streams) {
            packets += chunk.packets(stream.key, &stream.file)?.saturating_sub(published.passed);
        }
        Ok(packets)
    }
}
