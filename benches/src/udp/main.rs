//! The rate of the UDP trace server: `udp [ROUNDS]` prints events per second, compared with a bare loop that sends as many prepared datagrams of
//! the same size with the same system call. Both send to a socket on this machine that no program reads.
//! `of bare` compares the durations, `processor` the processor time, which other programs disturb less.
#![forbid(unsafe_code)]

mod bare;
mod served;

use rustix::time::{ClockId, clock_gettime};
use std::process::ExitCode;
use std::time::Duration;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(9), |rounds| rounds.parse());
    let result = rounds.map_err(Into::into).and_then(run);
    result.map_or_else(
        |error: Box<dyn std::error::Error>| {
            eprintln!("udp: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// The duration of something, and its processor time, including the kernel's.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    wall: Duration,
    processor: Duration,
}

impl Spent {
    fn begin() -> Self {
        let read = |clock| {
            let time = clock_gettime(clock);
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
        };
        Self { wall: read(ClockId::Monotonic), processor: read(ClockId::ProcessCPUTime) }
    }

    fn end(self) -> Self {
        let now = Self::begin();
        Self { wall: now.wall.saturating_sub(self.wall), processor: now.processor.saturating_sub(self.processor) }
    }
}

fn run(rounds: usize) -> Outcome {
    println!(
        "{:<6} {:>11} {:>11} {:>10} {:>13} {:>13} {:>8}",
        "mtu", "served M/s", "bare M/s", "of bare", "processor", "per datagram", "MB/s"
    );
    for mtu in [1400, 8900] {
        let mut pairs = Vec::new();
        // A session sends the same data every time; the first one is not counted.
        let sent = served::send(mtu)?;
        for round in 0..rounds.max(1) {
            // Each goes first every other time.
            let before = if round % 2 == 1 { Some(bare::send(&sent)?) } else { None };
            let served = served::send(mtu)?.spent;
            pairs.push((served, before.map_or_else(|| bare::send(&sent), Ok)?));
        }
        let events = float(sent.events);
        let rate = |spent: Spent| events / spent.wall.as_secs_f64() / 1e6;
        let served = median(pairs.iter().map(|(served, _)| rate(*served)));
        let ratio = |of: fn(&Spent) -> Duration| {
            median(pairs.iter().map(|(served, bare)| of(bare).as_secs_f64() / of(served).as_secs_f64()))
        };
        println!(
            "{mtu:<6} {served:>11.1} {:>11.1} {:>10.3} {:>13.3} {:>13.1} {:>8.0}",
            median(pairs.iter().map(|(_, bare)| rate(*bare))),
            ratio(|spent| spent.wall),
            ratio(|spent| spent.processor),
            events / f64::from(sent.datagrams),
            served * float(sent.bytes) / events,
        );
    }
    println!(
        "\n{} MiB at most waited while {} MiB arrived and no client read",
        served::waiting()? >> 20,
        served::TOTAL >> 20
    );
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
