//! The cost of the Data-Trace library, compared with plain code for the same purpose: `datatrace [ROUNDS [DIRECTORY]]`
//! prints tables. Files are created in DIRECTORY, or in the directory for temporary files.
//!
//! The sides of a comparison run alternately; a figure is the median of its rounds, a ratio the median of the rounds' ratios.

#[path = "datatrace/bytes.rs"]
mod bytes;
#[path = "datatrace/entries.rs"]
mod entries;
#[path = "datatrace/mapped.rs"]
mod mapped;

use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(Ok(15), |n| n.parse());
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let (Ok(rounds @ 1..), None) = (rounds, arguments.next()) else {
        eprintln!("usage: datatrace [ROUNDS [DIRECTORY]]");
        return ExitCode::from(2);
    };
    let place = tempfile::tempdir_in(&directory).expect("a directory for files");
    bytes::compare(place.path(), rounds);
    println!();
    entries::compare(place.path(), rounds);
    ExitCode::SUCCESS
}

/// One side of a comparison: runs once in a directory, and returns the duration of the measured part.
type Side<'a> = (&'a str, &'a dyn Fn(&Path) -> Duration);

/// Runs the sides alternately. Returns for each the median, and the median of its ratio to the first.
fn alternate(place: &Path, rounds: usize, sides: &[Side]) -> Vec<(Duration, f64)> {
    let mut times = vec![Vec::new(); sides.len()];
    for round in 0..=rounds {
        for ((_, side), times) in sides.iter().zip(&mut times) {
            let time = side(place);
            // The first round is a warm-up.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let first = times[0].clone();
    let of = |times: &mut Vec<Duration>| {
        let mut ratios: Vec<f64> =
            times.iter().zip(&first).map(|(time, first)| time.as_secs_f64() / first.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        times.sort();
        (times[times.len() / 2], ratios[ratios.len() / 2])
    };
    times.iter_mut().map(of).collect()
}

/// Processor time of this thread: writes go to the page cache, and the work of other programs is not counted.
fn timed(work: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned() as u32)
    };
    let start = now();
    work();
    now().saturating_sub(start)
}
