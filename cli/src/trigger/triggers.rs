//! `tracectl triggers`: shows the triggers of sessions and their results.

use super::{outcome, unwatched};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::session::controller;
use crate::table::{Table, number, text};
use crate::{message, output, units};
use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};
use tracepoint_controller::NamedSession;
use tracepoint_controller::trigger::{TriggerStatus, Watchers};
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::{Ack, TriggerAck};
use tracepoint_session_spec::{SpecError, TriggerSpec};

/// Shows triggers, how often they fired and the results
///
/// Includes the triggers of sessions that programs have started in code, as `NAME of process PID`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl triggers
  tracectl triggers -s flight --json | jq '.triggers[].state.snapshots[].path'")]
pub(crate) struct Triggers {
    /// The session [default: all]
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    /// Write one JSON object: `run_dir`, `listener`, `core_handler`, `triggers`, `processes` and `unsupported`
    #[arg(long)]
    json: bool,
}

impl Triggers {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.pid)?;
        let names = match &self.session {
            Some(name) => vec![controller.session(name)?.name().to_owned()],
            None => controller.sessions()?,
        };
        let (mut found, mut unsupported, mut result) = (Vec::new(), Vec::new(), Outcome::Success);
        let mut processes = Vec::new();
        for name in names {
            match controller.session(&name).map_err(Into::into).and_then(|session| of_session(&session)) {
                Ok(OfSession { triggers, errors, acks }) => {
                    processes.extend(acks.into_iter().map(|ack| (name.clone(), ack)));
                    found.extend(triggers.into_iter().map(|trigger| (name.clone(), trigger)));
                    unsupported.extend(errors.into_iter().map(|error| (name.clone(), error)));
                }
                Err(error) => {
                    message::error(&error.to_string());
                    result = Outcome::Incomplete;
                }
            }
        }
        if self.session.is_none() {
            let of_process = |(session, process, trigger): (String, ProcessKey, TriggerStatus)| {
                (format!("{session} of process {}", process.pid), trigger)
            };
            found.extend(controller.triggers_of_processes().into_iter().map(of_process));
        }
        let watchers = Watchers::of(controller.path());
        if self.json {
            output::json(&json!({
                "run_dir": controller.path().to_string_lossy(),
                "listener": watchers.listener,
                "core_handler": watchers.core_handler,
                "triggers": found.iter().map(|(session, trigger)| as_json(&watchers, session, trigger)).collect::<Vec<_>>(),
                "processes": processes.iter()
                    .map(|(session, ack)| json!({ "session": session, "pid": ack.process.pid, "triggers": ack.triggers }))
                    .collect::<Vec<_>>(),
                "unsupported": unsupported.iter()
                    .map(|(session, error)| json!({ "session": session, "error": error.to_string() }))
                    .collect::<Vec<_>>(),
            }))?;
            return Ok(result);
        }
        let mut out = output::styled();
        table(&found).write(&mut out)?;
        for (session, TriggerStatus { spec, state, .. }) in &found {
            writeln!(out, "{session} {}: {}", spec.id, settings(spec))?;
            for last in &state.last {
                writeln!(out, "  last: {}", outcome(last))?;
            }
            for snapshot in &state.snapshots {
                writeln!(out, "  kept: {} ({})", snapshot.path.display(), units::bytes(snapshot.bytes))?;
            }
        }
        out.flush()?;
        for (session, error) in &unsupported {
            message::note(&format!("{session}: {error}"));
        }
        for (session, ack) in &processes {
            for (id, watched) in &ack.triggers {
                if let TriggerAck::Unsupported(reason) = watched {
                    let pid = ack.process.pid;
                    message::note(&format!("trigger {id} of {session}: process {pid} does not watch for it: {reason}"));
                }
            }
        }
        for (session, trigger) in &found {
            if let Some(note) = unwatched(&watchers, session, trigger) {
                message::note(&note);
            }
        }
        Ok(result)
    }
}

struct OfSession {
    triggers: Vec<TriggerStatus>,
    /// Errors of triggers that this version does not understand.
    errors: Vec<SpecError>,
    /// The acknowledgements of processes that watch for some of them, or cannot.
    acks: Vec<Ack>,
}

fn of_session(session: &NamedSession<'_>) -> Result<OfSession, Failure> {
    let errors = session.spec()?.triggers().filter_map(Result::err).cloned().collect();
    let acks = session.acks()?.into_iter().filter(|ack| !ack.triggers.is_empty()).collect();
    Ok(OfSession { triggers: session.triggers()?, errors, acks })
}

fn table(found: &[(String, TriggerStatus)]) -> Table {
    let mut table = Table::new("");
    if !found.is_empty() {
        let numbers = ["OCCURRED", "FIRED", "SUPPRESSED", "FAILED", "KEPT", "REMOVED"].map(number);
        let texts = ["SESSION", "TRIGGER", "WHEN"].map(text);
        table.heading(texts.into_iter().chain(numbers).chain([text("LAST")]));
    }
    for (session, TriggerStatus { spec, state, .. }) in found {
        let kept = state.snapshots.len() as u64;
        let numbers = [state.occurred, state.fired, state.suppressed, state.failed, kept, state.removed].map(number);
        let last = state.last_ns.map_or_else(
            || "never".to_owned(),
            |ns| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(ns)).to_string(),
        );
        let texts = [text(session), text(&spec.id), text(&spec.when)];
        table.row(Style::new(), texts.into_iter().chain(numbers).chain([text(last)]));
    }
    table
}

/// Actions, policy and limits of a trigger.
fn settings(spec: &TriggerSpec) -> String {
    let mut parts: Vec<_> = spec.actions.iter().map(ToString::to_string).collect();
    parts.extend(spec.every.map(|nth| format!("on each {nth}th occurrence")));
    parts.extend(spec.once_after.map(|nth| format!("once, on occurrence {nth}")));
    parts.extend(spec.limit.as_ref().map(|limit| format!("at most {limit}")));
    parts.extend(spec.before.map(|time| format!("events of {} before", humantime::format_duration(time))));
    parts.extend(spec.after.map(|time| format!("taken {} after", humantime::format_duration(time))));
    parts.push(format!("keeps {} snapshots within {}", spec.keep, units::bytes(spec.max_size)));
    parts.join(", ")
}

fn as_json(watchers: &Watchers, session: &str, trigger: &TriggerStatus) -> Value {
    let mut object = json!(trigger.spec);
    object["missing"] = json!(watchers.missing(trigger));
    object["session"] = json!(session);
    object["state"] = json!(trigger.state);
    object
}
