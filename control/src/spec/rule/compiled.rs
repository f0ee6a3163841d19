//! A rule whose texts have been parsed.

use super::{LevelRule, NameRule, Rule, RuleError, RuleProblem, is_program};
use crate::filter::Expression;
use crate::glob::Glob;
use crate::limit::Limit;
use crate::process::ProcessKey;
use std::ops::Range;
use tracepoint_core::Level;

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) name: NameRule,
    pub(crate) level: Option<LevelRule>,
    exe: Option<Glob>,
    process: Option<ProcessKey>,
    channel: Option<String>,
    pub(crate) filter: Option<Expression>,
    pub(crate) limit: Option<Limit>,
}

impl Compiled {
    pub(crate) fn new(rule: &Rule) -> Result<Self, RuleError> {
        Self::parse(rule).map_err(|problem| rule.problem(problem))
    }

    fn parse(rule: &Rule) -> Result<Self, RuleProblem> {
        let name = NameRule::parse(&rule.event).map_err(RuleProblem::Malformed)?;
        if name.excludes() && (rule.filter.is_some() || rule.limit.is_some()) {
            return Err(RuleProblem::ConditionOnExclusion);
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
        })
    }

    /// Whether it matches this event.
    pub(crate) fn matches(&self, name: &str, level: Level) -> bool {
        self.level.is_none_or(|wanted| wanted.matches(level)) && self.name.matches(name)
    }

    /// The indices of the session's channels that it is about: its own; without one, the default channel if it includes events, and all if
    /// it excludes them.
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

    /// Whether the rule applies to this process.
    pub(crate) fn is_for(&self, process: ProcessKey, exe: &str) -> bool {
        self.process.is_none_or(|wanted| wanted == process)
            && self.exe.as_ref().is_none_or(|glob| is_program(glob, exe))
    }
}
