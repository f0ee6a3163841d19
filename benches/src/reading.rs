//! The speed of reading a recorded trace: `reading [ROUNDS [EVENTS [DIR]]]` prints events per second of `tracectl` and of `babeltrace2`.
//!
//! Two threads record numeric events into a CTF trace in DIR, without loss. In each round, all programs read the same trace in turn, each
//! as a process from its start to its end, with its output to `/dev/null`. A first round, which is not timed, checks their output. The
//! processor time of all threads depends less on other activity of the machine than the rate.
//! `tracectl` is the one next to this program: `cargo build --release -p tracectl` builds it.
#![forbid(unsafe_code)]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tracepoint::sinks::CtfSink;
use tracepoint::{Channel, Session};
use tracepoint_benches::{children_time, small};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The expected output of a program for N events.
enum Output {
    /// Anything.
    Any,
    /// N in a table.
    Count,
    /// N lines.
    Lines,
}

/// The programs that read the trace; the first is the reference for the others.
const READERS: [(&str, &str, &[&str], Output); 6] = [
    ("`babeltrace2`, `sink.utils.dummy`", "babeltrace2", &["-c", "sink.utils.dummy"], Output::Any),
    ("`tracectl stat`", "tracectl", &["stat"], Output::Count),
    ("`tracectl hist c`", "tracectl", &["hist", "c"], Output::Count),
    ("`tracectl verify`", "tracectl", &["verify"], Output::Any),
    ("`babeltrace2`, text", "babeltrace2", &[], Output::Lines),
    ("`tracectl view`", "tracectl", &["view"], Output::Lines),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let mut number = |default: u64| match arguments.next() {
        None => Some(default),
        Some(text) => text.to_str()?.parse().ok().filter(|number| *number > 0),
    };
    let (Some(rounds), Some(events)) = (number(5), number(5_000_000)) else {
        eprintln!("usage: reading [ROUNDS [EVENTS [DIR]]] (5, 5000000, /dev/shm)");
        return ExitCode::from(2);
    };
    let directory = arguments.next().map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    match measure(rounds, events, &directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reading: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(rounds: u64, events: u64, directory: &Path) -> Outcome {
    let directory = tempfile::tempdir_in(directory)?;
    let trace = directory.path().join("trace");
    let events = record(events, &trace)?;
    println!("{}; {rounds} rounds, {events} events", tracepoint::runtime::platform());
    for (name, program, arguments, output) in &READERS {
        check(name, command(program, arguments, &trace)?, output, events)?;
    }
    let mut times = READERS.map(|_| Vec::new());
    let mut processor = READERS.map(|_| Vec::new());
    for round in 0..rounds as usize {
        for turn in 0..READERS.len() {
            let at = (round + turn) % READERS.len();
            let (name, program, arguments, _) = &READERS[at];
            let mut command = command(program, arguments, &trace)?;
            let (began, used) = (Instant::now(), children_time()?);
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
            times[at].push(began.elapsed());
            processor[at].push(children_time()?.saturating_sub(used));
            if !status.success() {
                return Err(format!("{name}: {status}").into());
            }
        }
    }
    println!("\n| | M events/s | times `babeltrace2`'s dummy | ns of processor per event |\n|---|---|---|---|");
    for ((name, ..), (own, processor)) in READERS.iter().zip(times.iter().zip(&processor)) {
        let rates = own.iter().map(|time| events as f64 / 1e6 / time.as_secs_f64());
        let ratios = own.iter().zip(&times[0]).map(|(own, dummy)| dummy.as_secs_f64() / own.as_secs_f64());
        let used = processor.iter().map(|used| used.as_nanos() as f64 / events as f64);
        println!("| {name} | {:.2} | {:.2} | {:.0} |", median(rates), median(ratios), median(used));
    }
    Ok(())
}

/// Records this number of events with two threads, which wait while their rings are full; returns the number of events.
fn record(events: u64, trace: &Path) -> Outcome<u64> {
    let channel = Channel::wait(1 << 20, Duration::from_secs(10));
    let session = Session::builder("reading").events("bench:small").channel(channel).sink(CtfSink::create(trace)?);
    let session = session.in_memory().start()?;
    let half = events.div_ceil(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..half).for_each(|n| tracepoint::trace!(small(n as i32, 7, n.cast_signed()))));
        }
    });
    let recorded = session.stop()?.events().iter().map(|event| event.recorded).sum();
    if recorded == 2 * half {
        Ok(recorded)
    } else {
        Err(format!("{recorded} of {} events were recorded", 2 * half).into())
    }
}

fn command(program: &str, arguments: &[&str], trace: &Path) -> Outcome<Command> {
    let own = std::env::current_exe()?.with_file_name(program);
    let program = if program == "tracectl" { own.into_os_string() } else { OsString::from(program) };
    let mut command = Command::new(program);
    command.args(arguments).arg(trace);
    Ok(command)
}

/// Runs it once, and checks its output.
fn check(name: &str, mut command: Command, expected: &Output, events: u64) -> Outcome {
    let missing = |error| {
        format!("{name} cannot be started ({error}): run scripts/setup.sh --ci and cargo build --release -p tracectl")
    };
    let output = command.output().map_err(missing)?;
    let beginning = String::from_utf8_lossy(&output.stdout[..output.stdout.len().min(4096)]);
    let is_right = match expected {
        Output::Any => true,
        Output::Count => beginning.contains(&events.to_string()),
        Output::Lines => output.stdout.split(|byte| *byte == b'\n').count() as u64 == events + 1,
    };
    if output.status.success() && is_right {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} does not read the trace ({}): {beginning}{errors}", output.status).into())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
