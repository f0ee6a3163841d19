//! `tracectl notify`: the program that the kernel starts for a process that dumps core.

use crate::failure::{Failure, Outcome, VerbResult};
use crate::message;
use clap::Args;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use tracepoint_controller::core_dump::{CoreArguments, act_as_dumper, log_to_kernel, run_helper};
use tracepoint_controller::trigger::{TriggerError, trigger_fire};
use tracepoint_session_spec::TriggerCondition;

/// Fires the triggers of a core dump; run by the kernel
///
/// `tracectl install-core-handler` registers it with the kernel. The core image on the standard input is passed on, saved or discarded, as
/// configured there. Errors go to the standard error, or to the kernel's log (`dmesg`) if that is closed, which it is when the kernel starts this
/// command. `tracectl triggers` shows the results of the triggers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl notify --core 4242 1000 1000 server host 11 < /dev/null    what the kernel does when process 4242 crashes
  echo '|/usr/bin/tracectl notify --core %P %u %g %e %h %s' > /proc/sys/kernel/core_pattern")]
pub(crate) struct Notify {
    /// The process: the values of %P %u %g %e %h %s (`man 5 core`), in this order, and optionally of %t %p %i %I %c %d %E
    #[arg(long, required = true, num_args = 0.., allow_hyphen_values = true, value_name = "VALUE")]
    core: Vec<OsString>,
    /// The configuration written by `install-core-handler`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Internal: the part of the helper that runs with the rights of the process's user
    #[arg(long, hide = true)]
    act: bool,
}

impl Notify {
    pub(crate) fn run(&self) -> VerbResult {
        let outcome = self.act_or_help();
        if let Err(failure) = &outcome
            && !self.act
            && is_null_stderr()
        {
            log_to_kernel(&failure.to_string());
        }
        outcome
    }

    fn act_or_help(&self) -> VerbResult {
        let core = CoreArguments::parse(&self.core).map_err(|error| Failure::Usage(error.to_string()))?;
        if self.act {
            return act(&core);
        }
        let mut child = Command::new("/proc/self/exe");
        child.args(["notify", "--act", "--core"]);
        let report = run_helper(&core, child, self.config.as_deref())?;
        let messages = report.messages.trim_end();
        if !messages.is_empty() {
            if is_null_stderr() {
                log_to_kernel(messages);
            }
            eprintln!("{messages}");
        }
        if let Some(error) = report.core_image {
            return Err(Failure::Refused(format!("the core image was not kept: {error}")));
        }
        match report.actions {
            Some(status) if status.success() => Ok(Outcome::Success),
            Some(_) => Ok(Outcome::Failed),
            None => Err(Failure::Refused("the triggers took longer than two minutes".to_owned())),
        }
    }
}

/// Fires the triggers, as the user of the process.
fn act(core: &CoreArguments) -> VerbResult {
    let fire = |run_dir: &Path| trigger_fire(TriggerCondition::CoreDump, Some(&run_dir.join("notify")), core.dump());
    match act_as_dumper(core, fire)? {
        // Without a run directory the process was not traced.
        None | Some(Ok(_)) => Ok(Outcome::Success),
        Some(Err(error @ TriggerError::Action { .. })) => {
            message::error(&error.to_string());
            Ok(Outcome::Incomplete)
        }
        Some(Err(error)) => Err(Failure::Trigger(error)),
    }
}

/// True if the standard error is discarded. Where the kernel left it closed, the standard library opens `/dev/null` in its place.
fn is_null_stderr() -> bool {
    let device =
        |path: &str| fs::metadata(path).ok().filter(|file| file.file_type().is_char_device()).map(|file| file.rdev());
    device("/proc/self/fd/2").is_some_and(|found| Some(found) == device("/dev/null"))
}
