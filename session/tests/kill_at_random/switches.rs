//! Where the kills hit: the core's points tell, of each stream, which was passed last.

use crate::WATCHED;
use crate::common::oracle::Words;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracepoint_ring::channel::failpoint::{Point, watch};

/// How many streams are looked at: those of the first rings, which the threads have.
const STREAMS: usize = 16;
/// How long is waited for a thread that stays in a packet switch.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long a thread that is running is in one at most, mostly.
const STAY: Duration = Duration::from_micros(10);

/// Where the kills hit.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    kills: u64,
    inside: u64,
    last_points: BTreeMap<&'static str, u64>,
}

/// In the process that is to be killed.
pub(crate) fn tell(words: &'static Words) {
    watch(&words[WATCHED..]);
}

/// Waits until a thread stays in a packet switch: it is not running, and a kill finds it there, while others are wherever they are. A
/// switch that is seen to begin is over before a kill arrives. Does not wait for ever.
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

/// The last points of streams whose owners are in a packet switch.
fn points_inside(words: &Words) -> impl Iterator<Item = Point> {
    let last = |word: u64| Point::ALL.get(usize::try_from(word).ok()?.checked_sub(1)?);
    let points = words[WATCHED..][..STREAMS].iter().filter_map(move |word| last(word.load(Ordering::Relaxed)));
    points.copied().filter(|point| (Point::SwitchRequested..Point::Opened).contains(point))
}

impl Switches {
    /// A kill more.
    pub(crate) fn add(&mut self, words: &Words) {
        self.kills += 1;
        let mut points = points_inside(words).peekable();
        self.inside += u64::from(points.peek().is_some());
        for point in points {
            *self.last_points.entry(point.name()).or_default() += 1;
        }
    }

    /// Says how many hit a packet switch, and demands that it is one in twenty.
    pub(crate) fn check(&self) {
        println!("{} kills, {} inside a packet switch: {:?}", self.kills, self.inside, self.last_points);
        assert!(self.inside * 20 >= self.kills, "too few kills hit a packet switch");
    }
}
