//! A rule in a session's description, valid or not.

use super::{Rule, RuleError, RuleProblem};
use crate::table::{self, Table, TableError, Value};
use serde::Serialize;

/// A rule, and the table that it was parsed from: an agent must preserve a rule that it does not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleEntry {
    /// The table as text: tables that contain a NaN are not equal to themselves.
    pub table: String,
    /// The rule, or the reason why it is not understood.
    pub rule: Result<Rule, RuleError>,
}

impl RuleEntry {
    /// The entry of a rule; an invalid rule keeps its error.
    pub(in crate::spec) fn new(rule: &Rule) -> Self {
        match rule.check() {
            // All keys of a rule are texts or booleans, so it always converts into a table.
            Ok(()) => Self { table: text_of(&table::write(rule).unwrap_or_default()), rule: Ok(rule.clone()) },
            Err(error) => Self { table: String::new(), rule: Err(error) },
        }
    }

    /// Adds an error if the rule's channel is not in `names`, the session's channels.
    pub(in crate::spec) fn in_channels(mut self, names: &[&str]) -> Self {
        self.rule = self.rule.and_then(|rule| rule.check_channel(names).map(|()| rule));
        self
    }

    /// Returns whether it is [for the same](Self::is_for_same) as `rule` and has the same statistic, so that `rule` replaces it.
    pub(in crate::spec) fn is_replaced_by(&self, rule: &Rule) -> bool {
        self.is_for_same(rule) && self.rule.as_ref().is_ok_and(|own| own.statistic == rule.statistic)
    }

    /// Returns whether it is for the same events, programs, process and channel as `rule`. Never, if `rule` is invalid.
    pub(in crate::spec) fn is_for_same(&self, rule: &Rule) -> bool {
        let is_same = |own: &Rule| {
            rule.problem.is_none()
                && own.event == rule.event
                && own.exe == rule.exe
                && own.process == rule.process
                && own.channel == rule.channel
        };
        self.rule.as_ref().is_ok_and(is_same)
    }

    /// Returns whether it has all conditions that `rule` has.
    pub(in crate::spec) fn has_conditions_of(&self, rule: &Rule) -> bool {
        let has_all = |own: &Rule| {
            (rule.level.is_none() || own.level == rule.level)
                && (rule.filter.is_none() || own.filter == rule.filter)
                && (rule.limit.is_none() || own.limit == rule.limit)
                && (rule.statistic.is_none() || own.statistic == rule.statistic)
        };
        self.rule.as_ref().is_ok_and(has_all)
    }

    pub(in crate::spec) fn read(table: Table) -> Self {
        let text = text_of(&table);
        let event = table.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
        let malformed = |error: TableError| RuleProblem::Malformed(error.message);
        let rule = table::read(table).map_err(|error| RuleError { rule: event, problem: malformed(error) });
        Self { table: text, rule: rule.and_then(|rule: Rule| rule.check().map(|()| rule)) }
    }
}

fn text_of(table: &Table) -> String {
    table::to_text(table.clone()).unwrap_or_default()
}

impl Serialize for RuleEntry {
    /// Writes the table as it was read, so that a rule that is not understood is preserved.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        table::parse(&self.table).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}
