//! The link between the hosts, which loses packets and damages some.

use std::collections::VecDeque;

/// Delay of the link in ticks.
const DELAY: u32 = 3;

/// A link in one direction.
pub(crate) struct Link {
    random: u64,
    flying: VecDeque<(u32, Vec<u8>)>,
    pub(crate) lost: u64,
    pub(crate) damaged: u64,
}

impl Link {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: seed | 1, flying: VecDeque::new(), lost: 0, damaged: 0 }
    }

    /// Sends a packet. Of a hundred packets ten are lost, and two have a bit flipped.
    pub(crate) fn send(&mut self, tick: u32, mut packet: Vec<u8>) {
        match self.next() % 100 {
            0..10 => {
                self.lost += 1;
                return;
            }
            10..12 => {
                let bit = (self.next() % (8 * packet.len() as u64)) as usize;
                packet[bit / 8] ^= 1 << (bit % 8);
                self.damaged += 1;
            }
            _ => {}
        }
        self.flying.push_back((tick + DELAY, packet));
    }

    /// The next packet that has arrived.
    pub(crate) fn receive(&mut self, tick: u32) -> Option<Vec<u8>> {
        let arrived = self.flying.front().is_some_and(|(arrives, _)| *arrives <= tick);
        arrived.then(|| self.flying.pop_front())?.map(|(_, packet)| packet)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }

    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }
}
