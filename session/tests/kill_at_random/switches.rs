//! The places that the kills hit: the core reports for each stream the point that was reached last.

use crate::WATCHED;
use crate::common::oracle::Words;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracepoint_ring::channel::failpoint::{Point, watch};

/// Number of observed streams: those of the first rings, which the threads use.
const STREAMS: usize = 16;
/// Maximum time to wait for a thread that stays in a packet switch.
const PATIENCE: Duration = Duration::from_millis(5);
/// Usual maximum time that a running thread spends in a packet switch.
const STAY: Duration = Duration::from_micros(10);

/// The places that the kills hit.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    kills: u64,
    inside: u64,
    last_points: BTreeMap<&'static str, u64>,
}

/// In the process that will be killed.
pub(crate) fn tell(words: &'static Words) {
    watch(&words[WATCHED..]);
}

/// Waits until a thread stays in a packet switch: it is not running, and a kill finds it there, while others are at any place. A switch
/// that is seen to begin would be over before a kill arrives. The wait has a time limit.
pub(crate) fn wait(words: &Words) {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let stays = |last: &Vec<_>| points_inside(words).eq(last.iter().copied());
        let points: Vec<_> = points_inside(words).collect();
        let seen = Instant::now();
        while !points.is_empty() && stays(&points) {
            if seen.elapsed() > STAY {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// Returns the last points of streams whose owners are in a packet switch.
fn points_inside(words: &Words) -> impl Iterator<Item = Point> {
    let last = |word: u64| Point::ALL.get(usize::try_from(word).ok()?.checked_sub(1)?);
    let points = words[WATCHED..][..STREAMS].iter().filter_map(move |word| last(word.load(Ordering::Relaxed)));
    points.copied().filter(|point| (Point::SwitchRequested..Point::Opened).contains(point))
}

impl Switches {
    /// Counts a kill.
    pub(crate) fn add(&mut self, words: &Words) {
        self.kills += 1;
        let mut points = points_inside(words).peekable();
        self.inside += u64::from(points.peek().is_some());
        for point in points {
            *self.last_points.entry(point.name()).or_default() += 1;
        }
    }

    /// Prints how many hit a packet switch, and asserts that at least one in twenty did.
    pub(crate) fn check(&self) {
        println!("{} kills, {} inside a packet switch: {:?}", self.kills, self.inside, self.last_points);
        assert!(self.inside * 20 >= self.kills, "too few kills hit a packet switch");
    }
}
