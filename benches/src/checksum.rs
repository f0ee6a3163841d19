//! The cost of a packet's checksum, compared with the two other operations of a drain on each byte: the copy out of the ring, and the
//! `write` into a file in memory. `checksum [ROUNDS]` prints a Markdown table with medians of interleaved rounds. `scripts/costs.sh` copies it into
//! the book.
//!
//! Each round uses other packets than the one before, so that few of their bytes are in the first-level caches of this core, as with packets
//! written by another core.
#![forbid(unsafe_code)]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tracepoint_reader::internal::checksum;

/// The default of a session: rings of 1 MiB with 8 packets.
const PACKET: usize = 128 << 10;
/// Number of packets used in turn: 8 MiB.
const PACKETS: usize = 64;
/// Small packets, as flushed at low rates.
const SMALL: usize = 1 << 10;

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Some(501), |rounds| rounds.parse().ok());
    let Some(rounds @ 1..) = rounds else {
        eprintln!("usage: checksum [ROUNDS]");
        return ExitCode::from(2);
    };
    match measure(rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("checksum: {error}");
            ExitCode::FAILURE
        }
    }
}

fn timed(act: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    act();
    begin.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64
}

fn measure(rounds: usize) -> std::io::Result<()> {
    let ring: Vec<u8> = (0..PACKET * PACKETS).map(|n| (n * n) as u8).collect();
    let mut copy = vec![0; PACKET];
    let file = File::from(memfd_create("packets", MemfdFlags::CLOEXEC)?);
    let mut failed = Ok(());
    let mut times = [const { Vec::new() }; 4];
    for round in 0..rounds {
        let packet = |n: usize| &ring[(round * 4 + n) % PACKETS * PACKET..][..PACKET];
        times[0].push(timed(|| _ = black_box(checksum(black_box(packet(0))))));
        times[1].push(timed(|| copy.copy_from_slice(black_box(packet(1)))));
        times[2].push(timed(|| failed = file.write_all_at(&copy, (round % PACKETS * PACKET) as u64)));
        std::mem::replace(&mut failed, Ok(()))?;
        times[3].push(timed(|| _ = black_box(checksum(black_box(&packet(2)[..SMALL])))));
    }
    let [sum, copied, written, small] = times.each_mut().map(|times| median(times));
    println!("| | µs | GB/s |\n|---|---|---|");
    let row = |what: &str, size: usize, ns: f64| println!("| {what} | {:.2} | {:.1} |", ns / 1000.0, size as f64 / ns);
    row("checksum of a packet of 128 KiB", PACKET, sum);
    row("its copy out of the ring", PACKET, copied);
    row("its `write` into a file in memory", PACKET, written);
    row("checksum of a packet of 1 KiB", SMALL, small);
    println!();
    println!(
        "The checksum is {:.0} % of the three. An event of 24 bytes pays {:.2} ns.",
        100.0 * sum / (sum + copied + written),
        sum / PACKET as f64 * 24.0
    );
    Ok(())
}
