//! Progress of publishing a trace, over all connections.

use std::collections::BTreeSet;
use tracepoint_wire::nats::LONGEST_PIECE;

/// A message that must be stored before the next one is published.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Hello,
    /// Metadata up to this byte.
    Metadata(usize),
    /// The announcement of the stream with this number.
    Announce(usize),
}

/// The stored steps.
#[derive(Debug, Default)]
pub(in crate::stream) struct Published {
    hello: bool,
    metadata: usize,
    streams: BTreeSet<usize>,
    /// The number of the last synchronisation point.
    pub(super) syncs: u64,
}

impl Published {
    pub(super) fn done(&mut self, step: Step) {
        match step {
            Step::Hello => self.hello = true,
            Step::Metadata(end) => self.metadata = end,
            Step::Announce(stream) => drop(self.streams.insert(stream)),
        }
    }

    pub(super) const fn hello(&self) -> bool {
        self.hello
    }

    /// Returns whether a stream is announced.
    pub(super) fn knows(&self, stream: usize) -> bool {
        self.streams.contains(&stream)
    }

    /// Returns the next piece of the metadata, and its end offset.
    pub(super) fn metadata<'m>(&self, text: &'m [u8]) -> Option<(&'m [u8], usize)> {
        let end = text.len().min(self.metadata + LONGEST_PIECE);
        let piece = text.get(self.metadata..end).filter(|piece| !piece.is_empty())?;
        Some((piece, end))
    }
}
