//! `kill -9` at random instants: the file can be opened, and holds all flushed entries and no partial one.
//!
//! 140 kills, or `DATATRACE_KILLS`. The program starts itself as the victim.
#![forbid(unsafe_code)]

mod judge;
#[path = "../../../tests/support/kills.rs"]
mod kills;
mod victim;

use datatrace::{Layout, Version};
use std::time::Duration;

/// The layout of the file in a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    version: Version,
    logsize: u32,
    filesize: u32,
    full_size: bool,
    /// True if the header is stored through a mapping instead of by `pwrite`.
    maps_header: bool,
}

impl kills::Round for Round {
    fn of(number: usize) -> Self {
        let version = if number.is_multiple_of(2) { Version::ByteStream } else { Version::Framed };
        let framed = version == Version::Framed;
        // Small slots for many headers, odd sizes for entries that cross slots, large slots for kills within a slot.
        let sizes = if framed { [64, 4104, 65_536, 400_000] } else { [60, 4101, 65_536, 399_999] };
        let logsize = sizes[number / 2 % 4];
        let filesize = [2, 3, 7][number / 8 % 3];
        Self {
            version,
            logsize,
            filesize,
            full_size: framed && (number / 2).is_multiple_of(3),
            maps_header: (number / 24).is_multiple_of(2),
        }
    }

    fn longest_run(&self) -> Duration {
        Duration::from_millis(4)
    }
}

impl Round {
    fn layout(&self) -> Layout {
        let layout = Layout::new(self.logsize, self.filesize).version(self.version);
        if self.full_size { layout.full_size() } else { layout }
    }

    /// The bytes of entries that fit into a slot.
    fn capacity(&self) -> u64 {
        u64::from(self.logsize) - self.version.frame_size() as u64
    }
}

fn main() {
    let mut in_progress = 0;
    let kills = kills::run(140, victim::write_for_ever, |_, directory, round| {
        in_progress += usize::from(judge::judge(directory, round)?);
        Ok(())
    });
    let Some(kills) = kills else { return };
    println!("{kills} kills, {in_progress} of them while a slot was in progress: nothing torn, nothing lost");
}
