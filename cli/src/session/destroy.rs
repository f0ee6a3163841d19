//! `tracectl destroy`: ends a session and removes it.

use super::{Reach, controller, tell_silent};
use crate::failure::{self, Outcome};
use crate::{Ended, output};
use clap::Args;
use tracepoint_control::{Ack, AckState};

/// Ends a session in all processes, and removes it
///
/// Traces that were written stay. Rings of processes that died stay, too, unless `--purge` is given: `tracectl recover` makes traces of
/// them.
#[derive(Debug, Args)]
#[command(after_help = failure::EXIT_CODES)]
pub(crate) struct Destroy {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    /// Remove the rings of processes that died
    #[arg(long)]
    purge: bool,
    /// Use the run directory of this process, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

impl Destroy {
    pub(crate) fn run(&self) -> Ended {
        let controller = controller(self.pid)?;
        let removed = controller.session(&self.name)?.destroy(self.reach.timeout, self.purge)?;
        tell_silent(&removed.silent);
        let ending: Vec<&Ack> = removed.acks.iter().filter(|ack| ack.state == AckState::Ending).collect();
        for ack in &ending {
            let error = ack.error.as_deref().unwrap_or_default();
            output::note(&format!("process {} ({}): {error}", ack.process.pid, ack.name));
        }
        for dir in &removed.dead {
            let dir = dir.display();
            output::note(&format!("the rings of a process that died are kept: `tracectl recover {dir} -o OUT`"));
        }
        let all = removed.silent.is_empty() && ending.is_empty();
        Ok(if all { Outcome::Well } else { Outcome::Wanting })
    }
}
