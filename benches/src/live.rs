//! The delay of an event until a live view prints it: from the reading of its clock to the line of `tracectl view net://…`, through a stream sink,
//! the loopback interface and `tracectl collect`.
//!
//! `live TRACECTL [SECONDS] [OPTION of record or create ...]` prints p50, p99 and the maximum in ms, for a process recorded by `tracectl record`,
//! and for one whose own session streams. The process has eight threads with an event every 20 ms to 500 ms, and one with 10,000 events a second.
#![forbid(unsafe_code)]

use std::env;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tracepoint::Agent;

tracepoint::define_trace! {
    provider = "live";
    pub state(n: u64) { n: u64 = n }
}

/// Set in the traced process.
const TRACED: &str = "LIVE_TRACED";
/// Time after the start of the view that is not measured.
const WARM_UP: Duration = Duration::from_secs(3);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A child that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(command: &mut Command) -> Outcome<(Self, Lines<BufReader<ChildStdout>>)> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| {
            let program = command.get_program().display();
            format!("cannot start {program}: {error}; cargo build --release -p tracectl makes target/release/tracectl")
        })?;
        let out = child.stdout.take().ok_or("no output")?;
        Ok((Self(child), BufReader::new(out).lines()))
    }
}

fn be_traced() -> Outcome<()> {
    let _agent = Agent::start()?;
    for thread in 0..9 {
        let pause =
            Duration::from_micros([100, 20_000, 50_000, 90_000, 130_000, 210_000, 310_000, 410_000, 500_000][thread]);
        spawn(move || {
            for n in 0.. {
                tracepoint::trace!(state(n));
                sleep(pause);
            }
        });
    }
    println!("ready");
    let _ = std::io::stdin().lines().count();
    Ok(())
}

/// The number after `"KEY":` in a line of JSON.
fn number(line: &str, key: &str) -> Option<u128> {
    let (_, rest) = line.split_once(key)?;
    let rest = rest.trim_start_matches([':', ' ', '"']);
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The text between quotes after `"KEY":`.
fn text<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_once(key)?.1.split('"').nth(1)
}

/// The times of the events of a view, in ns.
fn view(tracectl: &str, live: &str, session: &str, time: Duration) -> Outcome<Vec<u128>> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    let url = format!("net://{live}/host/{}/{session}", host.trim());
    let (_view, lines) = Running::start(Command::new(tracectl).args(["view", "--json", &url]))?;
    let began = Instant::now();
    let mut times = Vec::new();
    for printed in lines {
        let printed = printed?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        if began.elapsed() >= WARM_UP {
            times.extend(number(&printed, "\"time_ns\"").map(|event| now.saturating_sub(event)));
        }
        if began.elapsed() >= WARM_UP + time {
            return Ok(times);
        }
    }
    Err(format!("the view of {url} has ended").into())
}

fn measure(tracectl: &str, own: bool, time: Duration, options: &[String]) -> Outcome<Vec<u128>> {
    let place = TempDir::new_in("/dev/shm")?;
    let command = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(place.path()).env("TRACEPOINT_RUN_DIR", place.path().join("run"));
        command
    };
    let mut collect = command(tracectl);
    let ports = ["control", "data", "live"].map(|port| [format!("--{port}"), "127.0.0.1:0".to_owned()]);
    collect.args(["collect", "--json", "-o", "stored"]).args(ports.iter().flatten());
    let (_collect, mut lines) = Running::start(&mut collect)?;
    let listening = lines.next().ok_or("no collector")??;
    let address = |name: &str| text(&listening, name).ok_or(format!("no {name} in {listening}"));
    let (control, data, live) = (address("\"control\"")?, address("\"data\"")?, address("\"live\"")?);
    let to = format!("{control}:{}", data.rsplit_once(':').ok_or("no port")?.1);
    let (traced, mut ready) = Running::start(command(env::current_exe()?.to_str().ok_or("a name")?).env(TRACED, "1"))?;
    ready.next().ok_or("no process")??;
    let pid = traced.0.id().to_string();
    let mut record = command(tracectl);
    if own {
        record.args(["create", "own", "-e", "live:*", "--start", "--stream", &to]).args(options);
    } else {
        record.args(["record", "-e", "live:*", "-p", &pid, "--stream", &to]).args(options);
    }
    let (recorder, _lines) = Running::start(&mut record)?;
    let session = if own { "own".to_owned() } else { format!("record-{}", recorder.0.id()) };
    // Until the session exists: its directory has the names used by viewers.
    let began = Instant::now();
    let found = loop {
        let hosts = std::fs::read_dir(place.path().join("stored")).into_iter().flatten().flatten();
        let found =
            hosts.flat_map(|host| std::fs::read_dir(host.path().join(&session)).into_iter().flatten()).flatten().next();
        match found {
            Some(process) => break process.file_name(),
            None if began.elapsed() > Duration::from_secs(20) => return Err("no session".into()),
            None => sleep(Duration::from_millis(50)),
        }
    };
    sleep(Duration::from_secs(2));
    view(tracectl, live, &format!("{session}-{}", found.to_string_lossy()), time)
}

fn main() -> Outcome<()> {
    if env::var_os(TRACED).is_some() {
        return be_traced();
    }
    let arguments: Vec<_> = env::args().skip(1).collect();
    let tracectl = arguments.first().ok_or("usage: live TRACECTL [SECONDS] [OPTION ...]")?;
    // Programs run in other directories.
    let tracectl =
        std::path::absolute(tracectl)?.into_os_string().into_string().map_err(|_| "a name that is no text")?;
    let time = Duration::from_secs(arguments.get(1).map_or(Ok(10), |time| time.parse())?);
    println!("| session | events | p50 | p99 | most |\n|---|---|---|---|---|");
    for own in [false, true] {
        let mut times = measure(&tracectl, own, time, arguments.get(2..).unwrap_or_default())?;
        times.sort_unstable();
        let at =
            |percent: usize| times.get(times.len() * percent / 100).or(times.last()).copied().unwrap_or(0) / 1_000_000;
        let name = if own { "of the process" } else { "`tracectl record`" };
        println!("| {name} | {} | {} ms | {} ms | {} ms |", times.len(), at(50), at(99), at(100));
    }
    Ok(())
}
