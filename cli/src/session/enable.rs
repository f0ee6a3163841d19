//! `tracectl enable`: adds rules, channels and outputs to a session.

use super::channels::AddedChannels;
use super::outputs::SessionOutputs;
use super::rules::{RouteArguments, RuleArguments, StatisticArguments, WaitHint, require_features, require_matches};
use super::{ChangeArguments, acks, controller};
use crate::failure::{Failure, VerbResult};
use clap::Args;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::outputs::prepare;
use tracepoint_session_spec::{Rule, SessionSpec, SinkSpec};
use tracepoint_sinks::CtfError;

/// Adds rules, channels and outputs to a session
///
/// The session may be recording. A rule for the same events, programs, process and channel as an existing rule, with the same statistic or none,
/// replaces it, so its level, filter and limit can be changed. A rule that matches no event of the running processes is an error, unless `--wait` is
/// given. All events that the budget of the session has switched off are switched on again.
///
/// An output that is added while the session records receives the events that are recorded from then on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl enable flight -e 'net:*' -e '!net:idle'
  tracectl enable flight -e 'sched:*' --level '<=info' --exe server
  tracectl enable flight -e 'net:*' --filter 'bytes > 4096'
  tracectl enable flight -e 'net:*' --statistic 'hist(bytes) by peer'
  tracectl enable both -e 'disk:*' --add-channel flight:policy=overwrite --channel flight
  tracectl enable flight -o /var/tmp/flight")]
pub(crate) struct Enable {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
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
    channels: AddedChannels,
}

impl Enable {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.rules.pid)?;
        let mut sinks = self.outputs.sinks()?;
        let adds_others = !sinks.is_empty() || self.channels.any();
        let default: &[&str] = if adds_others { &[] } else { &["*"] };
        let rules = self.rules.rules(&controller, self.statistics.default_events(default))?;
        let rules = self.route.apply(self.statistics.apply(rules));
        let session = controller.session(&self.name)?;
        if !self.wait {
            let mut spec = session.spec()?;
            self.change(&mut spec, &rules, &sinks)?;
            require_matches(&controller, &spec, &rules, WaitHint::Option)?;
            require_features(&controller, &spec, WaitHint::Option)?;
        }
        let failed = |error: CtfError| Failure::Refused(error.to_string());
        sinks.iter_mut().try_for_each(prepare).map_err(failed)?;
        let channels = self.channels.any().then_some("channels");
        let sinks_named = sinks.iter().map(|sink| -> &str { sink.kind() });
        let names: Vec<_> = rules.iter().map(|rule| rule.event.text()).chain(channels).chain(sinks_named).collect();
        let what = format!("enable {}", names.join(" "));
        let generation = session.change(&what, |spec| self.change(spec, &rules, &sinks))?;
        acks::wait(&session, generation, &self.reply)
    }

    fn change(&self, spec: &mut SessionSpec, rules: &[Rule], sinks: &[SinkSpec]) -> Result<(), ControlError> {
        spec.renew_budget();
        spec.sinks.extend(sinks.iter().cloned());
        self.channels.apply(spec);
        let failed = |error| ControlError::SessionSpec { session: self.name.clone(), error };
        rules.iter().try_for_each(|rule| spec.enable(rule).map(drop).map_err(failed))?;
        spec.check().map_err(failed)
    }
}
