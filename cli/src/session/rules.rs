//! Rules on the command line.

use crate::failure::Failure;
use crate::message;
use clap::Args;
use tracepoint_controller::Controller;
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::filter::Expression;
use tracepoint_session_spec::{Limit, Rule, RuleStatistic, SessionSpec};

/// The events to select, and the processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events")]
pub(crate) struct RuleArguments {
    /// Events, as `provider:name` with `*`, `?` and `[a-z]`; `!…` excludes events. May be given several times
    #[arg(short = 'e', long = "event", value_name = "RULE")]
    pub(crate) events: Vec<String>,
    /// Only events of these levels: `<=info` or `info` for at least this importance, `warn`, `==err`, `>=debug`
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<String>,
    /// Only in programs whose path, or its last component, matches
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exe: Option<String>,
    /// Only in this process, in the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Only events whose fields satisfy a condition, for example `size > 4096 && path == "*.rs"` or `took > 30ms` (docs/filters.md)
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<Expression>,
    /// At most this many of these events in each process: `1000/s`, `100k`, `5/15min`, `1000/s burst 20`
    #[arg(long, value_name = "LIMIT")]
    pub(crate) limit: Option<Limit>,
}

impl RuleArguments {
    /// The rules; those for `default` if no event is given.
    pub(crate) fn rules(&self, controller: &Controller, default: &[&str]) -> Result<Vec<Rule>, ControlError> {
        self.rules_and(controller, if self.events.is_empty() { default } else { &[] })
    }

    /// The rules; all events if no rule is given, or only exclusions.
    pub(crate) fn rules_or_all(&self, controller: &Controller) -> Result<Vec<Rule>, ControlError> {
        let excludes_only = self.events.iter().all(|event| event.starts_with('!'));
        self.rules_and(controller, if excludes_only { &["*"] } else { &[] })
    }

    /// The given rules, and rules for the `more` events.
    fn rules_and(&self, controller: &Controller, more: &[&str]) -> Result<Vec<Rule>, ControlError> {
        let process = self.pid.map(|pid| controller.process(pid)).transpose()?.map(|process| process.info().key());
        let given = self.events.iter().map(String::as_str);
        let rule = |event: &str| {
            let mut rule = Rule::new(event);
            // An exclusion has no conditions on the event.
            if !rule.excludes() {
                rule = self.level.iter().fold(rule, Rule::level);
                rule.filter.clone_from(&self.filter);
                rule.limit = self.limit;
            }
            rule.process = process;
            self.exe.iter().fold(rule, Rule::exe)
        };
        Ok(given.chain(more.iter().copied()).map(rule).collect())
    }
}

/// The statistics of rules.
#[derive(Debug, Args)]
#[command(next_help_heading = "Statistics")]
pub(crate) struct StatisticArguments {
    /// Compute this statistic of the events in place of recording them, for `tracectl stat -s NAME`: `count`, `rate`, `hist(FIELD)`,
    /// `latency(BEGIN, END by FIELD)`, `last(FIELD, N)`, `top(FIELD, N)`; the first, third and fourth may be followed by ` by FIELD[, FIELD]`. Or
    /// `sample(1/N)`: record one in N of them. May be given several times
    #[arg(long = "statistic", value_name = "STATISTIC", value_parser = str::parse::<RuleStatistic>)]
    statistics: Vec<RuleStatistic>,
    /// Also record the events
    #[arg(long, requires = "statistics")]
    record: bool,
}

