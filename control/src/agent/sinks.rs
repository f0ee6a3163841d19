//! The sinks of sessions that are controlled from outside: bounded, so that nobody has to look after them.

use rustix::fs::statvfs;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint::channel::Packet;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::{
    ChannelDescription, CtfError, CtfSink, EventDescription, Output, Sink, SinkError, StreamInfo, TraceInfo,
};

/// What part of a file system stays free: one in so many.
const FREE: u64 = 20;
/// How many bytes are written between two looks at what is free.
const LOOK: u64 = 4 << 20;

/// A new CTF directory `name` in `parent`, or `name-2` and so on where that is there already; it takes `most` bytes of packets, and leaves a
/// twentieth of its file system free.
pub(super) fn ctf(parent: &Path, name: &str, most: u64) -> Result<(Bounded, PathBuf), CtfError> {
    let mut path = parent.join(name);
    for number in 2_u64.. {
        match CtfSink::create(&path) {
            Err(CtfError::NotEmpty { .. }) => path = parent.join(format!("{name}-{number}")),
            made => return made.map(|sink| (Bounded { sink, most, taken: 0, looked: None, free: true }, path)),
        }
    }
    unreachable!("no directory has that many entries")
}

/// A sink that refuses what is beyond its bounds.
#[derive(Debug)]
pub(super) struct Bounded {
    sink: CtfSink,
    most: u64,
    taken: u64,
    /// How much was taken when the file system was looked at; `None`: it was not.
    looked: Option<u64>,
    free: bool,
}

impl Bounded {
    fn check(&mut self, len: u64) -> io::Result<()> {
        if self.taken + len > self.most {
            let text = format!("the {} bytes that the session allows (`max_size`) are written", self.most);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        if !self.free || self.looked.is_none_or(|looked| self.taken - looked >= LOOK) {
            let stat = statvfs(self.sink.path())?;
            self.free = stat.f_bavail > stat.f_blocks / FREE;
            self.looked = Some(self.taken);
        }
        if self.free {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, "a twentieth of the file system stays free"))
    }
}

impl Sink for Bounded {
    fn name(&self) -> String {
        self.sink.name()
    }

    fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError> {
        self.sink.begin(trace, channels)
    }

    fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError> {
        self.sink.describe(events)
    }

    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        let len = packet.bytes.len() as u64;
        // Without the packet that ends a stream nobody could tell what is missing there.
        if packet.events_after > packet.events_before {
            self.check(len)
                .map_err(|error| SinkError::new(format!("write to {}", self.sink.path().display()), error))?;
        }
        self.sink.packet(stream, packet)?;
        self.taken += len;
        Ok(())
    }

    fn finish(&mut self, account: &Account) -> Result<(), SinkError> {
        self.sink.finish(account)
    }

    fn file_of(&self, stream: &StreamInfo) -> String {
        self.sink.file_of(stream)
    }

    fn output(&self) -> Option<Output> {
        self.sink.output()
    }
}

/// Takes nothing along: the session keeps its events in the rings.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Sink for Nowhere {
    fn name(&self) -> String {
        "the rings".to_owned()
    }

    fn begin(&mut self, _: &TraceInfo, _: &[ChannelDescription]) -> Result<(), SinkError> {
        Ok(())
    }

    fn describe(&mut self, _: &[EventDescription]) -> Result<(), SinkError> {
        Ok(())
    }

    fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self, _: &Account) -> Result<(), SinkError> {
        Ok(())
    }
}
