//! The recorded command.

use super::END_TIMEOUT;
use super::remote::Side;
use crate::failure::{Failure, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::num::NonZero;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_controller::Controller;
use tracepoint_session_spec::SessionSpec;

/// Starts the command, if there is one. It inherits the tag of the session.
pub(super) fn start(
    command: &[String],
    controller: &Controller,
    spec: &SessionSpec,
    side: Side,
) -> Result<Option<Child>, Failure> {
    let [program, arguments @ ..] = command else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(arguments).env("TRACEPOINT_RUN_DIR", std::path::absolute(controller.path())?);
    command.envs(spec.tag.as_ref().map(|tag| ("TRACEPOINT_TAG", tag)));
    if side == Side::Remote {
        command.stdin(Stdio::null()).stdout(io::stderr());
    }
    let failed = |error| Failure::Refused(format!("cannot start {program}: {error}"));
    Ok(Some(command.spawn().map_err(failed)?))
}

/// Asks a command to end, and waits for it for a limited time. Its last events are still recorded.
pub(super) fn terminate(child: &mut Child) -> io::Result<()> {
    let asked = Instant::now();
    // The child has not been reaped, so the id still refers to it.
    if child.try_wait()?.is_none() {
        kill_process(Pid::from_child(child), Signal::TERM)?;
    }
    while child.try_wait()?.is_none() && asked.elapsed() < END_TIMEOUT {
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The outcome of a command in the convention of shells: its status, or 128 plus the number of the signal that ended it.
pub(super) fn status_of(status: ExitStatus) -> Outcome {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or_default();
    u8::try_from(code).ok().and_then(NonZero::new).map_or(Outcome::Success, Outcome::Command)
}
