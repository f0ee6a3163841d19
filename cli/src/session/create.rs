//! `tracectl create`: creates a named session.

use super::budget::BudgetArguments;
use super::channels::ChannelArguments;
use super::outputs::SessionOutputs;
use super::rules::{
    RouteArguments, RuleArguments, StatisticArguments, WaitHint, add, require_features, require_matches,
};
use super::{ChangeArguments, acks, controller};
use crate::failure::{Outcome, VerbResult};
use crate::message;
use clap::Args;
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{Rule, SessionSpec, State};

/// Creates a session for running and later processes
///
/// With `-o`, each process writes a CTF trace into the directory; with `--dt`, `--text` and `--udp`, a circular file, lines of text, or
/// datagrams to a client. Without an output, the newest events stay in the rings of each thread, for `tracectl snapshot`. The session is stopped
/// until `tracectl start`, unless `--start` is given.
///
/// A session has the channel `channel0`, and those of `--add-channel`. Each has its own rings, policy and contexts; all are in one trace.
/// The rules of this command use the channel given by `--channel`; `tracectl enable` adds more rules.
///
/// With `--statistic`, the program computes statistics of the events and records no event: `tracectl stat -s NAME` shows them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl create flight -e 'sched:*' --start && sleep 10 && tracectl snapshot flight -o /tmp/flight
  tracectl create watch -e 'net:*' -o /var/tmp/watch --budget-cpu 1% --budget-bytes 10M/s --start
  tracectl create errors -e '*' --level '<=err' -o /var/tmp/errors --wait
  tracectl create all -e '*' -o /var/tmp/all --rotate-size 64M --keep 10 --start
  tracectl create both -e 'net:*' -o /var/tmp/both --add-channel flight:policy=overwrite,ring-size=256K
  tracectl enable both -e 'sched:*' --channel flight && tracectl start both
  tracectl create numbers -e 'shop:*' --statistic count --statistic 'hist(size) by path' --start && tracectl stat -s numbers
  tracectl create waits --statistic 'latency(shop:asked, shop:answered by id)' --start
  tracectl create some -e 'shop:*' --statistic 'sample(1/100)' -o /var/tmp/some --start
  tracectl create live -e 'net:*' --udp 127.0.0.1 --start && tracectl status live")]
pub(crate) struct Create {
    /// The name of the session: up to 255 bytes, without `/`, not starting with a dot
    #[arg(value_name = "NAME")]
    name: String,
    /// Start the session at once
    #[arg(long)]
    start: bool,
    /// Accept rules that match no event of the running processes: they wait for processes and modules that come later
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    reply: ChangeArguments,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    statistics: StatisticArguments,
    #[command(flatten)]
    route: RouteArguments,
    #[command(flatten)]
    outputs: SessionOutputs,
    #[command(flatten)]
    channels: ChannelArguments,
    #[command(flatten)]
    budget: BudgetArguments,
}

impl Create {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.rules.pid)?;
        match controller.session(&self.name) {
            Err(ControlError::NoSession { .. }) => {}
            Ok(_) => return Err(ControlError::SessionExists(self.name.clone()).into()),
            Err(error) => return Err(error.into()),
        }
        let rules = self.rules.rules(&controller, self.statistics.default_events(&[]))?;
        let rules = self.route.apply(self.statistics.apply(rules));
        let mut spec = SessionSpec::new();
        spec.state = if self.start { State::Active } else { State::Stopped };
        spec.sinks = self.outputs.sinks()?;
        self.channels.apply(&mut spec);
        spec.budget = self.budget.spec();
        add(&mut spec, &self.name, &rules)?;
        if !self.wait {
            require_matches(&controller, &spec, &rules, WaitHint::Option)?;
            require_features(&controller, &spec, WaitHint::Option)?;
        }
        let session = controller.create(&self.name, &spec)?;
        if rules.iter().all(Rule::excludes) {
            let rules = if rules.is_empty() { "rules" } else { "rules but exclusions" };
            message::note(&format!(
                "the session {0} has no {rules} and records nothing; add some with `tracectl enable {0} -e RULE`",
                self.name
            ));
        }
        if !self.start {
            if self.reply.json {
                acks::write_json(&self.name, true, &[], &[])?;
            }
            return Ok(Outcome::Success);
        }
        acks::wait(&session, spec.generation, &self.reply)
    }
}
