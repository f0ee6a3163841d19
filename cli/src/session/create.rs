//! `tracectl create`: makes a session that has a name.

use super::budget::BudgetArguments;
use super::channels::{ChannelArguments, Route};
use super::outputs::Outputs;
use super::{Reach, RuleArguments, add, insist, settle};
use crate::failure::{self, Outcome};
use crate::{Ended, output, units};
use clap::Args;
use std::path::PathBuf;
use tracepoint_control::{ControlError, SessionSpec, State};

/// Makes a session, for processes that run and those to come
///
/// With an output directory each process writes a CTF trace into it, with `--dt`, `--text` and `--udp` a circular file, lines, or to a
/// client; without any of them the newest events stay in the rings of each thread, for `tracectl snapshot`. The session is stopped until
/// `tracectl start`, unless `--start` is given.
///
/// A session has one channel, `channel0`, and those that `--add-channel` adds: each with rings, a policy and contexts of its own, in one trace. The
/// rules of a command go into the channel that `--channel` names; further rules are added by `tracectl enable`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl create flight -e 'sched:*' --start && sleep 10 && tracectl snapshot flight -o /tmp/flight
  tracectl create watch -e 'net:*' -o /var/tmp/watch --budget-cpu 1% --budget-bytes 10M/s --start
  tracectl create errors -e '*' --level '<=err' -o /var/tmp/errors --wait
  tracectl create all -e '*' -o /var/tmp/all --rotate-size 64M --keep 10 --start
  tracectl create both -e 'net:*' -o /var/tmp/both --add-channel flight:policy=overwrite,ring-size=256K
  tracectl enable both -e 'sched:*' --channel flight && tracectl start both
  tracectl create live -e 'net:*' --udp 127.0.0.1 --start && tracectl status live

{}", failure::EXIT_CODES))]
pub(crate) struct Create {
    /// Its name: up to 255 bytes, without `/`, not starting with a dot
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    route: Route,
    /// Where the processes write their traces: a directory, in which each makes one of its own
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
    /// How much a process writes at most, and of chunks how much stays
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "1G")]
    max_size: u64,
    #[command(flatten)]
    channels: ChannelArguments,
    #[command(flatten)]
    budget: BudgetArguments,
    /// Start it at once
    #[arg(long)]
    start: bool,
    /// Rules may match nothing that is there now
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Create {
    pub(crate) fn run(&self) -> Ended {
        let controller = self.rules.controller()?;
        match controller.session(&self.name) {
            Err(ControlError::NoSession { .. }) => {}
            Ok(_) => return Err(ControlError::Exists { name: self.name.clone() }.into()),
            Err(error) => return Err(error.into()),
        }
        let rules = self.route.of(self.rules.rules(&controller, &[])?);
        let mut spec = SessionSpec::new();
        spec.state = if self.start { State::Active } else { State::Stopped };
        let output = self.output.as_ref().map(std::path::absolute).transpose()?;
        spec.sinks = self.outputs.sinks(output.as_deref(), self.max_size)?;
        self.channels.apply(&mut spec);
        spec.budget = self.budget.spec();
        add(&mut spec, &self.name, &rules)?;
        if !self.wait {
            insist(&controller, &spec, &rules)?;
        }
        let session = controller.create(&self.name, &spec)?;
        if rules.is_empty() {
            output::note(&format!(
                "{0} has no rule, and records nothing: give it some by `tracectl enable {0} -e RULE`",
                self.name
            ));
        }
        if self.start { settle(&session, spec.generation, self.reach.timeout) } else { Ok(Outcome::Well) }
    }
}
