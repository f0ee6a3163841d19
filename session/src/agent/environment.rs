//! The session that the environment requests: `TRACEPOINT`, `TRACEPOINT_OUT`, `TRACEPOINT_TAG`.

use super::context::Context;
use crate::event::PlannedEvent;
use crate::session::{Recording, RunningSession, Target as SessionTarget, no_match};
use crate::state;
use std::env;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_reader::secure_exec::secure;
use tracepoint_run_dir::notice::Notice;
use tracepoint_session_io::outputs::{self, Allowance, OutputError};
use tracepoint_session_spec::{Rule, RuleError, RuleProblem, SessionSpec, SinkSource, SinkSpec, SpecError};
use tracepoint_sinks::TextSink;

/// The session's name.
const NAME: &str = "environment";
/// The maximum size of the CTF traces, and of a text file, in bytes.
const MAX_SIZE: u64 = 1 << 30;

/// The destination of the events.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A CTF trace in this directory, or in the directory given by `TRACEPOINT_OUT`.
    Ctf(Option<PathBuf>),
    /// Lines in this file, or on standard error.
    Text(Option<PathBuf>),
}

/// The tag that `tracectl` gives to the processes of one command.
pub(super) fn tag() -> Option<String> {
    if secure() {
        return None;
    }
    env::var("TRACEPOINT_TAG").ok().filter(|tag| !tag.is_empty())
}

/// Starts the session that `TRACEPOINT` requests, if it is set. Problems are added to `notices`.
pub(super) fn start(context: &Context, notices: &mut Vec<Notice>) -> Option<RunningSession> {
    let text = env::var("TRACEPOINT").ok().filter(|text| !text.is_empty() && !secure())?;
    let mut problem = |reason: String| notices.push(Notice::Environment(reason));
    let (spec, target) = parse(&text).map_err(|error| problem(error.to_string())).ok()?;
    let mut session = context.session(NAME);
    let matched = session.match_rules(&spec, context.program());
    for (rule, applies) in spec.rules().zip(&matched.rules) {
        if let (Ok(rule), Some(Ok(0))) = (rule, applies) {
            problem(no_match(rule, &context.events).to_string());
        }
    }
    if matched.events.is_empty() {
        return None;
    }
    let mut settings = context.settings(NAME, spec.clone());
    settings.sinks.push(sink(target, context).map_err(|error| problem(error.to_string())).ok()?);
    let start = |events: &[PlannedEvent]| {
        let recording = Recording::start(settings, events, events.len() + state::EVENTS, &mut Vec::new())?;
        context.recordings.add(&recording);
        Ok(recording)
    };
    let mut report = session.apply(&spec, SessionTarget::Active, matched, context.program(), start);
    report.take_error().map_or(Some(session), |error| {
        problem(error.to_string());
        None
    })
}

/// Returns whether `TRACEPOINT` names a text file. Unlike a CTF trace, its name does not contain the process id.
pub(super) fn names_a_file() -> bool {
    env::var("TRACEPOINT").is_ok_and(|text| matches!(parse(&text), Ok((_, Target::Text(Some(_))))))
}

fn sink(target: Target, context: &Context) -> Result<SinkSource, OutputError> {
    match target {
        Target::Ctf(place) => {
            let place = place.or_else(|| env::var_os("TRACEPOINT_OUT").map(PathBuf::from));
            let is_named = place.is_some();
            let place = place.unwrap_or_default();
            let made = outputs::ctf(&SinkSpec::ctf(place), &context.trace_name(), Allowance::of(MAX_SIZE));
            let (sink, path) = made.map_err(|error| OutputError::Sink(error.into()))?;
            if !is_named {
                let path = std::path::absolute(&path).unwrap_or(path);
                let text = "tracepoint: events are recorded into";
                let mend = "TRACEPOINT_OUT=DIR or `=DIR` behind the rules names another place";
                let _ = writeln!(std::io::stderr(), "{text} {}; {mend}", path.display());
            }
            Ok(sink.into())
        }
        Target::Text(None) => Ok(TextSink::stderr().into()),
        Target::Text(Some(path)) => {
            Ok(TextSink::new(outputs::shared_text(&path, &context.trace_name(), MAX_SIZE)?).into())
        }
    }
}

fn parse(text: &str) -> Result<(SessionSpec, Target), SpecError> {
    // The sink follows the first `=` that is followed by a sink's kind or a path; the `=` of `<=info` and `==err` does not qualify.
    let sink = text.match_indices('=').find_map(|(at, _)| Some((&text[..at], target(&text[at + 1..])?)));
    let (rules, target) = sink.unwrap_or((text, Target::Ctf(None)));
    let (levels, events): (Vec<_>, Vec<_>) =
        rules.split(',').map(str::trim).partition(|rule| rule.starts_with(['<', '=', '>']));
    if let [_, second, ..] = levels[..] {
        let problem = RuleProblem::Malformed("a second condition on the level; give one only".to_owned());
        return Err(SpecError::Rule(RuleError::new(second, problem)));
    }
    let mut spec = SessionSpec::new();
    let events = if events.is_empty() { vec!["*"] } else { events };
    for event in events {
        let rule = Rule::new(event);
        let level = levels.first().filter(|_| !rule.excludes());
        spec.add_rule(&level.map_or(rule.clone(), |level| rule.level(*level)))?;
    }
    Ok((spec, target))
}

fn target(text: &str) -> Option<Target> {
    let (kind, path) = text.split_once(':').map_or((text, None), |(kind, path)| (kind, Some(path)));
    let path = path.filter(|path| !path.is_empty()).map(PathBuf::from);
    match kind {
        "ctf" => Some(Target::Ctf(path)),
        "text" => Some(Target::Text(path)),
        _ if text.starts_with(['/', '.']) => Some(Target::Ctf(Some(text.into()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_sinks_are_separated() -> Result<(), SpecError> {
        let ctf = |path: &str| Target::Ctf(Some(path.into()));
        for (text, rules, level, expected) in [
            ("a:*", &["a:*"][..], None, Target::Ctf(None)),
            ("a:*,!a:b=ctf:/x=y", &["a:*", "!a:b"], None, ctf("/x=y")),
            ("a:*=/tmp/t=u", &["a:*"], None, ctf("/tmp/t=u")),
            ("<=info=./t", &["*"], Some("<=info"), ctf("./t")),
            ("a:*, b:*=text", &["a:*", "b:*"], None, Target::Text(None)),
            ("a:*,<=info", &["a:*"], Some("<=info"), Target::Ctf(None)),
            ("<=info=text:/tmp/x", &["*"], Some("<=info"), Target::Text(Some("/tmp/x".into()))),
            ("==err=ctf:out", &["*"], Some("==err"), ctf("out")),
        ] {
            let (spec, target) = parse(text)?;
            let read: Vec<_> = spec.rules().flatten().map(|rule| rule.event.text()).collect();
            assert_eq!((&read[..], target), (rules, expected), "{text}");
            assert!(
                spec.rules()
                    .flatten()
                    .all(|rule| rule.excludes() || rule.level.as_ref().map(ToString::to_string).as_deref() == level)
            );
        }
        Ok(())
    }

    #[test]
    fn invalid_rules_are_reported() {
        for (text, part) in
            [("sched", "`sched:*`"), ("<=loud", "not a level"), ("<=info,>=err", "give one only"), (",", "empty")]
        {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
