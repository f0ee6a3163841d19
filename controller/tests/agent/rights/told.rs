//! A process that a test controls by lines of text.

use crate::traced::PATIENCE;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A process that executes the lines it reads, and answers each with one line.
pub(super) struct Told {
    pub(super) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    errors: PathBuf,
}

impl Told {
    pub(super) fn start(command: &mut Command, errors: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(errors)?).spawn()?;
        let (input, output) = (child.stdin.take().ok_or("no input")?, child.stdout.take().ok_or("no output")?);
        let mut told = Self { child, input, output: BufReader::new(output), errors: errors.to_owned() };
        assert_eq!(told.answer()?, "there", "{}", told.said());
        Ok(told)
    }

    pub(super) fn tell(&mut self, line: &str) -> Result<String, Box<dyn Error>> {
        writeln!(self.input, "{line}")?;
        self.answer()
    }

    /// Returns the next line that is an answer: the test harness also prints lines.
    pub(super) fn answer(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err(format!("it has ended: {}", self.said()).into());
            }
            if let Some(answer) = line.trim_end().strip_prefix("answer: ") {
                return Ok(answer.to_owned());
            }
        }
    }

    /// Returns its standard error.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }

    pub(super) fn until_said(&self, text: &str) {
        let began = Instant::now();
        while !self.said().contains(text) {
            assert!(began.elapsed() < PATIENCE, "{text}: {}", self.said());
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
