//! Programs that run during a test.

use crate::hosts::Hosts;
use crate::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

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

    pub(crate) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
    }
}

/// An address of this host with a free port.
pub(crate) const ANY: &str = "127.0.0.1:0";

/// A listening collector.
pub(crate) struct Collect {
    pub(crate) program: Running,
    first: Value,
}

impl Collect {
    /// On this host, on free ports.
    pub(crate) fn start(place: &Path) -> Self {
        Self::at(place, "collect", [ANY, ANY], &[])
    }

    /// At these addresses for control and data, with an output of this name. It stores below `stored`.
    pub(crate) fn at(place: &Path, name: &str, at: [&str; 2], options: &[&str]) -> Self {
        let mut command = Command::new(TRACECTL);
        command.args(["collect", "--json", "--live", ANY, "--control", at[0], "--data", at[1]]).args(options);
        Self::listening(command.arg("-o").arg(place.join("stored")), &place.join(name))
    }

    /// On a host, at the default ports.
    pub(crate) fn on(hosts: &Hosts, host: u8, place: &Path, name: &str, options: &[&str]) -> Self {
        let mut command = hosts.command(host, TRACECTL);
        command.args(["collect", "--json", "--no-key"]).args(options).arg("-o").arg(place.join("stored"));
        for (option, port) in [("--control", 5342), ("--data", 5343), ("--live", 5344)] {
            command.args([option, &format!("{}:{port}", Hosts::address(host))]);
        }
        Self::listening(&mut command, &place.join(name))
    }

    /// Starts it with a command; the first line of its output contains its addresses.
    pub(crate) fn listening(command: &mut Command, output: &Path) -> Self {
        let program = Running::start(command, output);
        let text = wait_for(|| fs::read_to_string(output).ok().filter(|text| text.contains('\n')));
        Self { program, first: serde_json::from_str(text.lines().next().unwrap()).unwrap() }
    }

    /// Its address for `control`, `data` or `live`.
    pub(crate) fn address(&self, of: &str) -> &str {
        self.first[of].as_str().unwrap()
    }

    /// The argument of `--stream`.
    pub(crate) fn to(&self) -> String {
        format!("{}:{}", self.address("control"), self.address("data").rsplit_once(':').unwrap().1)
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.program.interrupt();
        wait_for(|| self.program.0.try_wait().unwrap())
    }
}
