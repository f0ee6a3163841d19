//! The headers of the packets in a stream file, one after the other.

use std::path::{Path, PathBuf};

use crate::checked_packet;
use crate::decode::State;
use crate::error::ReadError;
use crate::loss::Damage;
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::source::{FileWindow, Source};
use crate::window::Window;

/// Iterates over the packet headers of one stream file.
///
/// A damaged packet is left out, and [`Damage`] takes its place. The iteration ends where no further packet can be found.
#[derive(Debug)]
pub struct Packets {
    metadata: Metadata,
    file: PathBuf,
    window: Window,
    state: State,
    offset: u64,
    /// Number of packets so far.
    number: u64,
    done: bool,
}

impl Packets {
    /// Opens a stream file.
    ///
    /// # Errors
    /// [`ReadError::Io`] if it cannot be opened.
    pub fn open(metadata: &Metadata, file: &Path) -> Result<Self, ReadError> {
        let window = Window::of_file(FileWindow::open(file).map_err(|error| ReadError::io(file, error))?);
        let (metadata, state) = (metadata.clone(), State::new(metadata.slots()));
        Ok(Self { metadata, file: file.to_owned(), window, state, offset: 0, number: 0, done: false })
    }
}

impl Iterator for Packets {
    type Item = Result<Packet, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.offset == self.window.length() {
            return None;
        }
        let damage = |offset, reason| Some(Err(Damage { file: self.file.clone(), offset, reason }));
        if self.offset > self.window.length() {
            self.done = true;
            return damage(self.window.length(), cut(self.offset - self.window.length()));
        }
        self.number += 1;
        match checked_packet::open(&mut self.window, &self.metadata, &mut self.state, self.offset, self.number) {
            Ok(packet) => {
                self.state.clock = packet.end.unwrap_or(self.state.clock).max(self.state.clock);
                self.offset = self.offset.saturating_add(packet.size());
                Some(Ok(packet))
            }
            Err(damaged) => {
                self.done = damaged.next.is_none();
                self.offset = damaged.next.unwrap_or(self.offset);
                damage(damaged.offset, damaged.reason)
            }
        }
    }
}

/// The reason of damage if the file ends before a packet does.
pub(crate) fn cut(missing: u64) -> String {
    format!("the file ends {missing} bytes before its last packet does")
}

/// Iterates over the packet headers of a file, up to the first invalid one. Does not verify checksums.
pub(crate) struct Headers<'a> {
    metadata: &'a Metadata,
    window: FileWindow,
    state: State,
    offset: u64,
}

impl<'a> Headers<'a> {
    /// Starts at the packet at `offset`, before which the clock of the stream was at `clock`. `None` if the file cannot be opened.
    pub(crate) fn open(metadata: &'a Metadata, file: &Path, offset: u64, clock: u64) -> Option<Self> {
        Some(Self::of_window(metadata, FileWindow::open(file).ok()?, offset, clock))
    }

    /// The same for a window.
    pub(crate) fn of_window(metadata: &'a Metadata, window: FileWindow, offset: u64, clock: u64) -> Self {
        let mut state = State::new(metadata.slots());
        state.clock = clock;
        Self { metadata, window, state, offset }
    }

    /// The offset of the next packet, in bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The clock of the stream after the last packet, in cycles.
    pub(crate) fn clock(&self) -> u64 {
        self.state.clock
    }
}

impl Iterator for Headers<'_> {
    type Item = Packet;

    /// The next complete packet.
    fn next(&mut self) -> Option<Packet> {
        let before = self.state.clock;
        let packet = Packet::open(&mut self.window, self.metadata, &mut self.state, self.offset).ok();
        let whole = packet.filter(|packet| packet.size() > 0 && packet.size() <= self.window.length() - self.offset);
        self.state.clock = whole.as_ref().and_then(|packet| packet.end).unwrap_or(before).max(before);
        self.offset += whole.as_ref().map_or(0, Packet::size);
        whole
    }
}
