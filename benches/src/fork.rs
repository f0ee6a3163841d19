//! The cost of `fork` with an agent in the process: `fork [ROUNDS]` prints a table of times in microseconds.
//!
//! Each row is a separate process, a copy of this one, in the state given by its name. They take turns, so that disturbances of the machine
//! affect all of them alike. The time is that of the call in the parent; the child ends immediately, and is reaped before the next call.
#![expect(unsafe_code, reason = "`fork` has no safe interface")]

use libc::{_exit, fork};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint::{Agent, Channel, Session};

/// The states, and their names in the table.
const STATES: [(&str, &str); 5] = [
    ("plain", "a new process"),
    ("thread", "with another thread"),
    ("agent", "with an agent"),
    ("session", "with an agent and a session that records"),
    ("stopped", "after the session has ended"),
];
/// Number of forks of one process before the next process takes its turn.
const BATCH: usize = 20;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if let Some((state, _)) = argument.as_ref().and_then(|name| STATES.iter().find(|(state, _)| state == name)) {
        in_state(state)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rounds = match argument.map(|rounds| rounds.parse()) {
        None => 50,
        Some(Ok(rounds)) if rounds > 0 => rounds,
        Some(_) => {
            eprintln!("usage: fork [ROUNDS]");
            return Ok(ExitCode::from(2));
        }
    };
    let place = tempfile::tempdir_in("/dev/shm")?;
    let mut processes = Vec::new();
    for (state, _) in STATES {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(state).env("TRACEPOINT_RUN_DIR", place.path().join("run"));
        processes.push(Forking::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?);
    }
    for _ in 0..rounds {
        for process in &mut processes {
            process.turn()?;
        }
    }
    println!("{:<44} {:>8} {:>8}", "microseconds", "min", "median");
    for ((_, name), mut process) in STATES.iter().zip(processes) {
        process.times.sort_by(f64::total_cmp);
        println!("{name:<44} {:>8.1} {:>8.1}", process.times[0], process.times[process.times.len() / 2]);
        drop(process.child.stdin.take());
        process.child.wait()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A process that forks on request.
struct Forking {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    times: Vec<f64>,
}

impl Forking {
    fn start(command: &mut Command) -> Result<Self, Box<dyn Error>> {
        let mut child = command.spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Self { child, answers, times: Vec::new() })
    }

    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        self.child.stdin.as_mut().ok_or("no input")?.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        for time in line.split_whitespace() {
            self.times.push(time.parse()?);
        }
        Ok(())
    }
}

/// Forks a batch for each line of input.
fn in_state(state: &str) -> Result<(), Box<dyn Error>> {
    if state == "thread" {
        thread::spawn(|| thread::sleep(Duration::MAX));
    }
    let _agent = if state == "plain" || state == "thread" { None } else { Some(Agent::start()?) };
    let mut session = None;
    if state == "session" || state == "stopped" {
        session = Some(Session::builder(state).events("bench:*").channel(Channel::overwrite(1 << 20)).start()?);
        for n in 0..1000 {
            tracepoint_benches::trace_small(n, n, i64::from(n));
        }
    }
    if state == "stopped" {
        session.take().map(Session::stop).transpose()?;
    }
    for _ in std::io::stdin().lock().lines() {
        let mut times = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            let before = Instant::now();
            // SAFETY: the child makes one system call.
            match unsafe { fork() } {
                // SAFETY: ends the process.
                0 => unsafe { _exit(0) },
                child => {
                    times.push(before.elapsed());
                    waitpid(Some(Pid::from_raw(child.max(0)).ok_or("no child was forked")?), WaitOptions::empty())?;
                }
            }
        }
        let times: Vec<_> = times.iter().map(|time| format!("{:.1}", time.as_secs_f64() * 1e6)).collect();
        println!("{}", times.join(" "));
    }
    Ok(())
}
