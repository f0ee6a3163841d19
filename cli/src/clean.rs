//! `tracectl clean`: removes the rings of sessions that are over.

use crate::failure::{Outcome, VerbResult};
use crate::session::{controller, leftover};
use crate::{message, output, units};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use tracepoint_controller::Leftover;

/// Removes rings left behind by killed processes
///
/// Recorders and commands that were killed leave rings as well. Such rings are kept so that `tracectl recover` can make traces from them. Rings that
/// a process records into, or that a recorder drains, are never removed, nor are those of existing sessions (`tracectl destroy --purge NAME`).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl clean                        remove what was left more than a day ago
  tracectl clean --older-than 1h
  tracectl clean --purge --dry-run      show what is there
  tracectl clean --purge --json | jq '.removed[].bytes'")]
pub(crate) struct Clean {
    /// Remove rings that were left at least this long ago
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "1d", conflicts_with = "purge")]
    older_than: Duration,
    /// Remove everything: nothing can be recovered afterwards
    #[arg(long)]
    purge: bool,
    /// Show the rings that would be removed, and remove none
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Write one JSON object: `run_dir`, `dry_run`, `removed` and `kept`
    #[arg(long)]
    json: bool,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
}

impl Clean {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.pid)?;
        // Also removes what killed commands and processes left behind.
        controller.processes()?;
        controller.sessions()?;
        let (due, mut kept): (Vec<_>, Vec<_>) =
            controller.leftovers()?.into_iter().partition(|left| self.purge || left.age() >= self.older_than);
        let (mut removed, mut outcome) = (Vec::new(), Outcome::Success);
        for leftover in due {
            if self.dry_run || controller.remove_leftover(&leftover.name)? {
                removed.push(leftover);
            } else {
                message::note(&format!("{}: not everything could be removed", leftover.path.display()));
                kept.push(leftover);
                outcome = Outcome::Incomplete;
            }
        }
        if self.json {
            let all = |list: &[Leftover]| list.iter().map(leftover::as_json).collect::<Vec<_>>();
            output::json(&json!({
                "run_dir": controller.path().to_string_lossy(),
                "dry_run": self.dry_run,
                "removed": all(&removed),
                "kept": all(&kept),
            }))?;
            return Ok(outcome);
        }
        let mut out = output::styled();
        let done = if self.dry_run { "would remove" } else { "removed" };
        for (done, list) in [(done, &removed), ("kept", &kept)] {
            if !list.is_empty() {
                let sum = list.iter().map(|leftover| leftover.bytes).sum();
                writeln!(out, "{done} {}:", units::bytes(sum))?;
                leftover::table(list).write(&mut out)?;
            }
        }
        out.flush()?;
        Ok(outcome)
    }
}
