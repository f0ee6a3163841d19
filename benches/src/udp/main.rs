//! What the UDP trace server sends: `udp [ROUNDS]` prints events per second, next to a bare loop that sends as many datagrams of
//! the same size by the same system call. Both go to a socket on this machine that nobody reads from.
#![forbid(unsafe_code)]

mod bare;
mod served;

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

fn run(rounds: usize) -> Outcome {
    println!(
        "{:<8} {:>12} {:>12} {:>10} {:>12} {:>8}",
        "mtu", "served M/s", "bare M/s", "ratio", "per datagram", "MB/s"
    );
    for mtu in [1400, 8900] {
        let mut pairs = Vec::new();
        let mut sent = served::Sent::default();
        for round in 0..rounds.max(1) {
            // Each comes first every other time.
            let before = if round % 2 == 1 { Some(bare::send(mtu, &sent)?) } else { None };
            sent = served::send(mtu)?;
            let bare = before.map_or_else(|| bare::send(mtu, &sent), Ok)?;
            pairs.push((sent.time, bare));
        }
        let events = sent.events as f64;
        let rate = |time: Duration| events / time.as_secs_f64() / 1e6;
        let served = median(pairs.iter().map(|(served, _)| rate(*served)));
        println!(
            "{mtu:<8} {served:>12.1} {:>12.1} {:>10.3} {:>12.1} {:>8.0}",
            median(pairs.iter().map(|(_, bare)| rate(*bare))),
            median(pairs.iter().map(|(served, bare)| bare.as_secs_f64() / served.as_secs_f64())),
            events / f64::from(sent.datagrams),
            served * 1e6 / events * sent.bytes as f64 / 1e6,
        );
    }
    println!(
        "\n{} MiB at most waited while nobody read {} MiB of events",
        served::waiting()? >> 20,
        served::TOTAL >> 20
    );
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
