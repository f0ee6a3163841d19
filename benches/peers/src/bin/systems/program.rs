//! A traced program, seen from the measuring process.

use crate::load::{Load, Mark};
use crate::processes::Pid;
use crate::system::System;
use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running [`subject`](crate::subject).
pub(crate) struct Program {
    child: Child,
    loads: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts a program that can be recorded by a system. This library's files are in `run_directory`.
    pub(crate) fn start(system: System, run_directory: &Path) -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args(["--subject", system.name()])
            .env("TRACEPOINT_RUN_DIR", run_directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let loads = child.stdin.take().context("a pipe")?;
        let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        let mut program = Self { child, loads, lines };
        program.answer::<String>()?;
        Ok(program)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.child.id()
    }

    /// Runs a load, and calls `at_mark` when a mark is reached.
    pub(crate) fn run(&mut self, load: &Load, mut at_mark: impl FnMut(Mark) -> Result<()>) -> Result<()> {
        writeln!(self.loads, "{}", serde_json::to_string(load)?)?;
        for _ in 0..=load.phases.len() {
            at_mark(self.answer()?)?;
        }
        Ok(())
    }

    /// Ends it. Returns the number of events that its own recorder kept.
    pub(crate) fn end(mut self) -> Result<Option<u64>> {
        drop(self.loads);
        let kept = serde_json::from_str(&self.lines.next().context("the traced program has died")??)?;
        ensure!(self.child.wait()?.success(), "the traced program has failed");
        Ok(kept)
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        Ok(serde_json::from_str(&self.lines.next().context("the traced program has died")??)?)
    }
}
