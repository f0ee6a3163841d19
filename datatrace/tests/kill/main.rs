//! `kill -9` at random instants: the file opens, holds all that was flushed, and nothing that is not whole.
//!
//! 140 kills, or as many as `DATATRACE_KILLS` says. The program starts itself as the one that is killed.
#![forbid(unsafe_code)]

mod judge;
#[path = "../../../tests/support/seed.rs"]
mod seed;
mod victim;

use datatrace::{Layout, Version};
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// How the file of a round is laid out.
#[derive(Clone, Copy, Debug)]
struct Round {
    version: Version,
    logsize: u32,
    filesize: u32,
    full_size: bool,
    /// Whether the header is written, not stored through a mapping.
    positional: bool,
    /// The longest time that the victim has.
    most: Duration,
}

impl Round {
    fn of(number: usize) -> Self {
        let version = if number.is_multiple_of(2) { Version::ByteStream } else { Version::Framed };
        let framed = version == Version::Framed;
        // Small ones for many headers, odd ones for entries that cross, large ones for kills within a slot.
        let sizes = if framed { [64, 4104, 65_536, 400_000] } else { [60, 4101, 65_536, 399_999] };
        let logsize = sizes[number / 2 % 4];
        let filesize = [2, 3, 7][number / 8 % 3];
        Self {
            version,
            logsize,
            filesize,
            full_size: framed && (number / 2).is_multiple_of(3),
            positional: number / 24 % 2 == 1,
            most: Duration::from_millis(4),
        }
    }

    fn layout(&self) -> Layout {
        let layout = Layout::new(self.logsize, self.filesize).version(self.version);
        if self.full_size { layout.full_size() } else { layout }
    }

    /// Entries' bytes that a slot takes.
    fn capacity(&self) -> u64 {
        u64::from(self.logsize) - self.version.frame_size() as u64
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "victim") {
        victim::write_for_ever(arguments[2].as_ref(), Round::of(arguments[3].parse().expect("a number")));
    }
    // The question of a test runner for the names of the tests.
    if arguments.iter().any(|word| word == "--list") {
        if !arguments.iter().any(|word| word == "--ignored") {
            println!("kills: test");
        }
        return;
    }
    let kills =
        std::env::var("DATATRACE_KILLS").map_or(140, |kills| kills.parse().expect("DATATRACE_KILLS is a number"));
    let mut in_progress = 0;
    let mut random = seed::or(0x9E37_79B9_7F4A_7C15) | 1;
    for number in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let round = Round::of(number);
        let wait = Duration::from_nanos(random % round.most.as_nanos() as u64);
        in_progress += usize::from(kill_once(number, round, wait));
    }
    println!("{kills} kills, {in_progress} of them while a slot was in progress: nothing torn, nothing lost");
}

/// Whether a slot was in progress.
fn kill_once(number: usize, round: Round, wait: Duration) -> bool {
    let place = tempfile::tempdir().expect("a directory");
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.arg("victim").arg(place.path()).arg(number.to_string()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut ready = [0];
    child.stdout.take().expect("piped").read_exact(&mut ready).expect("it says that it is ready");
    sleep(wait);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    judge::judge(place.path(), round).unwrap_or_else(|reason| {
        let kept = place.keep();
        panic!("kill {number}, {round:?}, after {wait:?}: {reason}; {}", kept.display())
    })
}
