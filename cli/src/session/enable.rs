//! `tracectl enable`: adds rules, channels and outputs to a session.

use super::channels::{AddedChannels, Route};
use super::outputs::Outputs;
use super::{Reach, RuleArguments, insist, settle};
use crate::{Ended, failure, units};
use clap::Args;
use std::path::PathBuf;
use tracepoint_control::{ControlError, Rule, SessionSpec, SinkSpec};

/// Adds rules, channels and outputs to a session, also while it records
///
/// A rule for the same events, programs, process and channel as one that is there replaces it: so its level, filter and limit are changed. A
/// rule that matches nothing that is there is an error, unless `--wait` is given. Events that the session's budget has switched off are
/// on again, those of other rules as well.
///
/// An output that is added while the session records gets what is recorded from then on.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl enable flight -e 'net:*' -e '!net:idle'
  tracectl enable flight -e 'sched:*' --level '<=info' --exe server
  tracectl enable flight -e 'net:*' --filter 'bytes > 4096'
  tracectl enable both -e 'disk:*' --add-channel flight:policy=overwrite --channel flight
  tracectl enable flight -o /var/tmp/flight

{}", failure::EXIT_CODES))]
pub(crate) struct Enable {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    route: Route,
    /// Write CTF traces, too: a directory, in which each process makes one of its own
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
    /// How much a process writes at most to each of the outputs that are added
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "1G")]
    max_size: u64,
    #[command(flatten)]
    channels: AddedChannels,
    /// Rules may match nothing that is there now
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Enable {
    pub(crate) fn run(&self) -> Ended {
        let controller = self.rules.controller()?;
        let output = self.output.as_ref().map(std::path::absolute).transpose()?;
        let sinks = self.outputs.sinks(output.as_deref(), self.max_size)?;
        let adds_others = !sinks.is_empty() || self.channels.any();
        let usual: &[&str] = if adds_others { &[] } else { &["*"] };
        let rules = self.route.of(self.rules.rules(&controller, usual)?);
        let session = controller.session(&self.name)?;
        if !self.wait {
            let mut spec = session.spec()?;
            self.change(&mut spec, &rules, &sinks)?;
            insist(&controller, &spec, &rules)?;
        }
        let channels = self.channels.any().then_some("channels");
        let sinks_named = sinks.iter().map(|sink| sink.kind.as_str());
        let names: Vec<_> = rules.iter().map(|rule| rule.event.as_str()).chain(channels).chain(sinks_named).collect();
        let what = format!("enable {}", names.join(" "));
        let generation = session.change(&what, |spec| self.change(spec, &rules, &sinks))?;
        settle(&session, generation, self.reach.timeout)
    }

    fn change(&self, spec: &mut SessionSpec, rules: &[Rule], sinks: &[SinkSpec]) -> Result<(), ControlError> {
        spec.renew_budget();
        spec.sinks.extend(sinks.iter().cloned());
        self.channels.apply(spec);
        let failed = |error| ControlError::Spec { session: self.name.clone(), error };
        rules.iter().try_for_each(|rule| spec.enable(rule).map(drop).map_err(failed))?;
        spec.check().map_err(failed)
    }
}
