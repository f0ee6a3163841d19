//! `kill -9` at random instants of a session that records into a circular file: the file opens, explains itself, and holds whole packets,
//! of each thread without a gap up to the last one that was handed over.
//!
//! 60 kills, or as many as `DATATRACE_KILLS` says. The program starts itself as the one that is killed.
#![forbid(unsafe_code)]

mod judge;
#[path = "../../../tests/support/seed.rs"]
mod seed;
mod victim;

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What a round records.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Slots of the file.
    slots: u32,
    /// Bytes of a ring, of 4 packets.
    ring: usize,
    threads: u32,
    /// A session, whose drain rests between two rounds, or a drain that never does.
    session: bool,
    /// When the victim says that it is ready: the time that it has begins then.
    ready: Ready,
    /// The longest time that the victim has.
    most: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// Before it makes the file.
    BeforeTheFile,
    /// When it has a file.
    WithTheFile,
    /// When the file has gone round.
    Wrapped,
}

impl Round {
    fn of(number: usize) -> Self {
        Self {
            slots: [2, 7, 64, 1][number % 4],
            ring: [4 << 10, 32 << 10, 256 << 10][number / 4 % 3],
            threads: [1, 3][number / 12 % 2],
            session: number.is_multiple_of(3),
            ready: [Ready::BeforeTheFile, Ready::WithTheFile, Ready::Wrapped, Ready::WithTheFile, Ready::Wrapped]
                [number % 5],
            most: Duration::from_millis(30),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "victim") {
        victim::record_for_ever(arguments[2].as_ref(), Round::of(arguments[3].parse().expect("a number")));
    }
    // The question of a test runner for the names of the tests.
    if arguments.iter().any(|word| word == "--list") {
        if !arguments.iter().any(|word| word == "--ignored") {
            println!("kills: test");
        }
        return;
    }
    let kills =
        std::env::var("DATATRACE_KILLS").map_or(60, |kills| kills.parse().expect("DATATRACE_KILLS is a number"));
    let mut seen = judge::Seen::default();
    let mut random = seed::or(0x9E37_79B9_7F4A_7C15) | 1;
    for number in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let round = Round::of(number);
        let wait = Duration::from_nanos(random % round.most.as_nanos() as u64);
        seen.add(&kill_once(number, round, wait));
    }
    println!("{kills} kills: nothing torn, nothing lost; {seen:?}");
    assert!(seen.files >= kills / 5 * 4 && seen.wrapped >= kills / 5 * 2, "the victims said that they were ready");
}

fn kill_once(number: usize, round: Round, wait: Duration) -> judge::Seen {
    let place = tempfile::tempdir().expect("a directory");
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.arg("victim").arg(place.path()).arg(number.to_string()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut ready = [0];
    child.stdout.take().expect("piped").read_exact(&mut ready).expect("it says that it is ready");
    sleep(wait);
    assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    judge::judge(place.path(), round, number.is_multiple_of(8)).unwrap_or_else(|reason| {
        let kept = place.keep();
        panic!("kill {number}, {round:?}, after {wait:?}: {reason}; {}", kept.display())
    })
}
