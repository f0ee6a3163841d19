//! One host: its remote shell, and the data received from it.

use crate::message;
use crate::record::remote::{EndReport, FORMAT, Ready, Request};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longer lines are cut, because another machine is not trusted to end them.
const LONGEST_LINE: u64 = 64 << 20;
/// Number of most recent messages kept to explain why a host does not answer.
const LAST_MESSAGES: usize = 4;
/// How long to wait for the remote shell after its output has ended, or for its output after it has ended: its children may hold the pipes open.
const LINGER: Duration = Duration::from_secs(2);
/// Runs a remote shell with arguments. The shell ignores Ctrl-C from the terminal: this command handles it, asks the hosts to end and waits for
/// their reports, which arrive through the shell.
const START: &str = "trap '' INT; exec ";
/// The exit status of a shell that cannot find a program; ssh has its own for an unreachable host.
const NOT_FOUND: i32 = 127;
const NOT_REACHED: i32 = 255;

/// Data read by the threads of a host.
#[derive(Debug, Default)]
struct HostOutput {
    /// Unprocessed lines of the standard output.
    lines: VecDeque<String>,
    /// The last lines of the standard error, before the host has answered.
    messages: VecDeque<String>,
    has_answered: bool,
    /// How many of the two streams, standard output and standard error, have ended.
    ended: u8,
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    child: Child,
    input: Option<ChildStdin>,
    received: Arc<Mutex<HostOutput>>,
    pub(super) ready: Option<Ready>,
    /// Set if the host cannot take part, with the reason.
    pub(super) failure: Option<String>,
    /// The report of `record --json` there.
    pub(super) report: Option<Value>,
    /// The exit code of `record` there.
    pub(super) exit_code: Option<u8>,
    /// The exit status of the remote shell.
    status: Option<ExitStatus>,
    /// When the status, or the exit code, arrived.
    ended: Option<Instant>,
}

fn lock(received: &Mutex<HostOutput>) -> impl std::ops::DerefMut<Target = HostOutput> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// Starts `RSH HOST TRACECTL remote`. `wake` is called when data from the host has arrived.
    pub(super) fn start(
        name: &str,
        rsh: &str,
        tracectl: &str,
        wake: impl Fn() + Send + Clone + 'static,
    ) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{START}{rsh} \"$@\""), "sh", name]).args(tracectl.split_whitespace());
        command.arg("remote").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let received = Arc::new(Mutex::new(HostOutput::default()));
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (own, own_wake) = (Arc::clone(&received), wake.clone());
        thread::spawn(move || {
            each_line(output, |line| {
                lock(&own).lines.push_back(line);
                own_wake();
            });
            lock(&own).ended += 1;
            own_wake();
        });
        let (own, of) = (Arc::clone(&received), name.to_owned());
        thread::spawn(move || {
            each_line(errors, |line| {
                let mut received = lock(&own);
                if received.has_answered {
                    drop(received);
                    message::summary(&format!("{of}: {line}"));
                } else {
                    received.messages.push_back(line);
                    let excess = received.messages.len().saturating_sub(LAST_MESSAGES);
                    received.messages.drain(..excess);
                }
            });
            lock(&own).ended += 1;
            wake();
        });
        let name = name.to_owned();
        let (ready, failure, report) = (None, None, None);
        Ok(Self { name, child, input, received, ready, failure, report, exit_code: None, status: None, ended: None })
    }

    /// Processes received data, and checks if the remote shell has ended.
    pub(super) fn update(&mut self, rsh: &str) -> io::Result<()> {
        while let Some(line) = { lock(&self.received).lines.pop_front() } {
            self.line(&line);
        }
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        if self.status.is_some() || self.exit_code.is_some() {
            self.ended.get_or_insert_with(Instant::now);
        }
        let status = self.status.filter(|_| self.is_over() && self.exit_code.is_none() && self.failure.is_none());
        if let Some(status) = status {
            self.failure = Some(match self.ready {
                Some(_) => format!("the connection by `{rsh}` ended, with {status}, before its report came"),
                None => self.why_no_answer(rsh, status),
            });
        }
        Ok(())
    }

    /// True if no more data will arrive from the host.
    pub(super) fn is_over(&self) -> bool {
        let is_read = self.status.is_some() && lock(&self.received).ended == 2;
        is_read || self.ended.is_some_and(|ended| ended.elapsed() > LINGER)
    }

    fn line(&mut self, line: &str) {
        if self.ready.is_some() {
            if let Ok(EndReport { exit_code }) = serde_json::from_str(line) {
                self.exit_code = Some(exit_code);
            } else {
                self.report = serde_json::from_str(line).ok().or_else(|| self.report.take());
            }
            return;
        }
        // Login shells may print something first.
        let Ok(ready) = serde_json::from_str::<Ready>(line) else { return };
        lock(&self.received).has_answered = true;
        if ready.remote != FORMAT {
            let (there, here) = (&ready.version, env!("CARGO_PKG_VERSION"));
            self.failure =
                Some(format!("its tracectl is version {there}, and this one {here}: install the same version on both"));
        }
        self.ready = Some(ready);
    }

    /// The reason why the remote shell ended before tracectl on the host answered.
    fn why_no_answer(&self, rsh: &str, status: ExitStatus) -> String {
        let said: Vec<_> = lock(&self.received).messages.iter().cloned().collect();
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
        match status.code() {
            Some(NOT_FOUND) => format!(
                "`{rsh}` or tracectl there is not found{said}; install tracectl there, or give its path with `--remote-tracectl`"
            ),
            Some(NOT_REACHED) => format!("it cannot be reached by `{rsh}`{said}"),
            _ => format!("`{rsh}` ended with {status} before tracectl there answered{said}"),
        }
    }

    /// The address of this machine as seen by the host, if known.
    pub(super) fn seen_as(&self) -> Option<IpAddr> {
        self.ready.as_ref()?.seen_as
    }

    /// Sends the request to record. An error shows when the remote shell ends.
    pub(super) fn record(&mut self, arguments: Vec<String>, key: &str) {
        let Some(input) = &mut self.input else { return };
        let _ = serde_json::to_writer(&mut *input, &Request { arguments, key: key.to_owned() });
        let _ = input.write_all(b"\n").and_then(|()| input.flush());
    }

    /// Asks the host to end the recording.
    pub(super) fn end(&mut self) {
        self.input = None;
    }

    pub(super) fn kill(&mut self) {
        self.end();
        if self.status.is_none() {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
    }
}

fn each_line(input: Option<impl Read>, mut line: impl FnMut(String)) {
    let Some(input) = input else { return };
    let mut input = BufReader::new(input);
    let mut bytes = Vec::new();
    while input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
        line(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned());
        bytes.clear();
    }
}
