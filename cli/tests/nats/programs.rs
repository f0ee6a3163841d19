//! Programs that run during a test.

use crate::{TRACED, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

pub(crate) const TRACECTL: &str = env!("CARGO_BIN_EXE_tracectl");

/// A program that is killed when a test fails.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command, output: &Path) -> Self {
        let errors = fs::File::create(output.with_extension("errors")).unwrap();
        let out = fs::File::create(output).unwrap();
        Self(command.stdout(out).stderr(errors).stdin(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub(crate) fn wait(&mut self, what: &str) -> ExitStatus {
        wait_for(what, || self.0.try_wait().unwrap())
    }
}

/// Runs tracectl with the run directory of a test.
pub(crate) fn tracectl(place: &Path, arguments: &[&str]) -> Output {
    Command::new(TRACECTL).args(arguments).env("TRACEPOINT_RUN_DIR", place.join("run")).output().unwrap()
}

/// A collector. Its output directory has its name.
pub(crate) struct Collect {
    pub(crate) program: Running,
    pub(crate) output: PathBuf,
    log: PathBuf,
}

impl Collect {
    /// Starts a collector that takes traces from a broker.
    pub(crate) fn start(place: &Path, name: &str, broker: &str, options: &[&str]) -> Self {
        let ports = ["--control", "127.0.0.1:0", "--data", "127.0.0.1:0", "--live", "127.0.0.1:0"];
        Self::with(place, name, &[&["--nats", broker][..], &ports, options].concat())
    }

    /// A collector with these options.
    pub(crate) fn with(place: &Path, name: &str, options: &[&str]) -> Self {
        let mut command = Command::new(TRACECTL);
        command.args(["collect", "--json"]).args(options);
        let (output, log) = (place.join(name), place.join(format!("{name}.log")));
        command.arg("-o").arg(&output);
        let program = Running::start(&mut command, &log);
        wait_for("the collector listens", || fs::read_to_string(&log).ok().filter(|text| text.contains('\n')));
        Self { program, output, log }
    }

    /// The address of its metrics.
    pub(crate) fn metrics(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        first["metrics"].as_str().unwrap().to_owned()
    }

    /// Its messages so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.log.with_extension("errors")).unwrap()
    }

    /// Ends it as Ctrl-C does; returns its counts.
    pub(crate) fn end(self) -> Value {
        self.end_and_said().0
    }

    /// The same; also returns its messages.
    pub(crate) fn end_and_said(mut self) -> (Value, String) {
        self.program.signal(Signal::INT);
        let status = self.program.wait("the collector ends");
        let text = fs::read_to_string(&self.log).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{status}: {}", self.said());
        (last["counts"].clone(), self.said())
    }
}

/// A recording of this program, which traces `plan`, sent to a broker.
pub(crate) struct Record {
    pub(crate) program: Running,
    out: PathBuf,
}

impl Record {
    pub(crate) fn start(place: &Path, name: &str, broker: &str, of: (&str, &str), options: &[&str]) -> Self {
        Self::to(place, name, &["--nats".to_owned(), broker.to_owned()], of, options)
    }

    /// A recording with a destination given by an option.
    pub(crate) fn to(place: &Path, name: &str, to: &[String; 2], (test, plan): (&str, &str), options: &[&str]) -> Self {
        let mut command = Command::new(TRACECTL);
        command.args(["record", "--json", "-e", "brokered:*"]).args(to).args(["--sync-interval", "100ms"]);
        command.args(options).arg("--").arg(std::env::current_exe().unwrap()).args([test, "--exact"]);
        command.env("TRACEPOINT_RUN_DIR", place.join("run")).env(TRACED, plan);
        let out = place.join(name);
        Self { program: Running::start(&mut command, &out), out }
    }

    pub(crate) fn said(&self) -> String {
        [&self.out, &self.out.with_extension("errors")].map(|file| fs::read_to_string(file).unwrap()).concat()
    }

    /// Waits for its end; returns its report, which must not contain failures.
    pub(crate) fn finish(self) -> Value {
        let report = self.end();
        assert!(report["failures"].as_array().is_some_and(Vec::is_empty), "{report}");
        report
    }

    /// Waits for its end; returns its report.
    pub(crate) fn end(mut self) -> Value {
        self.program.wait("the recording ends");
        let text = fs::read_to_string(&self.out).unwrap();
        let last = text.lines().last().unwrap_or_else(|| panic!("no report: {}", self.said()));
        serde_json::from_str(last).unwrap()
    }
}
