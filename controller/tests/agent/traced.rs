//! The controlled process, and the environment of a test.

use crate::common::{Other, Outcome, again, memory_place, part, ready, until_ready};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_controller::{Controller, NamedSession};
use tracepoint_run_dir::{Ack, RunDir};
use tracepoint_session::Agent;
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{Rule, SessionSpec, SinkSpec, State};

tracepoint::define_trace! {
    provider = "traced";

    /// Comes again and again.
    #[level(Info)]
    pub tick(n: u64, half: u32) { n: u64 = n, half: hex u32 = half }

    /// Comes with it.
    #[level(Debug)]
    pub tock(n: u64) if n % 2 == 0 { n: u64 = n }

    /// Nothing to record.
    pub bare(n: u64);
}

/// The variable with the pause between two events of a started process, in microseconds.
pub(crate) const PAUSE: &str = "TEST_PAUSE";

/// Maximum time that commands wait for a healthy process.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Fires one event.
pub(crate) fn fire_once(n: u64) {
    tracepoint::trace!(tick(n, (n / 2) as u32));
}

/// The part of the process that a test starts: fires events until it is requested to end. Returns `false` in the test itself.
pub(crate) fn is_traced() -> bool {
    if part() != "traced" {
        return false;
    }
    fire();
    true
}

/// Fires events until the process is requested to end.
pub(crate) fn fire() {
    fire_until(ready);
}

/// Fires events, with an agent, until `end` has returned.
pub(crate) fn fire_until<T>(end: impl FnOnce() -> T) -> T {
    let agent = Agent::start();
    if let Err(error) = &agent {
        println!("{error}");
    }
    let stop = AtomicBool::new(false);
    let pause = env::var(PAUSE).ok().and_then(|micros| micros.parse().ok()).unwrap_or(200);
    let pause = Duration::from_micros(pause);
    scope(|scope| {
        scope.spawn(|| {
            for n in 0.. {
                tracepoint::trace!(tick(n, (n / 2) as u32));
                tracepoint::trace!(tock(n));
                tracepoint::trace!(bare(n));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                sleep(pause);
            }
        });
        let ended = end();
        stop.store(true, Ordering::Relaxed);
        ended
    })
}

/// The run directory of a test, and a controller.
pub(crate) struct Place {
    pub(crate) temp: TempDir,
    pub(crate) controller: Controller,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::at(memory_place())
    }

    /// The same in this directory.
    pub(crate) fn at(temp: TempDir) -> Self {
        let run_dir = RunDir::at(&temp.path().join("run")).expect("a run directory");
        Self { temp, controller: Controller::at(run_dir).expect("a controller") }
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.temp.path().join("run")
    }

    /// Returns the directory of a session's traces.
    pub(crate) fn out(&self, session: &str) -> PathBuf {
        self.temp.path().join("out").join(session)
    }

    /// Starts a process of `test` that fires events.
    pub(crate) fn start(&self, test: &str) -> Other {
        until_ready(again(test, "traced").env("TRACEPOINT_RUN_DIR", self.run_dir()))
    }

    /// Creates an active session with these rules, and a CTF directory for each process.
    pub(crate) fn record(&self, name: &str, rules: &[&str]) -> NamedSession<'_> {
        self.controller.create(name, &spec(rules, &[SinkSpec::ctf(self.out(name)).into()])).expect("a session")
    }

    /// Returns the acknowledgements once all processes have written them.
    pub(crate) fn acks(&self, session: &NamedSession<'_>) -> Vec<Ack> {
        let generation = session.spec().expect("a session").generation;
        let waited = session.wait(generation, PATIENCE).expect("acknowledgements");
        assert!(waited.silent.is_empty(), "{:?}", waited.silent);
        let silent = self.controller.refresh(PATIENCE).expect("an answer");
        assert!(silent.is_empty(), "{silent:?}");
        session.acks().expect("acknowledgements")
    }

    /// Waits until each process has recorded `events` more events.
    pub(crate) fn until_recorded(&self, session: &NamedSession<'_>, events: u64) -> Vec<Ack> {
        let before: Vec<u64> = self.acks(session).iter().map(|ack| ack.counters.recorded).collect();
        let (mut recorded, mut since) = (0, Instant::now());
        loop {
            let acks = self.acks(session);
            if acks.iter().zip(&before).all(|(ack, before)| ack.counters.recorded >= before + events) {
                return acks;
            }
            let sum = acks.iter().map(|ack| ack.counters.recorded).sum();
            if sum > recorded {
                (recorded, since) = (sum, Instant::now());
            }
            assert!(since.elapsed() < PATIENCE, "the processes record nothing, or have ended: {acks:?}");
            sleep(Duration::from_millis(5));
        }
    }

    /// Returns the enabled events of the processes.
    pub(crate) fn on(&self) -> Vec<String> {
        assert!(self.controller.refresh(PATIENCE).expect("an answer").is_empty());
        let processes = self.controller.processes().expect("processes");
        processes.iter().flat_map(|process| process.status().expect("a status").on).collect()
    }
}

/// Creates the description of an active session.
pub(crate) fn spec(rules: &[&str], sinks: &[SinkSpec]) -> SessionSpec {
    let mut spec = SessionSpec::new();
    spec.state = State::Active;
    spec.sinks = sinks.to_vec();
    for rule in rules {
        spec.add_rule(&Rule::new(*rule)).expect("a rule");
    }
    spec
}

/// Returns the acknowledgements after every process has written a new one.
pub(crate) fn refreshed_acks(controller: &Controller, session: &NamedSession<'_>) -> Result<Vec<Ack>, ControlError> {
    assert!(controller.refresh(PATIENCE)?.is_empty());
    session.acks()
}

/// Refreshes the acknowledgement of the process until `is_so`.
pub(crate) fn until(
    place: &Place,
    session: &NamedSession<'_>,
    is_so: impl Fn(&Ack) -> bool,
) -> Result<Ack, ControlError> {
    loop {
        let ack = refreshed_acks(&place.controller, session)?.remove(0);
        if is_so(&ack) {
            return Ok(ack);
        }
        sleep(Duration::from_millis(20));
    }
}

fn pid_of(process: &Other) -> Result<Pid, Box<dyn std::error::Error>> {
    Pid::from_raw(i32::try_from(process.id())?).ok_or_else(|| "no process".into())
}

/// Stops a process. On return, none of its threads runs: after the signal they may still run briefly.
pub(crate) fn stop(process: &Other) -> Outcome {
    kill_process(pid_of(process)?, Signal::STOP)?;
    let stopped = |stat: String| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'));
    let all_stopped = || -> std::io::Result<bool> {
        let mut all = true;
        for thread in fs::read_dir(format!("/proc/{}/task", process.id()))? {
            all &= stopped(fs::read_to_string(thread?.path().join("stat"))?);
        }
        Ok(all)
    };
    while !all_stopped()? {
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Continues a stopped process.
pub(crate) fn go_on(process: &Other) -> Outcome {
    Ok(kill_process(pid_of(process)?, Signal::CONT)?)
}

/// Returns the traces below a directory.
pub(crate) fn traces(dir: &Path) -> Vec<PathBuf> {
    crate::common::names(dir).iter().map(|name| dir.join(name)).collect()
}
