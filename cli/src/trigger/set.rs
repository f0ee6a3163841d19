//! `tracectl trigger`: sets a trigger on a session.

use super::{SessionOption, describe, unwatched};
use crate::failure::{EXIT_CODES, Failure, Outcome, VerbResult};
use crate::{message, units};
use clap::{Args, ValueEnum};
use nix::unistd::{Uid, User};
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracepoint_control::trigger::{TriggerOptions, trigger_set};
use tracepoint_control::{Do, Limit, When};

/// An action on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Write what the session's rings hold into a new directory
    Snapshot,
    /// Stop the session
    Stop,
}

/// Sets a trigger: when something happens, do something to a session
///
/// `OnAnyCoreDump`: a process of this system has dumped core, and a helper that the kernel started has said so. Each snapshot is a directory
/// `TIME-PID` with a trace of each process of the session, the one that died included. A trigger of a stopped session does nothing.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl trigger -s flight OnAnyCoreDump snapshot
  tracectl trigger -s flight OnAnyCoreDump snapshot stop --output /var/tmp/crashes
  tracectl trigger OnAnyCoreDump snapshot --limit 5/h --keep 20 --max-size 4G

{EXIT_CODES}"))]
pub(crate) struct Trigger {
    #[command(flatten)]
    session: SessionOption,
    /// What happens: `OnAnyCoreDump`
    #[arg(value_name = "WHAT")]
    when: When,
    /// What to do, in this order; an action that fails does not keep the next from being done
    #[arg(value_name = "ACTION", required = true)]
    actions: Vec<Action>,
    /// Where snapshots go [default: `$XDG_STATE_HOME/tracepoint/snapshots/NAME`, or below `~/.local/state`]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// A name for the trigger: letters, digits, `-` and `_` [default: the first of t1, t2 … that is free]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Act on each Nth occurrence only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Act once, on the Nth occurrence
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "every")]
    once_after: Option<u64>,
    /// Act at most so often: `5/h`, `1/10min`
    #[arg(long, value_name = "N/TIME")]
    limit: Option<Limit>,
    /// Keep the newest N snapshots [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Keep snapshots of this size in sum [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_size: Option<u64>,
}

impl Trigger {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = self.session.controller()?;
        let session = self.session.session(&controller)?;
        let output = if self.actions.contains(&Action::Snapshot) {
            match &self.output {
                Some(output) => std::path::absolute(output)?,
                None => default_output(session.name())?,
            }
        } else {
            PathBuf::new()
        };
        let mut actions = self.actions.iter().map(|action| match action {
            Action::Snapshot => Do::Snapshot(output.clone()),
            Action::Stop => Do::Stop,
        });
        let Some(first) = actions.next() else { return Ok(Outcome::Usage) };
        let mut options = TriggerOptions::default();
        options.then = actions.collect();
        options.id.clone_from(&self.id);
        (options.every, options.once_after) = (self.every, self.once_after);
        options.limit = self.limit.map(|limit| limit.to_string());
        (options.keep, options.max_size) = (self.keep, self.max_size);
        let done = std::iter::once(&first).chain(&options.then).map(describe).collect::<Vec<_>>().join(", then ");
        let id = trigger_set(&session, self.when, first, &options)?;
        message::summary(&format!("trigger {id} of {}: {}: {done}", session.name(), self.when));
        if let Some(note) = unwatched(controller.path()) {
            message::note(&note);
        }
        Ok(Outcome::Success)
    }
}

/// The default place for the snapshots of a session. It is decided now: a helper that the kernel starts has no environment.
fn default_output(session: &str) -> Result<PathBuf, Failure> {
    let set =
        |name: &str| env::var_os(name).filter(|value: &OsString| Path::new(value).is_absolute()).map(PathBuf::from);
    // With `--user`, the variable is still root's.
    let own = |home: &PathBuf| home.metadata().is_ok_and(|home| home.uid() == Uid::effective().as_raw());
    let home = || set("HOME").filter(own).or_else(|| Some(User::from_uid(Uid::effective()).ok()??.dir));
    let state = set("XDG_STATE_HOME").filter(own).or_else(|| home().map(|home| home.join(".local/state")));
    state.map(|state| state.join("tracepoint/snapshots").join(session)).ok_or_else(|| {
        Failure::Refused("there is no home directory for the snapshots; name a place with `--output DIR`".to_owned())
    })
}
