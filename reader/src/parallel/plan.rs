//! The order in which the parts of streams are read.

use crate::stream::StreamReader;
use std::collections::VecDeque;

/// A part of a stream.
pub(super) struct Part {
    /// The stream, and the number of the part in it.
    pub(super) place: (usize, usize),
    pub(super) reader: StreamReader,
    /// True for the rest of the stream.
    pub(super) is_last: bool,
}

/// The unread streams, starting with the next part of the first one. Iterates over the parts, which are located when they are taken.
pub(super) struct Plan {
    /// Each with the number of its parts that may be read separately from the rest.
    streams: VecDeque<(usize, StreamReader, usize)>,
    /// The number of the next part in the first stream.
    part: usize,
    bytes: u64,
}

impl Plan {
    /// Divides streams into parts of about `bytes` bytes, or not at all if that is 0.
    pub(super) fn new(streams: impl Iterator<Item = (StreamReader, usize)>, bytes: u64) -> Self {
        let streams = streams.enumerate().map(|(index, (reader, parts))| (index, reader, parts)).collect();
        Self { streams, part: 0, bytes }
    }
}

impl Iterator for Plan {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (index, reader, parts) = self.streams.front_mut()?;
        let (index, part) = (*index, self.part);
        let divides = self.bytes > 0 && part < *parts;
        if let Some(reader) = divides.then(|| reader.split(self.bytes)).flatten() {
            self.part += 1;
            return Some(Part { place: (index, part), reader, is_last: false });
        }
        self.part = 0;
        let (_, reader, _) = self.streams.pop_front()?;
        Some(Part { place: (index, part), reader, is_last: true })
    }
}
