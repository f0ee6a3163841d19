//! Derives the sizes of rings, packets and records from a configuration, and checks its values.

use super::super::packet_header::HEADER_SIZE;
use super::{Channel, ConfigError, Policy, SPARES_AT_FIRST};
use std::time::Duration;

/// Size of the smallest rings of a channel that is [sized by need](Channel::sized_by_need), in bytes.
const SMALLEST_SIZE: usize = 64 << 10;
/// Minimum packet size of rings that are smaller than the first ones.
const SMALLEST_PACKET: usize = 16 << 10;

/// Packet size in bytes and number of packets of small rings.
const SMALL_PACKETS: [usize; 2] = [1 << 10, 16];
/// A channel with a lower limit on rings has no small ones.
const FEWEST_WITH_SMALL: usize = 256;

/// The upper limit of [`Channel::wait`].
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl Channel {
    /// Number of spare rings created when the channel is opened, and how many of them are required.
    pub(in crate::channel) fn first_rings(&self) -> [usize; 2] {
        let mut rings = self.at_first.or(self.spares).unwrap_or(SPARES_AT_FIRST).clamp(1, self.max_rings);
        if self.small_packets().is_some() {
            // Threads start in small rings.
            rings = rings.min(self.spares.unwrap_or(SPARES_AT_FIRST).max(1));
        }
        [rings, rings.min(self.spare_rings().max(1))]
    }

    /// Packet size and number of packets of the small ring of a new thread; `None` if the channel has no small rings: its
    /// rings have a given size, or must keep their history.
    pub(in crate::channel) fn small_packets(&self) -> Option<[usize; 2]> {
        let has_small = self.by_need && self.policy != Policy::Overwrite && self.max_rings >= FEWEST_WITH_SMALL;
        has_small.then_some(SMALL_PACKETS)
    }

    /// Packet size in bytes.
    pub fn packet_size(&self) -> usize {
        // Multiples of eight keep the counters in the headers aligned.
        self.ring_size / self.packets.max(1) / 8 * 8
    }

    /// The sizes of the rings, starting with the first ones: each is half of the previous one, unless the size was given.
    pub(in crate::channel) fn ring_sizes(&self) -> impl Iterator<Item = usize> + use<> {
        let smallest = if self.by_need { SMALLEST_SIZE } else { self.ring_size };
        std::iter::successors(Some(self.ring_size), move |size| (*size > smallest).then_some(size / 2))
    }

    /// Packet size and number of packets of a ring of `ring_size` bytes, which is one of [`ring_sizes`](Self::ring_sizes).
    pub(in crate::channel) fn packets_of(&self, ring_size: usize) -> [usize; 2] {
        if ring_size == self.ring_size {
            return [self.packet_size(), self.packets];
        }
        let packets = (ring_size / SMALLEST_PACKET).clamp(2, self.packets.max(2));
        [ring_size / packets / 8 * 8, packets]
    }

    /// Maximum size of a record in bytes, including its 8-byte header word and contexts: a packet without its header. A larger record
    /// is lost, counted as `too_large`.
    pub fn max_record_size(&self) -> usize {
        self.packet_size().saturating_sub(HEADER_SIZE)
    }

    /// Checks the sizes and the name, as [`OpenChannel::open`](crate::channel::OpenChannel::open) does.
    ///
    /// # Errors
    ///
    /// If a value is invalid. The message lists the valid ones.
    pub fn check(&self) -> Result<(), ConfigError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if self.name.is_empty() || self.name.len() > 64 || self.name.starts_with('.') || !self.name.chars().all(plain) {
            return Err(ConfigError(format!(
                "`{}` is not a channel name: use 1 to 64 letters, digits, `_`, `-` or `.`, not starting with `.`",
                self.name
            )));
        }
        if self.packets < 2 {
            return Err(ConfigError(format!("a ring needs at least 2 packets, not {}", self.packets)));
        }
        if self.packet_size() < 512 || self.packet_size() > 1 << 30 {
            return Err(ConfigError(format!(
                "a ring of {} bytes in {} packets has packets of {} bytes; they need 512 bytes to 1 GiB",
                self.ring_size,
                self.packets,
                self.packet_size()
            )));
        }
        if self.max_wait > LONGEST_WAIT {
            return Err(ConfigError(format!(
                "events cannot wait for {:?}: the limit is {LONGEST_WAIT:?}, because stopping a session waits as long",
                self.max_wait
            )));
        }
        if self.max_rings == 0 {
            return Err(ConfigError("a channel needs at least one ring".to_owned()));
        }
        Ok(())
    }
}
