//! `tracectl install-core-handler`: makes the kernel start `tracectl notify` for processes that dump core.

use crate::failure::{Failure, Outcome, VerbResult};
use crate::output;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_controller::core_dump::{CoreHandler, CoreHandlerOptions, PatternChange};

/// Lets the kernel report core dumps (root only)
///
/// The triggers `OnAnyCoreDump` of the process's user fire at each core dump. Sets `/proc/sys/kernel/core_pattern`, for all users of this machine and
/// until it restarts. The former pattern is kept in `/var/lib/tracepoint/core-handler.toml`, and restored by `--uninstall`. Core images are no longer
/// written where the former pattern said: they are thrown away, saved with `--save`, or passed on with `--chain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl install-core-handler --dry-run               show what would be changed
  sudo tracectl install-core-handler --save /var/crash
  sudo tracectl install-core-handler --chain            keep systemd-coredump, or another handler, working
  sudo tracectl install-core-handler --uninstall")]
#[expect(clippy::struct_excessive_bools, reason = "options of a command line")]
pub(crate) struct InstallCoreHandler {
    /// Restore the former pattern
    #[arg(long, conflicts_with_all = ["chain", "save"])]
    uninstall: bool,
    /// Pass core images on to the handler that is installed now; without this, another handler is not replaced
    #[arg(long)]
    chain: bool,
    /// Write core images into DIR, for root alone
    #[arg(long, value_name = "DIR", conflicts_with = "chain")]
    save: Option<PathBuf>,
    /// Change nothing, and show what would be changed
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Keep the configuration in FILE
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write one JSON object: `from`, `to` and `dry_run`
    #[arg(long)]
    json: bool,
}

impl InstallCoreHandler {
    pub(crate) fn run(&self) -> VerbResult {
        let mut handler = CoreHandler::default();
        if let Some(config) = &self.config {
            handler = handler.config(std::path::absolute(config)?);
        }
        let change = if self.uninstall { handler.uninstall(self.dry_run)? } else { self.install(&handler)? };
        let PatternChange { from, to, .. } = change;
        if self.json {
            output::json(&json!({ "from": from, "to": to, "dry_run": self.dry_run }))?;
        } else {
            let done = if self.dry_run { "would change" } else { "changed" };
            let mut out = output::styled();
            writeln!(out, "{done} core_pattern\n  from  {from}\n  to    {to}")?;
            out.flush()?;
        }
        Ok(Outcome::Success)
    }

    fn install(&self, handler: &CoreHandler) -> Result<PatternChange, Failure> {
        let mut options = CoreHandlerOptions::default();
        options.chain = self.chain;
        options.save = self.save.as_ref().map(std::path::absolute).transpose()?;
        if let Some(dir) = options.save.as_ref().filter(|dir| !dir.is_dir()) {
            return Err(Failure::Refused(format!("{} is not a directory: make it first", dir.display())));
        }
        let program = std::env::current_exe()?;
        Ok(handler.install(&program, options, self.dry_run)?)
    }
}
