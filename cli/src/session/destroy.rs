//! `tracectl destroy`: ends a session and removes it.

use super::acks::{of_process, report_silent, write_json};
use super::{ChangeArguments, SessionArguments, controller};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::{message, units};
use clap::Args;
use tracepoint_controller::{Controller, Leftover};
use tracepoint_run_dir::{Ack, AckState};
use tracepoint_session_io::ControlError;

/// Ends a session in all processes and removes it
///
/// Traces are kept. The rings of processes that died are also kept, so that `tracectl recover` can make traces from them; `--purge` removes
/// them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl destroy flight
  tracectl destroy --purge flight")]
pub(crate) struct Destroy {
    #[command(flatten)]
    session: SessionArguments,
    /// Remove the rings of processes that died, also of a session that has ended
    #[arg(long)]
    purge: bool,
    #[command(flatten)]
    reply: ChangeArguments,
}

impl Destroy {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.session.pid)?;
        let name = &self.session.name;
        let session = match controller.session(name) {
            Err(error @ ControlError::NoSession { .. }) => {
                return controller
                    .leftover(name)
                    .map_or_else(|| Err(error.into()), |left| self.remove(&controller, &left));
            }
            session => session?,
        };
        let removed = session.destroy(self.reply.wait.timeout, self.purge)?;
        report_silent(&removed.silent);
        let ending: Vec<&Ack> = removed.acks.iter().filter(|ack| ack.state == AckState::Ending).collect();
        for ack in &ending {
            message::note(&of_process(ack, ack.error.as_deref().unwrap_or("it has not ended its recording yet")));
        }
        for dir in &removed.dead {
            let dir = dir.display();
            message::note(&format!(
                "the rings of a process that died are kept; recover them: `tracectl recover {dir} -o OUT`"
            ));
        }
        let complete = removed.silent.is_empty() && ending.is_empty();
        if self.reply.json {
            write_json(name, complete, &removed.acks, &removed.silent)?;
        }
        Ok(if complete { Outcome::Success } else { Outcome::Incomplete })
    }

    fn remove(&self, controller: &Controller, leftover: &Leftover) -> VerbResult {
        let (name, path) = (&leftover.name, leftover.path.display());
        if !self.purge {
            return Err(Failure::Refused(format!(
                "the session {name} is over, and its rings are kept ({}); recover them (`tracectl recover {path} -o OUT`), or \
                 remove them (`tracectl destroy --purge {name}`)",
                units::bytes(leftover.bytes)
            )));
        }
        let complete = controller.remove_leftover(name)?;
        if self.reply.json {
            write_json(name, complete, &[], &[])?;
        }
        if complete {
            return Ok(Outcome::Success);
        }
        message::note(&format!("{path}: not everything could be removed"));
        Ok(Outcome::Incomplete)
    }
}
