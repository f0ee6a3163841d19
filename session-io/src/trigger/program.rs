//! The action `run`: starts a program, and writes its exit status to the state of its trigger.
//!
//! ```text
//!   action `run` ─▶ program started, of at most MAX at once ─▶ further actions ─▶ state written ─▶ a thread waits for its end ─▶ state
//! ```
//!
//! A program is started by its argument list, without a shell. Data from a traced process (a field of an event, a name) is passed only in
//! the environment. The program is in its own process group, so that Ctrl-C in a terminal ends the listener but not its programs. One
//! thread for each waits for its end, so that it does not stay a zombie, and no other child of this program is waited for.

use super::failure::Failure;
use rustix::io::Errno;
use std::fmt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_sinks::own_thread;

/// Maximum number of programs that run at the same time.
const MAX: usize = 8;

/// Starts programs, and counts the running ones.
#[derive(Clone, Debug)]
pub struct Programs {
    running: Arc<Running>,
    /// True if their outputs go to this program's standard error.
    shows_output: bool,
}

#[derive(Debug, Default)]
struct Running {
    count: Mutex<usize>,
    one_ended: Condvar,
}

/// A program that was started.
#[derive(Debug)]
pub(super) struct Started {
    child: Child,
    place: Place,
}

/// A slot for a running program; freed on drop.
#[derive(Debug)]
struct Place(Arc<Running>);

impl Programs {
    /// Creates the starter of programs whose output is written to the standard error of this one, or discarded.
    pub fn new(shows_output: bool) -> Self {
        Self { running: Arc::default(), shows_output }
    }

    /// Starts a program, with these variables in addition to this process's environment.
    pub(super) fn start(&self, line: &[String], variables: Vec<(String, String)>) -> Result<Started, Failure> {
        let (program, arguments) =
            line.split_first().ok_or_else(|| Failure::new(&"no program is named", Errno::INVAL.raw_os_error()))?;
        let place = Place::take(&self.running).ok_or_else(|| {
            Failure::new(
                &format!("{MAX} programs that triggers have started still run, and no more may"),
                Errno::AGAIN.raw_os_error(),
            )
        })?;
        let output = || if self.shows_output { Stdio::from(std::io::stderr()) } else { Stdio::null() };
        let mut command = Command::new(program);
        command.args(arguments).envs(variables).current_dir("/").process_group(0);
        let started = command.stdin(Stdio::null()).stdout(output()).stderr(output()).spawn();
        let child = started.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
            Failure::new(&format!("cannot start {program}: {error}"), errno)
        })?;
        Ok(Started { child, place })
    }

    /// Waits until no program is running, for at most `timeout`.
    pub fn wait(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut count = self.running.lock();
        while *count > 0 {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return };
            count = self.running.one_ended.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Started {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts a thread that waits for the end of the program, and then calls `ended`.
    pub(super) fn watch(self, ended: impl FnOnce(ExitStatus) + Send + 'static) {
        let Self { mut child, place } = self;
        let wait = move || {
            own_thread::begin_traced();
            if let Ok(status) = child.wait() {
                ended(status);
            }
            drop(place);
        };
        // Without a thread the program continues, and is a zombie between its end and the end of this process.
        let _ = thread::Builder::new().name("tracepoint-run".to_owned()).spawn(wait);
    }
}

impl Place {
    fn take(running: &Arc<Running>) -> Option<Self> {
        let mut count = running.lock();
        (*count < MAX).then(|| {
            *count += 1;
            Self(Arc::clone(running))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.one_ended.notify_all();
    }
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The exit status of a program, as text.
pub(super) struct HowItEnded(pub(super) ExitStatus);

impl fmt::Display for HowItEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "killed by signal {signal}"),
            (None, None) => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn shell(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_program_gets_its_variables_and_tells_its_status() {
        let (programs, (send, ended)) = (Programs::new(false), channel());
        let variables = vec![("A".to_owned(), "$(exit 9); x".to_owned())];
        let started = programs.start(&shell("test \"$A\" = '$(exit 9); x' && exit 7"), variables).expect("a shell");
        started.watch(move |status| send.send(HowItEnded(status).to_string()).expect("the test waits"));
        assert_eq!(ended.recv().expect("it ends"), "exit status 7");
        programs.wait(Duration::from_secs(60));
        assert_eq!(*programs.running.lock(), 0);
    }

    #[test]
    fn no_more_than_a_few_run_at_a_time() {
        let programs = Programs::new(false);
        let running: Vec<_> = (0..MAX).map(|_| programs.start(&shell("exec sleep 600"), Vec::new())).collect();
        let refused = programs.start(&shell(":"), Vec::new()).expect_err("too many");
        assert_eq!(refused.errno, Errno::AGAIN.raw_os_error());
        for started in running {
            let mut started = started.expect("a program");
            started.child.kill().expect("it runs");
            started.watch(|_| {});
        }
        programs.wait(Duration::from_secs(60));
        let missing = programs.start(&["/no/such/program".to_owned()], Vec::new()).expect_err("it is missing");
        assert!(missing.errno == 2 && missing.reason.contains("/no/such/program"), "{missing:?}");
        assert_eq!(*programs.running.lock(), 0, "a program that does not start takes no place");
    }
}