impl StatisticArguments {
    /// The event patterns if none is given. A latency names its own events.
    pub(crate) fn default_events<'a>(&self, otherwise: &'a [&'a str]) -> &'a [&'a str] {
        if self.statistics.is_empty() { otherwise } else { &["*"] }
    }

    pub(crate) fn apply(&self, rules: Vec<Rule>) -> Vec<Rule> {
        with_each(&self.statistics, self.record, rules)
    }
}

/// Returns the rules, once for each statistic, and whether these also `record` the events. Exclusions get no statistic.
pub(super) fn with_each(statistics: &[RuleStatistic], record: bool, rules: Vec<Rule>) -> Vec<Rule> {
    if statistics.is_empty() {
        return rules;
    }
    let each = |rule: &Rule| -> Vec<Rule> {
        if rule.excludes() {
            return vec![rule.clone()];
        }
        let with = |statistic: &RuleStatistic| {
            let mut rule = rule.clone().statistic(statistic.clone());
            // A sample is recorded anyway.
            rule.record = record && matches!(statistic, RuleStatistic::Compute(_));
            rule
        };
        statistics.iter().map(with).collect()
    };
    rules.iter().flat_map(each).collect()
}

/// The channel of rules.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rings and channels")]
pub(crate) struct RouteArguments {
    /// Record the events of these rules into this channel of the session [default: `channel0`]. Exclusions (`!…`) apply to this channel
    /// [default: to all]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
}

impl RouteArguments {
    pub(crate) fn apply(&self, mut rules: Vec<Rule>) -> Vec<Rule> {
        for rule in &mut rules {
            rule.channel.clone_from(&self.channel);
        }
        rules
    }
}

pub(crate) fn add(spec: &mut SessionSpec, session: &str, rules: &[Rule]) -> Result<(), ControlError> {
    let failed = |error| ControlError::SessionSpec { session: session.to_owned(), error };
    rules.iter().try_for_each(|rule| spec.add_rule(rule).map(drop).map_err(failed))
}

/// Advice for a rule that does not match anything yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitHint {
    /// Use the verb's option `--wait`.
    Option,
    /// Use a session: this verb shows the current state only.
    Session,
}

impl WaitHint {
    const fn hint(self) -> &'static str {
        match self {
            Self::Option => "with `--wait` a rule may match events of processes and modules that come later",
            Self::Session => {
                "a session may wait for events of later processes and modules (`tracectl create NAME --wait`)"
            }
        }
    }
}

/// Fails if one of the rules matches no event of any process.
pub(crate) fn require_matches(
    controller: &Controller,
    spec: &SessionSpec,
    rules: &[Rule],
    waiting: WaitHint,
) -> Result<(), Failure> {
    let unmatched = controller.unmatched(spec)?;
    let ours = unmatched.iter().filter(|unmatched| rules.iter().any(|rule| rule.event.text() == unmatched.rule));
    let mut messages: Vec<_> = ours.map(ToString::to_string).collect();
    // Rules that differ only in their statistics have the same message.
    messages.dedup();
    if messages.is_empty() {
        return Ok(());
    }
    let hint = "`tracectl list` shows the events that exist";
    Err(Failure::Refused(format!("{}; {hint}; {}", first_few(&messages, "; "), waiting.hint())))
}

/// Fails if something that the session needs is unavailable in all running processes that it records, and names them.
pub(crate) fn require_features(controller: &Controller, spec: &SessionSpec, waiting: WaitHint) -> Result<(), Failure> {
    for unbuilt in controller.unbuilt(spec)? {
        if unbuilt.others == 0 {
            let hint = match unbuilt.feature {
                Some(_) => "`tracectl record` writes the output itself, whatever programs were built with",
                None => "without `--lossless`, events are lost when a ring is full",
            };
            return Err(Failure::Refused(format!("{unbuilt}; {hint}; {}", waiting.hint())));
        }
        message::note(&unbuilt.to_string());
    }
    Ok(())
}

/// The first eight texts, and the number of others.
pub(crate) fn first_few(texts: &[String], separator: &str) -> String {
    const SHOWN: usize = 8;
    let shown = texts[..texts.len().min(SHOWN)].join(separator);
    match texts.len().saturating_sub(SHOWN) {
        0 => shown,
        others => format!("{shown}{separator}and {others} others"),
    }
}
