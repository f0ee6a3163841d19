//! Programs that run while a test does.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
        let pid = nix::unistd::Pid::from_raw(self.0.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    }
}
