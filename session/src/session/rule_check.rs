//! Checks what the rules of a session in code match: a rule without an event is an error of the program.

use super::SessionError;
use crate::event::PlannedEvent;
use crate::rule_match::RuleMatch;
use tracepoint_core::internal::nearest_names;
use tracepoint_probes::Measure;
use tracepoint_run_dir::notice::Notice;
use tracepoint_session_spec::{Rule, SessionSpec};

/// Fails if one of the rules for which `is_checked` returns true is invalid, or includes events and matches none.
pub(super) fn check_each(
    spec: &SessionSpec,
    matched: &RuleMatch,
    all: &[PlannedEvent],
    is_checked: impl Fn(&Rule) -> bool,
) -> Result<(), SessionError> {
    for (rule, applies) in spec.rules().zip(&matched.rules) {
        match (rule, applies) {
            (Ok(rule), Some(Err(error))) if is_checked(rule) => return Err(error.clone().into()),
            (Ok(rule), Some(Ok(0))) if is_checked(rule) && !rule.excludes() => return Err(no_match(rule, all)),
            _ => {}
        }
    }
    Ok(())
}

/// Fails if a rule is invalid, if an including rule matches no event, or if the rules exclude all.
pub(super) fn check_matched(
    spec: &SessionSpec,
    matched: &RuleMatch,
    all: &[PlannedEvent],
    notices: &mut Vec<Notice>,
) -> Result<(), SessionError> {
    if all.is_empty() {
        return Err(SessionError::NoEvents);
    }
    check_each(spec, matched, all, |_| true)?;
    let (excluding, including): (Vec<_>, Vec<_>) = spec
        .rules()
        .zip(&matched.rules)
        .filter_map(|(rule, applies)| Some((rule.ok()?, applies)))
        .partition(|(rule, _)| rule.excludes());
    let useless = excluding.iter().filter(|(_, applies)| matches!(applies, Some(Ok(0))));
    notices.extend(useless.map(|(rule, _)| Notice::UselessExclusion(rule.event.to_string())));
    if including.is_empty() {
        notices.push(Notice::NoRule);
    } else if matched.events.is_empty() && matched.statistics.is_empty() && !excluding.is_empty() {
        let excluding: Vec<_> = excluding.iter().map(|(rule, _)| format!("`{}`", rule.event)).collect();
        let reason = format!("{} exclude all events that the other rules match", excluding.join(" and "));
        return Err(SessionError::NothingLeft(reason));
    }
    Ok(())
}

/// Returns the event of the rule's latency that the program does not have.
fn missing_end(rule: &Rule, all: &[PlannedEvent]) -> Option<String> {
    let Measure::Latency { begin, end, .. } = rule.computes()?.measure() else { return None };
    [begin, end].into_iter().find(|name| !all.iter().any(|event| event.declared() == **name)).cloned()
}

/// Explains why `rule`, which includes events, matches none.
pub(crate) fn no_match(rule: &Rule, all: &[PlannedEvent]) -> SessionError {
    if let Some(event) = missing_end(rule, all) {
        let nearest = nearest_names(&event, all.iter().map(|event| event.name.as_str()));
        return SessionError::NoMatch { rule: event, nearest };
    }
    let levels: Vec<_> = all.iter().filter(|event| rule.matches(&event.declared())).map(PlannedEvent::level).collect();
    if let (Some(level), Some(most_important)) = (&rule.level, levels.iter().min()) {
        let reason = format!(
            "the levels of all {} events that `{}` matches are outside `{level}`; the most important of them is {most_important}",
            levels.len(),
            rule.event
        );
        return SessionError::NothingLeft(reason);
    }
    let names: Vec<_> = all.iter().map(PlannedEvent::declared).collect();
    let nearest = nearest_names(rule.event.text(), names.iter().map(String::as_str));
    SessionError::NoMatch { rule: rule.event.to_string(), nearest }
}
