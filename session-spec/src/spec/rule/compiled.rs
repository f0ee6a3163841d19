//! A rule whose texts have been parsed.

use super::{LevelRule, NameRule, Rule, RuleError, RuleProblem, RuleStatistic, is_program};
use crate::filter::Expression;
use crate::glob::Glob;
use crate::limit::Limit;
use std::num::NonZeroU64;
use std::ops::Range;
use tracepoint_core::Level;
use tracepoint_probes::StatisticSpec;
use tracepoint_reader::process::ProcessKey;

/// A rule whose parts are parsed and checked.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) name: NameRule,
    pub(crate) level: Option<LevelRule>,
    exe: Option<Glob>,
    process: Option<ProcessKey>,
    channel: Option<String>,
    /// The condition on fields.
    pub filter: Option<Expression>,
    /// The maximum rate.
    pub limit: Option<Limit>,
    /// The statistic to compute.
    pub statistic: Option<StatisticSpec>,
    /// The N of a sample: one in N events is recorded.
    pub sample: Option<NonZeroU64>,
    /// True if the events are recorded; otherwise the rule only computes a statistic.
    pub records: bool,
}

impl Compiled {
    /// Parses the parts of a rule.
    pub fn new(rule: &Rule) -> Result<Self, RuleError> {
        Self::parse(rule).map_err(|problem| rule.problem(problem))
    }

    fn parse(rule: &Rule) -> Result<Self, RuleProblem> {
        let name = NameRule::parse(&rule.event).map_err(RuleProblem::Malformed)?;
        if name.excludes() && (rule.filter.is_some() || rule.limit.is_some()) {
            return Err(RuleProblem::ConditionOnExclusion);
        }
        let (statistic, sample) =
            match rule.statistic.as_deref().map(str::parse).transpose().map_err(RuleProblem::Statistic)? {
                Some(RuleStatistic::Compute(spec)) => (Some(spec), None),
                Some(RuleStatistic::Sample { one_in }) => (None, Some(one_in)),
                None => (None, None),
            };
        let records = statistic.is_none() || rule.record;
        if let Some(why) = conflict(rule, name.excludes(), records) {
            return Err(RuleProblem::Statistic(why.to_owned()));
        }
        let level = |level: &String| {
            LevelRule::parse(level).map_err(|reason| RuleProblem::Level { level: level.clone(), reason })
        };
        let exe = |pattern: &String| {
            let reason = |error| format!("`{pattern}` is not a pattern for executables: {error}");
            Glob::parse(pattern).map_err(|error| RuleProblem::Malformed(reason(error)))
        };
        Ok(Self {
            name,
            level: rule.level.as_ref().map(level).transpose()?,
            exe: rule.exe.as_ref().map(exe).transpose()?,
            process: rule.process,
            channel: rule.channel.clone(),
            filter: rule
                .filter
                .as_deref()
                .map(Expression::parse)
                .transpose()
                .map_err(|error| RuleProblem::Filter(error.into()))?,
            limit: rule.limit.as_deref().map(str::parse).transpose().map_err(RuleProblem::Limit)?,
            statistic,
            sample,
            records,
        })
    }

    /// Returns whether it matches an event with this name and level.
    pub fn matches(&self, name: &str, level: Level) -> bool {
        self.level.is_none_or(|wanted| wanted.matches(level)) && self.name.matches(name)
    }

    /// Returns the indices of the session's channels that the rule applies to: the channel that it names; without a name, the default
    /// channel if the rule includes events, and all channels if it excludes them.
    pub(crate) fn channels(&self, names: &[&str]) -> Range<usize> {
        match &self.channel {
            Some(channel) => {
                let index = names.iter().position(|name| name == channel);
                index.map_or(0..0, |index| index..index + 1)
            }
            None if self.name.excludes() => 0..names.len(),
            None => 0..1,
        }
    }

    /// Returns whether the rule applies to this process.
    pub fn is_for(&self, process: ProcessKey, exe: &str) -> bool {
        self.process.is_none_or(|wanted| wanted == process)
            && self.exe.as_ref().is_none_or(|glob| is_program(glob, exe))
    }
}

/// Returns the reason why the parts of a rule cannot be combined.
fn conflict(rule: &Rule, excludes: bool, records: bool) -> Option<&'static str> {
    match rule {
        Rule { statistic: None, record: true, .. } if !excludes => {
            Some("a rule without a statistic records anyway; leave `record` out, or give it a statistic")
        }
        Rule { statistic, record, .. } if excludes && (statistic.is_some() || *record) => Some(
            "a rule that excludes events (`!`) takes none; it excludes them from the statistics of the other rules, too",
        ),
        Rule { limit: Some(_), .. } if !records => Some(
            "a limit is for events that are recorded, and a statistic counts all; leave the limit out, or add `record`",
        ),
        Rule { channel: Some(_), .. } if !records => {
            Some("a channel is for events that are recorded; leave the channel out, or add `record`")
        }
        _ => None,
    }
}
