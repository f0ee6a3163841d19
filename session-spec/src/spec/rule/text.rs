//! The text of a rule: the keys of a `[[rule]]` in `session.toml`.

use super::Rule;
use serde::{Deserialize, Serialize};
use tracepoint_reader::process::ProcessKey;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exe: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistic: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    record: bool,
}

impl From<RuleText> for Rule {
    fn from(text: RuleText) -> Self {
        let RuleText { event, level, exe, process, filter, limit, channel, statistic, record } = text;
        let rule = Self { process, channel, record, ..Self::new(event) };
        let rule = statistic.map_or(rule.clone(), |statistic| rule.statistic(statistic));
        let rule = level.map_or(rule.clone(), |level| rule.level(level));
        let rule = exe.map_or(rule.clone(), |exe| rule.exe(exe));
        let rule = filter.map_or(rule.clone(), |filter| rule.filter(filter));
        limit.map_or(rule.clone(), |limit| rule.limit(limit))
    }
}

impl From<Rule> for RuleText {
    fn from(rule: Rule) -> Self {
        let Rule { event, level, exe, process, filter, limit, channel, statistic, record, problem: _ } = rule;
        Self {
            event: event.to_string(),
            level: level.map(|level| level.to_string()),
            exe: exe.map(|exe| exe.to_string()),
            process,
            filter: filter.map(|filter| filter.to_string()),
            limit: limit.map(|limit| limit.to_string()),
            channel,
            statistic: statistic.map(|statistic| statistic.to_string()),
            record,
        }
    }
}
