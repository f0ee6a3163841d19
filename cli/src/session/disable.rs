//! `tracectl disable`: takes rules out of a session.

use super::channels::Route;
use super::{Reach, RuleArguments, settle, some};
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
            let known: Vec<_> = spec.rules().flatten().collect();
            let unknown = rules.iter().find(|rule| !known.contains(rule));
            missing = unknown.map(|rule| (rule.to_string(), known.iter().map(ToString::to_string).collect::<Vec<_>>()));
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
                Err(Failure::Senseless(format!("{} has no rule {rule}; it has {}", self.name, some(&known, ", "))))
            }
            None => settle(&session, generation, self.reach.timeout),
        }
    }
}
