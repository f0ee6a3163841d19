//! A campaign of kills: the test starts its own program as a victim, kills it at a random instant, and checks the files it leaves.

#[path = "seed.rs"]
mod seed;

use std::fmt::Debug;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// One kill of a campaign.
pub(crate) trait Round: Copy + Debug {
    /// The round with this number.
    fn of(number: usize) -> Self;

    /// The longest time between the ready byte of the victim and its kill.
    fn longest_run(&self) -> Duration;
}

/// Runs `DATATRACE_KILLS` rounds, or `default`. `victim` runs in the program that is killed, in an empty directory; it writes a byte to its
/// standard output when it is ready. `judge` checks the directory. Returns the number of kills, or `None` if the test runner only listed
/// the tests.
pub(crate) fn run<R: Round>(
    default: usize,
    victim: fn(&Path, R) -> !,
    mut judge: impl FnMut(usize, &Path, R) -> Result<(), String>,
) -> Option<usize> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "victim") {
        victim(arguments[2].as_ref(), R::of(arguments[3].parse().expect("a number")));
    }
    if arguments.iter().any(|word| word == "--list") {
        if !arguments.iter().any(|word| word == "--ignored") {
            println!("kills: test");
        }
        return None;
    }
    let kills = std::env::var("DATATRACE_KILLS");
    let kills = kills.map_or(default, |kills| kills.parse().expect("DATATRACE_KILLS is a number"));
    let mut random = seed::or(0x9E37_79B9_7F4A_7C15) | 1;
    for number in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let round = R::of(number);
        let wait = Duration::from_nanos(random % round.longest_run().as_nanos() as u64);
        let place = tempfile::tempdir().expect("a directory");
        kill_once(number, place.path(), wait);
        judge(number, place.path(), round).unwrap_or_else(|reason| {
            let kept = place.keep();
            panic!("kill {number}, {round:?}, after {wait:?}: {reason}; {}", kept.display())
        });
    }
    Some(kills)
}

fn kill_once(number: usize, directory: &Path, wait: Duration) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("victim").arg(directory).arg(number.to_string()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut ready = [0];
    child.stdout.take().expect("piped").read_exact(&mut ready).expect("it writes the ready byte");
    sleep(wait);
    assert!(child.try_wait().expect("a child").is_none(), "the victim ended by itself");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}
