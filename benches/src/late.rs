//! The delay caused by tracing to a thread that works at a fixed rate: `late TRACECTL [HZ [SECONDS]]` prints a table.
//!
//! The thread is in a separate process with an agent, controlled by `tracectl`. At each of its ticks it reads the clock, fires an
//! event, and reads the clock again: *event* is the time between the two readings, *late* the time from the tick to the first. With
//! `LATE_PREFIX='chrt -f 50 taskset -c 0'` the process starts with that priority and on that processor; the threads that it starts inherit both
//! unless they change them.
#![forbid(unsafe_code)]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use tracepoint::Agent;

tracepoint::define_trace! {
    provider = "late";
    pub tick(n: u64) { n: u64 = n }
}

/// The phases of the measurement. Ticks of the first one do not count.
const PHASES: [&str; 7] = ["", "off", "on", "attach", "detach", "snapshot", "full"];
/// Number of attaches, detaches and snapshots.
const REPEATS: usize = 20;
/// Number of events that fill all rings, including the overflow.
const FILL: u64 = 3_000_000;

/// In the process: ticks until its input ends, and prints the times of each phase.
fn ticks(hz: u32) -> Result<(), Box<dyn Error>> {
    let _agent = Agent::start()?;
    let phase = AtomicUsize::new(0);
    let pause = Duration::from_secs(1) / hz;
    let mut times: Vec<(Vec<u64>, Vec<u64>)> = PHASES.iter().map(|_| Default::default()).collect();
    // Memory is touched before it is needed.
    for (events, lates) in &mut times {
        events.resize(1 << 17, 0);
        lates.resize(1 << 17, 0);
        events.clear();
        lates.clear();
    }
    scope(|scope| {
        scope.spawn(|| {
            println!("ready");
            for line in std::io::stdin().lines().map_while(Result::ok) {
                let next = PHASES.iter().position(|phase| *phase == line).unwrap_or(0);
                if line == "full" {
                    (0..FILL).for_each(|n| tracepoint::trace!(tick(n)));
                }
                phase.store(next, Ordering::Relaxed);
                println!("ready");
            }
            phase.store(PHASES.len(), Ordering::Relaxed);
        });
        let mut next = Instant::now();
        for n in 0.. {
            next += pause;
            sleep(next.saturating_duration_since(Instant::now()));
            let now = phase.load(Ordering::Relaxed);
            if now == PHASES.len() {
                break;
            }
            let before = Instant::now();
            tracepoint::trace!(tick(n));
            let event = before.elapsed();
            times[now].0.push(event.as_nanos() as u64);
            times[now].1.push(before.saturating_duration_since(next).as_nanos() as u64);
            // Missed ticks are skipped.
            next = next.max(before);
        }
    });
    for (phase, (mut events, mut lates)) in PHASES.iter().zip(times).skip(1) {
        let count = events.len();
        let figures = |times: &mut Vec<u64>| {
            times.sort_unstable();
            let at = |per_mille: usize| times.get((times.len() * per_mille / 1000).min(times.len().max(1) - 1));
            [500, 990, 999, 1000]
                .map(|part| format!("{:>9.1}", at(part).map_or(0.0, |time| *time as f64 / 1e3)))
                .concat()
        };
        println!("{phase:<9} {count:>7} {} {}", figures(&mut events), figures(&mut lates));
    }
    Ok(())
}

/// The ticking process.
struct Ticking {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Ticking {
    fn start(hz: &str, run_dir: &Path) -> Result<Self, Box<dyn Error>> {
        let prefix = std::env::var("LATE_PREFIX").unwrap_or_default();
        let own = std::env::current_exe()?;
        let words: Vec<_> = prefix.split_whitespace().map(Into::into).chain([own.into_os_string()]).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["ticks", hz]).env("TRACEPOINT_RUN_DIR", run_dir);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().ok_or("no output")?));
        let mut ticking = Self { child, to, from };
        ticking.answer()?;
        Ok(ticking)
    }

    fn answer(&mut self) -> Result<(), Box<dyn Error>> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        if line == "ready\n" { Ok(()) } else { Err("the process has ended".into()) }
    }

    fn phase(&mut self, phase: &str) -> Result<(), Box<dyn Error>> {
        writeln!(self.to.as_ref().ok_or("no input")?, "{phase}")?;
        self.answer()
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    let argument = |at: usize, default: &'static str| arguments.get(at).map_or(default, |text| text);
    let (tracectl, hz, seconds) = (argument(1, ""), argument(2, "5000"), argument(3, "5").parse()?);
    if tracectl == "ticks" {
        ticks(hz.parse()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if tracectl.is_empty() {
        eprintln!("usage: late TRACECTL [HZ [SECONDS]]");
        return Ok(ExitCode::from(2));
    }
    let place = tempfile::tempdir_in("/dev/shm")?;
    let run_dir = place.path().join("run");
    let control = |words: &str| -> Result<(), Box<dyn Error>> {
        let mut command = Command::new(tracectl);
        command.args(words.split(' ')).env("TRACEPOINT_RUN_DIR", &run_dir).current_dir(&place);
        let output = command.output()?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
    };
    let mut process = Ticking::start(hz, &run_dir)?;
    let pause = Duration::from_secs(seconds);
    process.phase("off")?;
    sleep(pause);
    for n in 0..REPEATS {
        process.phase("attach")?;
        control(&format!("create s -e late:* -o trace{n} --start"))?;
        process.phase("")?;
        sleep(Duration::from_millis(100));
        process.phase("detach")?;
        control("destroy s")?;
    }
    process.phase("")?;
    control("create s -e late:* -o trace --start")?;
    process.phase("on")?;
    sleep(pause);
    process.phase("")?;
    control("destroy s")?;
    control("create s -e late:* --start")?;
    process.phase("snapshot")?;
    (0..REPEATS).try_for_each(|n| control(&format!("snapshot s -o snapshot{n}")))?;
    process.phase("")?;
    control("destroy s")?;
    // A recorder that is stopped and takes nothing.
    let mut recorder = Command::new(tracectl);
    recorder.args(["record", "-e", "late:*", "-o", "full", "-p", &process.child.id().to_string()]);
    let mut recorder =
        recorder.env("TRACEPOINT_RUN_DIR", &run_dir).current_dir(&place).stderr(Stdio::null()).spawn()?;
    sleep(Duration::from_secs(1));
    let signal = |name: &str, child: &Child| Command::new("kill").args([name, &child.id().to_string()]).status();
    signal("-STOP", &recorder)?;
    process.phase("full")?;
    sleep(pause);
    process.phase("")?;
    signal("-KILL", &recorder)?;
    recorder.wait()?;
    drop(process.to.take());
    println!("microseconds at {hz} Hz {:>26} {:>35}", "event: p50, p99, p99.9, most", "late: p50, p99, p99.9, most");
    for line in (&mut process.from).lines() {
        println!("{}", line?);
    }
    process.child.wait()?;
    Ok(ExitCode::SUCCESS)
}
