//! The action `run`: starts a program, and writes its exit status to the state of its trigger.
//!
//! ```text
//!   action `run` ─▶ program started, of at most MAX at once ─▶ further actions ─▶ state written ─▶ a thread waits for its end ─▶ state
//! ```
//!
//! A program is started by its argument list, without a shell. Data from a traced process (a field of an event, a name) is passed only in
//! the environment. The program is in its own process group, so that Ctrl-C in a terminal ends the listener but not its programs. One
//! thread for each waits for its end, so that it does not stay a zombie, and no other child of this program is waited for.

use rustix::io::Errno;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracepoint_session_io::trigger::{ActionFailure, ExitHandler, ProgramStarter, StartedProgram};
use tracepoint_sinks::own_thread;

/// Maximum number of programs that run at the same time.
const MAX: usize = 8;

/// Starts programs, and counts the running ones.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    running: Arc<RunningPrograms>,
    /// True if their outputs go to this program's standard error.
    shows_output: bool,
}

#[derive(Debug, Default)]
struct RunningPrograms {
    count: Mutex<usize>,
    one_ended: Condvar,
}

#[derive(Debug)]
struct RunningProgram {
    child: Child,
    slot: ProgramSlot,
}

/// A slot for a running program; freed on drop.
#[derive(Debug)]
struct ProgramSlot(Arc<RunningPrograms>);

impl Programs {
    /// Creates the starter of programs whose output is written to the standard error of this one, or discarded.
    pub(super) fn new(shows_output: bool) -> Self {
        Self { running: Arc::default(), shows_output }
    }

    /// Waits until no program is running, for at most `timeout`.
    pub(super) fn wait(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut count = self.running.lock();
        while *count > 0 {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return };
            count = self.running.one_ended.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl ProgramStarter for Programs {
    fn start(
        &self,
        line: &[String],
        variables: Vec<(String, String)>,
    ) -> Result<Box<dyn StartedProgram>, ActionFailure> {
        let (program, arguments) = line
            .split_first()
            .ok_or_else(|| ActionFailure::new(&"no program is named", Errno::INVAL.raw_os_error()))?;
        let slot = ProgramSlot::take(&self.running).ok_or_else(|| {
            ActionFailure::new(
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
            ActionFailure::new(&format!("cannot start {program}: {error}"), errno)
        })?;
        Ok(Box::new(RunningProgram { child, slot }))
    }
}

impl StartedProgram for RunningProgram {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn on_exit(self: Box<Self>, handler: ExitHandler) {
        let Self { mut child, slot } = *self;
        let wait = move || {
            if let Ok(status) = child.wait() {
                handler(exit_text(status), status.success());
            }
            drop(slot);
        };
        // Without a thread the program continues, and is a zombie between its end and the end of this process.
        let _ = own_thread::spawn_traced("tracepoint-run", wait);
    }
}

impl ProgramSlot {
    fn take(running: &Arc<RunningPrograms>) -> Option<Self> {
        let mut count = running.lock();
        (*count < MAX).then(|| {
            *count += 1;
            Self(Arc::clone(running))
        })
    }
}

impl Drop for ProgramSlot {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.one_ended.notify_all();
    }
}

impl RunningPrograms {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the exit status of a program, as text.
fn exit_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
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
        started.on_exit(Box::new(move |status, _| send.send(status).expect("the test waits")));
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
            let started = started.expect("a program");
            let pid = rustix::process::Pid::from_raw(started.pid().cast_signed()).expect("a process");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
            started.on_exit(Box::new(|_, _| {}));
        }
        programs.wait(Duration::from_secs(60));
        let missing = programs.start(&["/no/such/program".to_owned()], Vec::new()).expect_err("it is missing");
        assert!(missing.errno == 2 && missing.reason.contains("/no/such/program"), "{missing:?}");
        assert_eq!(*programs.running.lock(), 0, "a program that does not start takes no slot");
    }
}
