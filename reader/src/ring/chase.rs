//! Copies the packets of a ring that somebody overwrites meanwhile.
//!
//! The writer takes the oldest place next, so the copy begins there: whoever copies faster than the writer writes is never met. But
//! nothing else may be done between two places, and whoever copies may lose the processor for longer than the writer takes for the
//! whole ring. Then it is done again.

use super::counters::StreamCounters;
use super::places::Place;
use super::{Ring, Side};
use crate::error::ReadError;

/// Streams larger than this, in bytes, are not copied as a whole: a file can say that it is of any size.
const LARGEST: u64 = 1 << 30;
/// How often a copy is made, at most.
const TRIES: u32 = 24;

/// One stream of a ring at one moment, as good as it can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chased {
    /// The stream's counters, as they were just before.
    pub counters: StreamCounters,
    /// Its places, in the order of their packets.
    pub places: Vec<Place>,
}

impl Ring {
    /// All packets of one of its streams, copied while they are written to and overwritten, without a pause in between. Where the
    /// writer was faster, the copy is made again, 24 times at most; the best counts. Takes as much memory as the ring, twice.
    ///
    /// # Errors
    /// As [`Ring::counters`].
    pub fn chase(&self, side: Side) -> Result<Chased, ReadError> {
        let mut best = self.copy(side)?;
        for _ in 1..TRIES {
            if best.missed() == 0 {
                break;
            }
            let next = self.copy(side)?;
            if next.bytes() > best.bytes() {
                best = next;
            }
        }
        Ok(best)
    }

    /// Whether a stream is no larger than what is worth two copies in memory: 1 GiB.
    pub(crate) fn can_be_chased(&self, side: Side) -> bool {
        let places = self.header.places(side);
        places.size.saturating_mul(places.count) <= LARGEST
    }

    fn copy(&self, side: Side) -> Result<Chased, ReadError> {
        let counters = self.counters(side)?;
        let places = self.places(side, &counters).collect::<Result<_, _>>()?;
        Ok(Chased { counters, places })
    }
}

impl Chased {
    /// Places whose packet was gone when it was their turn.
    fn missed(&self) -> usize {
        self.places.iter().filter(|place| matches!(place, Place::Torn(_))).count()
    }

    /// Bytes of all packets.
    fn bytes(&self) -> usize {
        let bytes = |place: &Place| if let Place::Packet(packet) = place { packet.bytes.len() } else { 0 };
        self.places.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::tests::{Changing, ring};
    use super::*;
    use std::cell::Cell;
    use std::path::Path;

    /// Whenever the writer comes in between, there is a packet in the end: the one before or the one after.
    #[test]
    fn a_copy_that_was_overtaken_is_made_again() {
        let (before, after) = (ring(3, &[3; 8]), ring(4, &[4; 64]));
        let mut found = Vec::new();
        for reads in 0..12 {
            let bytes = Changing { before: before.clone(), after: after.clone(), reads: Cell::new(reads) };
            // A header that is read in parts of both is none.
            let Ok(Some(ring)) = Ring::of(Path::new("ring"), Box::new(bytes)) else { continue };
            let chased = ring.chase(Side::Main).expect("it can be read");
            let [Place::Packet(packet)] = &chased.places[..] else { panic!("after {reads} reads: {chased:?}") };
            assert_eq!(packet.number, chased.counters.closed);
            found.push(packet.number);
        }
        assert!(found.contains(&3) && found.contains(&4), "{found:?}");
    }
}
