//! What it costs a program to be recorded without losses: `recorded [THREADS [EVENTS]]` is to be run by `tracectl record -e 'bench:*' -- recorded`. Each
//! thread fires its events without a pause; the time of an event is printed, with what it costs to wait for the recorder.
#![forbid(unsafe_code)]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint::Agent;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>());
    let (threads, events) = (numbers.next().unwrap_or(Ok(1))?, numbers.next().unwrap_or(Ok(20_000_000))?);
    let _agent = Agent::start()?;
    let small = tracepoint::find("bench:small")?;
    while !small.is_on() {
        thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                (0..events).for_each(|n| tracepoint::trace!(tracepoint_benches::small(n as i32, 7, n.cast_signed())));
            });
        }
    });
    let elapsed = begun.elapsed();
    println!("{:.1} ns per event in each of {threads} threads", elapsed.as_nanos() as f64 / events as f64);
    Ok(())
}
