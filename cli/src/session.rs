//! The verbs of named sessions, and what they share.

pub(crate) mod budget;
pub(crate) mod channels;
pub(crate) mod create;
pub(crate) mod destroy;
pub(crate) mod disable;
pub(crate) mod enable;
pub(crate) mod load;
pub(crate) mod outputs;
pub(crate) mod rotate;
pub(crate) mod save;
pub(crate) mod snapshot;
pub(crate) mod state;
pub(crate) mod status;

use crate::failure::{Failure, Outcome};
use crate::{output, units};
use clap::Args;
use std::time::Duration;
use tracepoint_control::filter::{Expression, FilterError};
use tracepoint_control::{
    Ack, AckState, Application, ControlError, Controller, Limit, NamedSession, Rule, RuleAck, SessionSpec,
};

/// Where the run directory is, and how long processes are waited for.
#[derive(Debug, Args)]
pub(crate) struct Reach {
    /// How long processes are waited for that do not answer
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "2s")]
    pub(crate) timeout: Duration,
}

/// Which events, in which processes.
#[derive(Debug, Args)]
pub(crate) struct RuleArguments {
    /// Events: `provider:name`, with `*`, `?`, `[a-z]`; `!…` leaves out. May be given several times
    #[arg(short = 'e', long = "event", value_name = "RULE")]
    pub(crate) events: Vec<String>,
    /// Only events of these levels: `<=info`, `==err`, `>=debug`
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<String>,
    /// Only in programs whose path, or its last part, matches
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exe: Option<String>,
    /// Only in this process; its run directory is used, as it sees it
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Only events whose fields are like this, for example `size > 4096 && path == "*.rs"` (docs/filters.md)
    #[arg(long, value_name = "EXPR", value_parser = expression)]
    pub(crate) filter: Option<String>,
    /// No more than so many of them, in each process: `1000/s`, `5/15min`, `1000/s burst 20`
    #[arg(long, value_name = "LIMIT")]
    pub(crate) limit: Option<Limit>,
}

/// A filter that reads as one; what fields there are is known to the processes.
fn expression(text: &str) -> Result<String, FilterError> {
    Ok(Expression::parse(text)?.text().to_owned())
}

impl RuleArguments {
    /// The controller that can reach the process, or that of this user.
    pub(crate) fn controller(&self) -> Result<Controller, ControlError> {
        controller(self.pid)
    }

    /// The rules; those of `default` if there is none.
    pub(crate) fn rules(&self, controller: &Controller, default: &[&str]) -> Result<Vec<Rule>, ControlError> {
        let process = self.pid.map(|pid| controller.process(pid)).transpose()?.map(|process| process.info().key());
        let given = self.events.iter().map(String::as_str);
        let default = default.iter().copied().filter(|_| self.events.is_empty());
        let rule = |event: &str| {
            let mut rule = Rule::new(event);
            // What is left out is left out whatever its fields are.
            if !event.starts_with('!') {
                rule.level.clone_from(&self.level);
                rule.filter.clone_from(&self.filter);
                rule.limit = self.limit.map(|limit| limit.to_string());
            }
            (rule.exe, rule.process) = (self.exe.clone(), process);
            rule
        };
        Ok(given.chain(default).map(rule).collect())
    }
}

/// The controller that can reach this process, or that of this user.
pub(crate) fn controller(pid: Option<u32>) -> Result<Controller, ControlError> {
    pid.map_or_else(Controller::find, Controller::of_process)
}

/// Adds rules to what is wanted of a session.
pub(crate) fn add(spec: &mut SessionSpec, name: &str, rules: &[Rule]) -> Result<(), ControlError> {
    let failed = |error| ControlError::Spec { session: name.to_owned(), error };
    rules.iter().try_for_each(|rule| spec.add_rule(rule).map(drop).map_err(failed))
}

/// Fails if one of the rules matches nothing that is there.
pub(crate) fn insist(controller: &Controller, spec: &SessionSpec, rules: &[Rule]) -> Result<(), Failure> {
    let unmatched = controller.unmatched(spec)?;
    let ours = unmatched.iter().filter(|unmatched| rules.iter().any(|rule| rule.event == unmatched.rule));
    let told: Vec<_> = ours.map(ToString::to_string).collect();
    if told.is_empty() {
        return Ok(());
    }
    let text = "`tracectl list` shows what there is, and `--wait` records whatever comes";
    Err(Failure::Senseless(format!("{}; {text}", some(&told, "; "))))
}

/// The first of many, and how many others there are.
pub(crate) fn some(texts: &[String], between: &str) -> String {
    const SHOWN: usize = 8;
    let shown = texts[..texts.len().min(SHOWN)].join(between);
    match texts.len().saturating_sub(SHOWN) {
        0 => shown,
        others => format!("{shown}{between}and {others} others"),
    }
}

/// Waits until the processes have done what is wanted, and tells what they have not.
pub(crate) fn settle(session: &NamedSession<'_>, generation: u64, timeout: Duration) -> Result<Outcome, Failure> {
    let waited = session.wait(generation, timeout)?;
    tell_silent(&waited.silent);
    let complaints = waited.acks.iter().map(complain).fold(false, |any, one| any | one);
    Ok(if waited.silent.is_empty() && !complaints { Outcome::Well } else { Outcome::Wanting })
}

/// Tells who has not answered.
pub(crate) fn tell_silent(silent: &[Application]) {
    for process in silent {
        let info = process.info();
        output::note(&format!(
            "process {} ({}) has not acknowledged: it is stopped, or slow, and will do so when it goes on",
            info.pid, info.name
        ));
    }
}

/// Tells what a process could not do; whether there was anything.
fn complain(ack: &Ack) -> bool {
    if let Some(error) = &ack.error {
        output::note(&format!("process {} ({}): {error}", ack.process.pid, ack.name));
    }
    let complaints = complaints(ack);
    for text in &complaints {
        output::note(text);
    }
    tell_notices(ack);
    ack.sinks.iter().for_each(|notice| output::note(&format!("process {} ({}): {notice}", ack.process.pid, ack.name)));
    !complaints.is_empty() || ack.state == AckState::Refused || ack.error.is_some()
}

/// Tells which events a process leaves out, although rules match them, which the budget has switched off, and of what state it has not
/// told all.
pub(crate) fn tell_notices(ack: &Ack) {
    for over in &ack.over_budget {
        output::note(&format!("process {} ({}): {over}", ack.process.pid, ack.name));
    }
    for dump in ack.state_dumps.iter().filter(|dump| dump.is_wanting()) {
        output::note(&format!("process {} ({}): {dump}", ack.process.pid, ack.name));
    }
    if let [first, others @ ..] = &ack.notices[..] {
        let more = if others.is_empty() { String::new() } else { format!("; {} others are, too", others.len()) };
        output::note(&format!("process {} ({}): {first}{more}", ack.process.pid, ack.name));
    }
}

/// The rules with which a process can do nothing.
pub(crate) fn complaints(ack: &Ack) -> Vec<String> {
    let told = |(index, rule): (usize, &Option<RuleAck>)| match rule {
        Some(RuleAck::Unsupported(reason)) => {
            let number = index + 1;
            Some(format!("process {} ({}) does not support rule {number}: {reason}", ack.process.pid, ack.name))
        }
        _ => None,
    };
    ack.rules.iter().enumerate().filter_map(told).collect()
}
