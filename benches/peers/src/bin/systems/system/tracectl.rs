//! This library's recordings, controlled by its command line.

use super::Recording;
use crate::processes::Pid;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const NAME: &str = "peers";
const EVENT: &str = "record:numbers";
/// Larger than the trace of any load.
const MAX_SIZE: &str = "64G";

/// The counters of a process or of a recording.
#[derive(Deserialize)]
struct Counters {
    lost: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Process {
    counters: Option<Counters>,
}

impl Counters {
    fn lost(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// A named session.
pub(super) struct Session {
    tracectl: PathBuf,
    run_directory: PathBuf,
}

impl Session {
    pub(super) fn start(tracectl: &Path, run_directory: &Path, output: &Path) -> Result<Self> {
        let session = Self { tracectl: tracectl.into(), run_directory: run_directory.into() };
        let output = output.to_str().context("a path of ours")?;
        session.run(&["create", NAME, "-e", EVENT, "-o", output, "--max-size", MAX_SIZE, "--start"])?;
        Ok(session)
    }

    fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output =
            Command::new(&self.tracectl).args(arguments).env("TRACEPOINT_RUN_DIR", &self.run_directory).output()?;
        ensure!(
            output.status.success(),
            "tracectl {}: {}: {}",
            arguments[0],
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }
}

impl Recording for Session {
    /// A thread of the program drains.
    fn consumers(&self) -> Result<Vec<Pid>> {
        Ok(Vec::new())
    }

    fn stop(&mut self) -> Result<Option<u64>> {
        #[derive(Deserialize)]
        struct Status {
            sessions: [OneSession; 1],
        }
        #[derive(Deserialize)]
        struct OneSession {
            processes: Vec<Process>,
        }
        self.run(&["stop", NAME])?;
        let Status { sessions: [session] } = serde_json::from_slice(&self.run(&["status", "--json", NAME])?)?;
        let counters = session.processes.iter().map(|process| process.counters.as_ref().map(Counters::lost));
        let lost = counters.sum::<Option<u64>>();
        self.run(&["destroy", NAME])?;
        Ok(Some(lost.context("the session has counters")?))
    }
}

/// `tracectl record`.
pub(super) struct Recorder {
    child: Child,
    report: PathBuf,
}

impl Recorder {
    pub(super) fn start(program: Pid, tracectl: &Path, run_directory: &Path, output: &Path) -> Result<Self> {
        let report = output.with_extension("json");
        let child = Command::new(tracectl)
            .args(["record", "--json", "-e", EVENT, "--max-size", MAX_SIZE, "-p", &program.to_string(), "-o"])
            .arg(output)
            .env("TRACEPOINT_RUN_DIR", run_directory)
            .stdout(fs::File::create(&report)?)
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, report })
    }
}

impl Recording for Recorder {
    fn consumers(&self) -> Result<Vec<Pid>> {
        Ok(vec![self.child.id()])
    }

    fn stop(&mut self) -> Result<Option<u64>> {
        #[derive(Deserialize)]
        struct Report {
            lost: u64,
        }
        let pid = libc::pid_t::try_from(self.child.id())?;
        // SAFETY: a child that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGINT) };
        let status = self.child.wait()?;
        ensure!(status.success(), "tracectl record: {status}");
        let Report { lost } = serde_json::from_slice(&fs::read(&self.report)?)?;
        Ok(Some(lost))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // It has ended after an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
