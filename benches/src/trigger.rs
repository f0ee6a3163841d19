//! The cost that a trigger with an event rule adds to a recorded event that does not match: alternating pairs of loops with and without the trigger.
//!
//! `trigger [ROUNDS]` prints medians, in ns per event, and the interval that contains half of the differences.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;
use tracepoint_benches::{Recording, small, watch};

/// Events per loop.
const EVENTS: u32 = 1 << 20;

/// The time per event in ns, including the loop.
fn measure() -> f64 {
    let began = Instant::now();
    for i in 0..EVENTS {
        tracepoint::trace!(small(black_box(i.cast_signed()), black_box(7), black_box(i.into())));
    }
    began.elapsed().as_secs_f64() * 1e9 / f64::from(EVENTS)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(101);
    let _recording = Recording::start("bench:small", 1);
    measure();
    let (mut plain, mut watched, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        // The order alternates, so that a drift of the machine does not favour one.
        let with = || {
            let watch = watch();
            let time = measure();
            drop(watch);
            time
        };
        let (without, with) = if round % 2 == 0 {
            (measure(), with())
        } else {
            let with = with();
            (measure(), with)
        };
        plain.push(without);
        watched.push(with);
        added.push(with - without);
    }
    let ([_, plain, _], [_, watched, _], [low, median, high]) =
        (quartiles(plain), quartiles(watched), quartiles(added));
    println!("recorded {plain:.2} ns, with a trigger {watched:.2} ns, added {median:.2} ({low:.2} to {high:.2}) ns");
}
