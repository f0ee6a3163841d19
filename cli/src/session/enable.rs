//! `tracectl enable`: adds rules to a session.

use super::channels::Route;
use super::{Reach, RuleArguments, add, insist, settle};
use crate::{Ended, failure};
use clap::Args;

/// Adds rules to a session: the events that they match are recorded, too
///
/// A rule that matches nothing that is there is an error, unless `--wait` is given. Events that the session's budget has switched off are
/// on again, those of other rules as well.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl enable flight -e 'net:*' -e '!net:idle'
  tracectl enable flight -e 'sched:*' --level '<=info' --exe server
  tracectl enable both -e 'disk:*' --channel flight

{}", failure::EXIT_CODES))]
pub(crate) struct Enable {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    route: Route,
    /// Rules may match nothing that is there now
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Enable {
    pub(crate) fn run(&self) -> Ended {
        let controller = self.rules.controller()?;
        let rules = self.route.of(self.rules.rules(&controller, &["*"])?);
        let session = controller.session(&self.name)?;
        if !self.wait {
            let mut spec = session.spec()?;
            add(&mut spec, &self.name, &rules)?;
            insist(&controller, &spec, &rules)?;
        }
        let names: Vec<_> = rules.iter().map(|rule| rule.event.as_str()).collect();
        let what = format!("enable {}", names.join(" "));
        let generation = session.change(&what, |spec| {
            spec.renew_budget();
            add(spec, &self.name, &rules)
        })?;
        settle(&session, generation, self.reach.timeout)
    }
}
