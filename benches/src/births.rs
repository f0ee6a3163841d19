//! The recorded and lost events of threads that fire only three events each: `births [TRACECTL]` prints a table.
//!
//! Each row is a separate process, which creates threads in rounds of a given size, or one after another at a rate. It has its own session,
//! or `TRACECTL record` drains its rings, also with `--lossless`. The memory is the maximum that the rings took.
#![forbid(unsafe_code)]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, scope, sleep};
use std::time::{Duration, Instant};
use tracepoint::{Agent, Session, sinks::CtfSink};
use tracepoint_reader::account::Account;

tracepoint::define_trace! {
    provider = "births";
    pub lives(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

const THREADS: u64 = 10_000;
const EVENTS: u64 = 3;
/// The pattern of thread creation, and its name in the table.
const CROWDS: [(&str, &str); 5] = [
    ("at-once 50", "50 at once"),
    ("at-once 200", "200 at once"),
    ("together 50", "50 at once, none ends before all have begun"),
    ("together 200", "200 at once, none ends before all have begun"),
    ("rate 5000", "one after another, 5,000 a second"),
];

fn live(thread: u64) {
    (0..EVENTS).for_each(|n| tracepoint::trace!(lives(thread, n)));
}

/// Makes the threads.
fn crowd(shape: &str, number: u64) {
    if shape == "rate" {
        let pause = Duration::from_secs(1) / number as u32;
        let mut next = Instant::now();
        for thread in 0..THREADS {
            thread::spawn(move || live(thread)).join().expect("no panic");
            next += pause;
            sleep(next.saturating_duration_since(Instant::now()));
        }
        return;
    }
    let barrier = (shape == "together").then(|| Barrier::new(number as usize));
    for first in (0..THREADS).step_by(number as usize) {
        scope(|scope| {
            for thread in first..first + number {
                let barrier = &barrier;
                scope.spawn(move || {
                    live(thread);
                    if let Some(barrier) = barrier {
                        barrier.wait();
                    }
                });
            }
        });
    }
}

/// Total size of the files below a directory, in bytes.
fn size_of(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// In the process of a row: prints its own counts, if it has a session.
fn row(how: &str, shape: &str, number: u64, place: &Path) -> Result<(), Box<dyn Error>> {
    let is_over = AtomicBool::new(false);
    let most = AtomicU64::new(0);
    let start = || -> Result<Session, Box<dyn Error>> {
        Ok(Session::builder("births").events("births:*").sink(CtfSink::create(place.join("own"))?).start()?)
    };
    let session = (how == "session").then(start).transpose()?;
    let agent = (how == "agent").then(Agent::start).transpose()?;
    let lives = tracepoint::find("births:lives").expect("declared").marker().expect("has fields");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !lives.is_on() && Instant::now() < deadline {
        sleep(Duration::from_millis(1));
    }
    // As in a program that started earlier.
    sleep(Duration::from_millis(300));
    scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(size_of(&place.join("run")), Ordering::Relaxed);
                sleep(Duration::from_millis(5));
            }
        });
        crowd(shape, number);
        is_over.store(true, Ordering::Relaxed);
    });
    if let Some(session) = session {
        session.stop()?;
    }
    drop(agent);
    fs::write(place.join("most"), most.into_inner().to_string())?;
    Ok(())
}

/// Adds the accounts below a directory.
fn accounts(dir: &Path, sums: &mut [u64; 3]) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            accounts(&path, sums)?;
        } else if path.file_name().is_some_and(|name| name == "account.json") {
            let account = Account::parse(&fs::read(path)?)?;
            for event in account.channels.iter().flat_map(|channel| &channel.events) {
                if !event.name.starts_with("births:") {
                    continue;
                }
                sums[0] += event.recorded;
                sums[1] += event.lost.get("no_ring").unwrap_or(&0);
                sums[2] +=
                    event.lost.iter().filter(|(reason, _)| *reason != "no_ring").map(|(_, lost)| lost).sum::<u64>();
            }
        }
    }
    Ok(())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, how, shape, number, place] = &arguments[..] {
        row(how, shape, number.parse()?, Path::new(place))?;
        return Ok(ExitCode::SUCCESS);
    }
    let tracectl = arguments.get(1);
    println!("{THREADS} threads of {EVENTS} events; per cent lost");
    println!("{:<46} {:<9} {:>8} {:>8} {:>8} {:>10}", "threads", "session", "lost", "no_ring", "others", "KiB");
    for (label, options) in [("own", None), ("record", Some(&[][..])), ("lossless", Some(&["--lossless"][..]))] {
        for (shape, name) in CROWDS {
            let place = tempfile::tempdir_in("/dev/shm")?;
            let mut command = match (options, tracectl) {
                (None, _) => Command::new(std::env::current_exe()?),
                (Some(options), Some(tracectl)) => {
                    let mut command = Command::new(tracectl);
                    command.args(["record", "-e", "births:*", "-o"]).arg(place.path().join("trace")).args(options);
                    command.arg("--").arg(std::env::current_exe()?);
                    command
                }
                (Some(_), None) => continue,
            };
            command.arg(if options.is_none() { "session" } else { "agent" }).args(shape.split(' ')).arg(place.path());
            command.env("TRACEPOINT_RUN_DIR", place.path().join("run")).stdout(std::process::Stdio::null());
            command.stderr(std::process::Stdio::null()).status()?;
            let mut sums = [0; 3];
            accounts(place.path(), &mut sums)?;
            let fired = THREADS * EVENTS;
            let part = |lost: u64| format!("{:.2}", lost as f64 * 100.0 / fired as f64);
            let most: u64 = fs::read_to_string(place.path().join("most"))?.parse()?;
            let lost = part(fired.saturating_sub(sums[0]));
            println!("{name:<46} {:<9} {lost:>8} {:>8} {:>8} {:>10}", label, part(sums[1]), part(sums[2]), most >> 10);
        }
    }
    Ok(ExitCode::SUCCESS)
}
