//! `tracectl enable`: adds rules to a session.

use super::rules::{RouteArguments, RuleArguments, add, require_matches};
use super::{WaitArguments, acks};
use crate::failure::{EXIT_CODES, VerbResult};
use clap::Args;

/// Adds rules to a session, which then also records the events that they match
///
/// A rule that matches no event of the running processes is an error, unless `--wait` is given. All events that the budget of the session
/// has switched off are switched on again.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl enable flight -e 'net:*' -e '!net:idle'
  tracectl enable flight -e 'sched:*' --level '<=info' --exe server
  tracectl enable both -e 'disk:*' --channel flight

{EXIT_CODES}"))]
pub(crate) struct Enable {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    route: RouteArguments,
    /// Accept rules that match no event of the running processes
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    wait_arguments: WaitArguments,
}

impl Enable {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = self.rules.controller()?;
        let rules = self.route.apply(self.rules.rules(&controller, &["*"])?);
        let session = controller.session(&self.name)?;
        if !self.wait {
            let mut spec = session.spec()?;
            add(&mut spec, &self.name, &rules)?;
            require_matches(&controller, &spec, &rules)?;
        }
        let names: Vec<_> = rules.iter().map(|rule| rule.event.as_str()).collect();
        let what = format!("enable {}", names.join(" "));
        let generation = session.change(&what, |spec| {
            spec.renew_budget();
            add(spec, &self.name, &rules)
        })?;
        acks::wait(&session, generation, self.wait_arguments.timeout)
    }
}
