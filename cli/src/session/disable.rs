//! `tracectl disable`: takes rules out of a session.

use super::channels::Route;
use super::{Reach, RuleArguments, settle};
use crate::Ended;
use crate::failure::{self, Failure};
use clap::Args;

/// Takes rules out of a session, as they were given to `enable`
///
/// To leave out a part of what a rule matches, enable one that begins with `!`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl disable flight -e 'net:*'

{}", failure::EXIT_CODES))]
pub(crate) struct Disable {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    route: Route,
    #[command(flatten)]
    reach: Reach,
}

impl Disable {
    pub(crate) fn run(&self) -> Ended {
        let controller = self.rules.controller()?;
        let rules = self.route.of(self.rules.rules(&controller, &["*"])?);
        let session = controller.session(&self.name)?;
        let names: Vec<_> = rules.iter().map(|rule| rule.event.as_str()).collect();
        let mut missing = None;
        let generation = session.change(&format!("disable {}", names.join(" ")), |spec| {
            let known: Vec<_> = spec.rules().flatten().map(ToString::to_string).collect();
            missing =
                rules.iter().find(|rule| spec.clone().remove_rule(rule) == 0).map(|rule| (rule.to_string(), known));
            if missing.is_none() {
                for rule in &rules {
                    spec.remove_rule(rule);
                }
            }
            Ok(())
        })?;
        match missing {
            Some((rule, known)) if known.is_empty() => {
                Err(Failure::Senseless(format!("{} has no rule {rule}: it has none at all", self.name)))
            }
            Some((rule, known)) => {
                Err(Failure::Senseless(format!("{} has no rule {rule}; it has {}", self.name, known.join(", "))))
            }
            None => settle(&session, generation, self.reach.timeout),
        }
    }
}
