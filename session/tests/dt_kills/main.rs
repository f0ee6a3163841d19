//! `kill -9` at random times of a session that records to a circular file: the file can be opened, has its metadata, and contains whole
//! packets, of each thread without a gap up to the last one that the sink received.
//!
//! 60 kills, or `DATATRACE_KILLS`. The program starts itself as the victim.
#![forbid(unsafe_code)]

#[path = "../../../tests/support/describe.rs"]
mod describe;
mod judge;
#[path = "../../../tests/support/kills.rs"]
mod kills;
mod victim;

use std::time::Duration;

/// The configuration of the victim in a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Slots of the file.
    slots: u32,
    /// Bytes of a ring, of 4 packets.
    ring: usize,
    threads: u32,
    /// True if a session drains the rings, at intervals; otherwise a drain runs without pause.
    session: bool,
    /// The time when the victim writes its ready byte.
    ready: Ready,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// Before it creates the file.
    BeforeTheFile,
    /// After it has created the file.
    WithTheFile,
    /// After the file has wrapped.
    Wrapped,
}

impl kills::Round for Round {
    fn of(number: usize) -> Self {
        Self {
            slots: [2, 7, 64, 1][number % 4],
            ring: [4 << 10, 32 << 10, 256 << 10][number / 4 % 3],
            threads: [1, 3][number / 12 % 2],
            session: number.is_multiple_of(3),
            ready: [Ready::BeforeTheFile, Ready::WithTheFile, Ready::Wrapped, Ready::WithTheFile, Ready::Wrapped]
                [number % 5],
        }
    }

    fn longest_run(&self) -> Duration {
        Duration::from_millis(30)
    }
}

fn main() {
    let mut seen = judge::Seen::default();
    let kills = kills::run(60, victim::record_for_ever, |number, directory, round| {
        seen.add(&judge::judge(directory, round, number.is_multiple_of(8))?);
        Ok(())
    });
    let Some(kills) = kills else { return };
    println!("{kills} kills: nothing torn, nothing lost; {seen:?}");
    assert!(seen.files >= kills / 5 * 4 && seen.wrapped >= kills / 5 * 2, "the victims said that they were ready");
}
