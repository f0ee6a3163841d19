//! The unpublished part of a trace: its log and stream files, from a position on.

mod chunk;
mod log;
mod position;

pub(crate) use log::{LOG, LogWriter};
pub(crate) use position::{Place, Position, has_published};

use crate::names::sanitised;
use chunk::Chunk;
use log::frame_at;
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
    /// The name given by the sender, and the file name.
    name: String,
    file: String,
    /// Number of events up to its end, once the sender has reported it.
    events_after: u64,
    /// The next packet to read, and the number of packets known to be in files.
    place: Place,
    known: u64,
}

/// A packet to publish.
#[derive(Debug)]
pub(crate) struct Packet {
    /// The number of its stream, and the stream's position after it.
    pub(crate) stream: usize,
    pub(crate) behind: Place,
    /// The number of the previous packet.
    pub(crate) previous: u64,
    pub(crate) file: Arc<File>,
    pub(crate) offset: u64,
    /// Size in bytes without padding.
    pub(crate) size: usize,
}

/// The next item of a stream.
#[derive(Debug)]
pub(crate) enum Item {
    Packet(Packet),
    /// Packets that were removed before they were read.
    Removed {
        stream: usize,
        behind: Place,
        packets: u64,
    },
}

/// A trace that is published.
#[derive(Debug)]
pub(crate) struct Spool {
    pub(crate) root: PathBuf,
    pub(crate) name: String,
    pub(crate) publication: Publication,
    /// Progress at the broker.
    pub(crate) position: Position,
    log: File,
    /// Offset up to which the log is read.
    read: u64,
    /// Messages of the log, with their end offsets.
    control: VecDeque<(Publish, u64)>,
    streams: Vec<Stream>,
    account: Vec<u8>,
    is_whole: bool,
    /// The current chunk; `None` stands for the first one with number `from` or more.
    chunk: Option<Chunk>,
    from: u64,
    /// The stream to check first.
    turn: usize,
}

impl Spool {
    /// Opens the spool of the session in this directory; `None` if it has no log.
    pub(crate) fn open(root: &Path) -> io::Result<Option<Self>> {
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

    /// Restarts at the position: data read beyond it is read again.
    pub(crate) fn rewind(&mut self) -> io::Result<()> {
        (self.read, self.from, self.chunk, self.is_whole) = (0, 0, None, false);
        self.control.clear();
        self.streams.clear();
        self.account.clear();
        self.refresh()
    }

    /// Reads new frames of the log.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
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
                        // The account starts again if it could not be written completely.
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

    /// Removes and returns the next message of the log, with its end offset.
    pub(crate) fn pop_control(&mut self) -> Option<(Publish, u64)> {
        self.control.pop_front()
    }

    /// Returns whether the broker has the beginning of the trace. The first message is metadata; without metadata there is no trace.
    pub(crate) const fn has_begun(&self) -> bool {
        self.position.log > 0
    }

    /// Returns whether the sender has sent its account, after which nothing follows.
    pub(crate) const fn has_account(&self) -> bool {
        self.is_whole
    }

    /// Returns the messages that end the trace. They count the packets that the collector has stored, so packets that it removed count as missing.
    pub(crate) fn end(&self) -> Vec<Publish> {
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

    /// Returns the number of bytes in the log.
    pub(crate) const fn log_size(&self) -> u64 {
        self.read
    }

    /// Returns the class, instance and name of a stream.
    pub(crate) fn stream(&self, number: usize) -> ((u32, u64), &str) {
        let stream = &self.streams[number];
        (stream.key, &stream.name)
    }

    /// Returns the next item, if there is one.
    pub(crate) fn next(&mut self) -> io::Result<Option<Item>> {
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
            // The chunk is complete: one more read finds the rest, including streams that began meanwhile.
            self.from = chunk.number + 1;
            self.refresh()?;
            if let Some(item) = self.look()? {
                return Ok(Some(item));
            }
            self.chunk = None;
            self.streams.iter_mut().for_each(|stream| stream.known = 0);
        }
    }

    /// Checks the streams in the current chunk, round robin.
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

    /// Returns the number of the last packet read of a stream, or [`NO_SEQ`](tracepoint_wire::stream::NO_SEQ).
    pub(crate) fn last(&self, number: u64) -> Option<u64> {
        Some(self.streams.get(usize::try_from(number).ok()?)?.place.last)
    }

    /// Skips a packet that was read: the next one of its stream refers to the packet before it.
    pub(crate) fn pass_over(&mut self, number: usize, previous: u64) -> Place {
        let place = &mut self.streams[number].place;
        place.last = previous;
        *place
    }

    /// Returns whether there is something to publish.
    pub(crate) fn has_more(&mut self) -> bool {
        !self.control.is_empty() || self.is_whole || self.unpublished().is_ok_and(|packets| packets > 0)
    }

    /// Returns the number of stored packets that the broker does not have.
    pub(crate) fn unpublished(&mut self) -> io::Result<u64> {
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
