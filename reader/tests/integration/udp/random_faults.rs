//! Random faults of a network.

use super::link::{Faults, Random};
use std::time::Duration;

/// Faults of every kind: up to half of the datagrams lost, and overtaken by up to 1000.
pub fn random_faults(random: &mut Random) -> Faults {
    let reordering = [0, 1, 5, 30, 200, 1000][random.below(6) as usize];
    Faults {
        loss: [0, 1, 10, 100, 500][random.below(5) as usize],
        duplicates: [0, 10, 200][random.below(3) as usize],
        reordering: if reordering == 0 { 0 } else { random.below(reordering) + 1 },
        truncation: [0, 0, 20][random.below(3) as usize],
        corruption: [0, 0, 20][random.below(3) as usize],
        pauses: [0, 0, 2][random.below(3) as usize],
        pause: Duration::from_millis(random.below(700)),
    }
}
