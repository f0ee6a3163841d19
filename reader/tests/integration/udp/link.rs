//! A network that loses, duplicates, reorders, truncates, corrupts and delays datagrams, deterministically for each seed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A generator of pseudo-random numbers, the same ones for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x5DEE_CE66_D201_3E6F)
    }

    /// Splitmix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True with a probability of `per_mille` in 1000.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// The faults of one direction of a network. Probabilities are per mille of the datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: u64,
    pub duplicates: u64,
    /// The number of later datagrams that may overtake one.
    pub reordering: u64,
    pub truncation: u64,
    pub corruption: u64,
    /// The probability that the link stops, and the maximum duration.
    pub pauses: u64,
    pub pause: Duration,
}

impl Faults {
    /// No faults.
    pub const NONE: Self =
        Self { loss: 0, duplicates: 0, reordering: 0, truncation: 0, corruption: 0, pauses: 0, pause: Duration::ZERO };
}

/// One direction.
#[derive(Debug)]
pub struct Link {
    random: Random,
    faults: Faults,
    count: u64,
    /// Datagrams under way, by the number of the datagram after which each is delivered, and by its own number.
    travelling: BTreeMap<(u64, u64), Vec<u8>>,
    arrived: VecDeque<Vec<u8>>,
    last: Duration,
    paused_until: Duration,
    /// Number of datagrams that do not arrive; followed by the number of truncated ones.
    pub lost: u64,
    pub truncated: u64,
}

/// Without more traffic, overtaken datagrams arrive after this time.
const FLUSH: Duration = Duration::from_millis(20);

impl Link {
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self {
            random: Random::new(seed),
            faults,
            count: 0,
            travelling: BTreeMap::new(),
            arrived: VecDeque::new(),
            last: Duration::ZERO,
            paused_until: Duration::ZERO,
            lost: 0,
            truncated: 0,
        }
    }

    pub fn send(&mut self, bytes: &[u8], now: Duration) {
        let faults = self.faults;
        self.count += 1;
        self.last = now;
        if now >= self.paused_until && self.random.chance(faults.pauses) {
            self.paused_until = now + faults.pause;
        }
        if self.random.chance(faults.loss) {
            self.lost += 1;
            return self.deliver_due();
        }
        let copies = if self.random.chance(faults.duplicates) { 2 } else { 1 };
        for copy in 0..copies {
            let mut bytes = bytes.to_vec();
            if self.random.chance(faults.truncation) {
                bytes.truncate(self.random.below(bytes.len() as u64) as usize);
                self.truncated += 1;
            }
            if !bytes.is_empty() && self.random.chance(faults.corruption) {
                for _ in 0..=self.random.below(3) {
                    let place = self.random.below(bytes.len() as u64) as usize;
                    bytes[place] ^= 1 << self.random.below(8);
                }
            }
            let after = self.count + self.random.below(faults.reordering + 1);
            self.travelling.insert((after, 2 * self.count + copy), bytes);
        }
        self.deliver_due();
    }

    fn deliver_due(&mut self) {
        while let Some(first) = self.travelling.first_entry().filter(|first| first.key().0 <= self.count) {
            self.arrived.push_back(first.remove());
        }
    }

    /// The next datagram that has arrived.
    pub fn take(&mut self, now: Duration) -> Option<Vec<u8>> {
        if now < self.paused_until {
            return None;
        }
        if self.arrived.is_empty() && now >= self.last + FLUSH {
            self.arrived.extend(std::mem::take(&mut self.travelling).into_values());
        }
        self.arrived.pop_front()
    }
}
