//! The storage rate of a collector: `collected [ROUNDS [DIR [tcp|udp]]]` prints megabytes per second for packets of several sizes, all on this
//! machine.
//!
//! Over TCP the same packets go to `lttng-relayd` and to our collector with the relay protocol, and to our collector with
//! the stream protocol. Over UDP they go to our collector, and datagrams of the same size go to a bare receiver, which appends their contents to a
//! file; for both, the processor time is measured as well. All take turns in each round; the time ends when the receiver has confirmed that
//! everything is stored. Files are in DIR, `/dev/shm` by default, so that no disk is measured.
#![deny(unsafe_code)]

mod bare;
mod datagrams;
mod packets;
mod peers;
mod relay;
mod stream;

use peers::{Ports, Receiver};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tracepoint_benches::children_time;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The first argument of the collector process; followed by that of the bare receiver.
const COLLECTOR: &str = "--collector";
const BARE: &str = "--bare";
/// Number of packet bytes per trial.
const TOTAL: usize = 256 << 20;
/// Sizes of datagrams in bytes.
const MTUS: [usize; 2] = [1400, 8900];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [COLLECTOR, directory] => peers::collect(directory.as_ref()),
        [BARE, directory] => bare::receive(directory.as_ref()),
        [] => run("9", "/dev/shm", None),
        [rounds] => run(rounds, "/dev/shm", None),
        [rounds, directory] => run(rounds, directory, None),
        [rounds, directory, only @ ("tcp" | "udp")] => run(rounds, directory, Some(only)),
        _ => Err("usage: collected [ROUNDS [DIR [tcp|udp]]]".into()),
    };
    result.map_or_else(
        |error| {
            eprintln!("collected: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn run(rounds: &str, directory: &str, only: Option<&str>) -> Outcome {
    let (rounds, directory) = (rounds.parse()?, Path::new(directory));
    println!("{}; {rounds} rounds, each of {} MiB", tracepoint::runtime::platform(), TOTAL >> 20);
    if only != Some("udp") {
        tcp(rounds, directory)?;
    }
    if only != Some("tcp") {
        udp(rounds, directory)?;
    }
    Ok(())
}

fn tcp(rounds: usize, directory: &Path) -> Outcome {
    println!("\n| TCP, packets of | lttng-relayd, MB/s | collector, same protocol | ratio | stream protocol | ratio |");
    println!("|---|---|---|---|---|---|");
    for size in [4 << 10, 32 << 10, 256 << 10, 1 << 20] {
        let packets = packets::make(TOTAL, size);
        let (rates, _) = interleaved(
            rounds,
            &mut [
                &mut || Receiver::relayd(directory).and_then(|to| relay::send(to.ports, &packets, size)),
                &mut || Receiver::collector(directory).and_then(|to| relay::send(to.ports, &packets, size)),
                &mut || Receiver::collector(directory).and_then(|to| stream::send(to.ports, &packets, size, None)),
            ],
        )?;
        let [relayd, stock, ours] = &rates;
        println!(
            "| {} KiB | {:.0} | {:.0} | {:.2} | {:.0} | {:.2} |",
            size >> 10,
            median(relayd.clone()),
            median(stock.clone()),
            ratio(stock, relayd),
            median(ours.clone()),
            ratio(ours, relayd)
        );
    }
    Ok(())
}

fn udp(rounds: usize, directory: &Path) -> Outcome {
    println!(
        "\n| UDP, datagrams of | packets of | bare receiver, MB/s | collector, MB/s | ratio | bare, ms/GB | collector, ms/GB |"
    );
    println!("|---|---|---|---|---|---|---|");
    for mtu in MTUS {
        for size in [32 << 10, 256 << 10] {
            let packets = packets::make(TOTAL, size);
            let (rates, loads) = interleaved(
                rounds,
                &mut [
                    &mut || Receiver::bare(directory).and_then(|to| bare::send(to.ports, &packets, size, mtu)),
                    &mut || {
                        Receiver::collector(directory).and_then(|to| stream::send(to.ports, &packets, size, Some(mtu)))
                    },
                ],
            )?;
            let [bare, ours] = &rates;
            let [bare_load, our_load] = loads.map(median);
            println!(
                "| {mtu} B | {} KiB | {:.0} | {:.0} | {:.2} | {bare_load:.0} | {our_load:.0} |",
                size >> 10,
                median(bare.clone()),
                median(ours.clone()),
                ratio(ours, bare)
            );
        }
    }
    Ok(())
}

/// The rates of trials, and the loads of their receivers.
type Measured<const N: usize> = ([Vec<f64>; N], [Vec<f64>; N]);

/// Megabytes per second of each trial, in rounds with a rotating order; and the processor time of its receiver in ms per GB.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn interleaved<const N: usize>(
    rounds: usize,
    trials: &mut [&mut dyn FnMut() -> Outcome<Duration>; N],
) -> Outcome<Measured<N>> {
    let (mut rates, mut loads) = ([(); N].map(|()| Vec::new()), [(); N].map(|()| Vec::new()));
    for round in 0..rounds.max(1) {
        for turn in 0..N {
            let number = (round + turn) % N;
            // A receiver ends within its trial.
            let before = receivers_ms()?;
            rates[number].push(TOTAL as f64 / 1e6 / trials[number]()?.as_secs_f64());
            loads[number].push((receivers_ms()? - before) * 1e9 / TOTAL as f64);
        }
    }
    Ok((rates, loads))
}

/// The processor time of all receivers that have ended, in ms.
fn receivers_ms() -> Outcome<f64> {
    Ok(children_time()?.as_secs_f64() * 1e3)
}

/// The median of the ratios of each round.
fn ratio(one: &[f64], other: &[f64]) -> f64 {
    median(one.iter().zip(other).map(|(one, other)| one / other).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The two or three ports of a process, from a line of its standard output.
fn ports(line: &str) -> Outcome<Ports> {
    let ports: Result<Vec<u16>, _> = line.split_whitespace().map(str::parse).collect();
    match ports?[..] {
        [control, data] => Ok(Ports { control, data }),
        _ => Err("the receiver does not tell its ports".into()),
    }
}
