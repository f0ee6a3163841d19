//! `tracectl disable`: removes rules from a session.

use super::rules::{RouteArguments, RuleArguments, first_few};
use super::{WaitArguments, acks};
use crate::failure::{EXIT_CODES, Failure, VerbResult};
use clap::Args;

/// Removes rules from a session; give them as they were given to `enable` or `create`
///
/// To exclude a part of what a rule matches, enable a rule that begins with `!`.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl disable flight -e 'net:*'

{EXIT_CODES}"))]
pub(crate) struct Disable {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    rules: RuleArguments,
    #[command(flatten)]
    route: RouteArguments,
    #[command(flatten)]
    wait: WaitArguments,
}

impl Disable {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = self.rules.controller()?;
        let rules = self.route.apply(self.rules.rules(&controller, &["*"])?);
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
                Err(Failure::Refused(format!("the session {} has no rule {rule}; it has no rules", self.name)))
            }
            Some((rule, known)) => Err(Failure::Refused(format!(
                "the session {} has no rule {rule}; it has {}",
                self.name,
                first_few(&known, ", ")
            ))),
            None => acks::wait(&session, generation, self.wait.timeout),
        }
    }
}
