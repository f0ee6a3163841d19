//! Messages about the acknowledgements of processes.

use super::ChangeArguments;
use crate::failure::{Failure, Outcome};
use crate::{message, output};
use serde_json::{Value, json};
use std::io;
use tracepoint_controller::{Application, NamedSession};
use tracepoint_run_dir::{Ack, AckState, Counters, RuleAck};

/// Waits until the processes have applied a generation of a session, and reports their failures.
pub(crate) fn wait(session: &NamedSession<'_>, generation: u64, change: &ChangeArguments) -> Result<Outcome, Failure> {
    let waited = session.wait(generation, change.wait.timeout)?;
    report_silent(&waited.silent);
    let failed = waited.acks.iter().map(report).fold(false, |any, one| any | one);
    let complete = waited.silent.is_empty() && !failed;
    if change.json {
        write_json(session.name(), complete, &waited.acks, &waited.silent)?;
    }
    Ok(if complete { Outcome::Success } else { Outcome::Incomplete })
}

/// Writes the acknowledgements of a session.
pub(crate) fn write_json(session: &str, complete: bool, acks: &[Ack], silent: &[Application]) -> io::Result<()> {
    output::json(&json!({
        "session": session,
        "complete": complete,
        "processes": acks.iter().map(as_json).collect::<Vec<_>>(),
        "silent": silent.iter().map(|process| process.info().pid).collect::<Vec<_>>(),
    }))
}

/// Counters as JSON. As in tables, `recorded` counts the events that were kept: `recorded` plus lost, filtered and suppressed events equals the
/// events that fired.
pub(crate) fn counters_json(counters: &Counters) -> Value {
    let mut object = json!(counters);
    object["recorded"] = json!(counters.kept());
    object
}

/// An acknowledgement as JSON, with these counters.
pub(crate) fn recorded_json(ack: &Ack) -> Value {
    let mut object = json!(ack);
    object["counters"] = counters_json(&ack.counters);
    let channels = ack.channels.iter().map(|(channel, counters)| (channel.clone(), counters_json(counters)));
    if !ack.channels.is_empty() {
        object["channels"] = Value::Object(channels.collect());
    }
    object
}

/// The same for a session that is still running. For a process that died, the counters are from its last answer, which may be old, so they are not
/// reported as its `counters`.
pub(crate) fn as_json(ack: &Ack) -> Value {
    let mut object = recorded_json(ack);
    if ack.state == AckState::Dead {
        let last = std::mem::take(&mut object["counters"]);
        object["last_counters"] = last;
        object["channels"] = Value::Null;
    }
    object
}

pub(crate) fn report_silent<'a>(silent: impl IntoIterator<Item = &'a Application>) {
    for process in silent {
        let info = process.info();
        message::note(&format!("process {} ({}) has not acknowledged: {}", info.pid, info.name, process.silence()));
    }
}

/// Reports the failures of a process. Returns whether there were any.
fn report(ack: &Ack) -> bool {
    if let Some(error) = &ack.error {
        note_of(ack, error);
    }
    let unsupported = unsupported_rules(ack);
    for rule in &unsupported {
        message::note(rule);
    }
    report_notices(ack);
    !unsupported.is_empty() || ack.state == AckState::Refused || ack.error.is_some()
}

/// Reports events that the budget has switched off, incomplete state dumps, and notices. Names one of the events that a filter does not
/// fit.
pub(crate) fn report_notices(ack: &Ack) {
    ack.over_budget.iter().for_each(|over| note_of(ack, over));
    ack.state_dumps.iter().filter(|dump| dump.is_incomplete()).for_each(|dump| note_of(ack, dump));
    let (left_out, others): (Vec<_>, Vec<_>) =
        ack.notices.iter().partition(|notice| notice.kind() == "filter_does_not_fit");
    if let [first, further @ ..] = &left_out[..] {
        let more = if further.is_empty() { String::new() } else { format!("; and {} others", further.len()) };
        note_of(ack, format!("{first}{more}"));
    }
    for notice in others {
        note_of(ack, notice);
    }
}

/// The rules that a process does not support, with reasons.
pub(crate) fn unsupported_rules(ack: &Ack) -> Vec<String> {
    unsupported_rules_by_index(ack).map(|(_, text)| text).collect()
}

/// The same, each with the index of its rule.
pub(crate) fn unsupported_rules_by_index(ack: &Ack) -> impl Iterator<Item = (usize, String)> {
    ack.rules.iter().enumerate().filter_map(|(index, rule)| match rule {
        Some(RuleAck::Unsupported(reason)) => {
            let number = index + 1;
            let text = format!("process {} ({}) does not support rule {number}: {reason}", ack.process.pid, ack.name);
            Some((index, text))
        }
        _ => None,
    })
}

pub(crate) fn of_process(ack: &Ack, text: impl std::fmt::Display) -> String {
    format!("process {} ({}): {text}", ack.process.pid, ack.name)
}

fn note_of(ack: &Ack, text: impl std::fmt::Display) {
    message::note(&of_process(ack, text));
}
