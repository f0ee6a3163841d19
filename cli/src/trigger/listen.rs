//! `tracectl listen`: owns the notification socket, and fires triggers for the notifications it receives.

use super::fired;
use crate::failure::{Outcome, VerbResult};
use crate::interrupt::WaitingInterrupt;
use crate::progress::WaitingLine;
use crate::session::controller;
use crate::{message, output};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::{Duration, SystemTime};
use tracepoint_controller::Recorder;
use tracepoint_controller::trigger::{CoreDump, Listener, Report, ReportKind};
use tracepoint_run_dir::RunDir;

/// Watches sessions from outside and fires their triggers
///
/// It notices what no process notices itself: that one was killed, the size of the outputs, and complete chunks. It does the actions `notify` and
/// `run`, and waits for the time after an occurrence (`--after`). The socket is `notify` in the run directory. A helper that the kernel starts for a
/// core dump (`core_pattern`) writes to it; see `docs/format-notify.md`. Without a listener, `tracectl notify` fires the triggers itself. Only
/// processes of this user and of root are served. Writes a line for each message and each occurrence.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl listen
  tracectl listen --json | jq -r 'select(.type == \"core_dump\") | .triggers[].actions[].output'
  tracectl notifications                        in another terminal: what the action `notify` sends")]
pub(crate) struct Listen {
    /// Write one JSON object for each message and each occurrence; the first, of the type `listening`, has the `path` of the socket
    #[arg(long)]
    json: bool,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
}

impl Listen {
    pub(crate) fn run(&self) -> VerbResult {
        let mut interrupt = WaitingInterrupt::without_children()?;
        // The listener holds a descriptor for each traced process.
        Recorder::raise_file_limit();
        let run_dir = controller(self.pid)?.path().to_owned();
        let mut listener = Listener::bind(RunDir::at(&run_dir).map_err(tracepoint_session_io::ControlError::from)?)?;
        let path = listener.path();
        if self.json {
            output::json(&json!({ "type": "listening", "path": path.to_string_lossy() }))?;
        } else {
            message::summary(&format!("listening on {}", path.display()));
        }
        let line = WaitingLine::new("nothing has occurred yet".to_owned());
        let mut messages = 0;
        while !interrupt.is_requested() {
            listener.serve(interrupt.signals(), |report| {
                messages += 1;
                line.set(message::counted(messages, "message"));
                let written = if self.json { output::json(&as_json(&report)) } else { write(&report) };
                // A failed write is ignored: triggers fire even if the output cannot be written.
                drop(written);
            })?;
            // Consumes the byte of the signal.
            interrupt.wait(Duration::ZERO);
        }
        Ok(Outcome::Success)
    }
}

fn write(report: &Report) -> io::Result<()> {
    let mut out = output::styled();
    let sender = report.sender;
    write!(out, "{} ", humantime::format_rfc3339_seconds(SystemTime::now()))?;
    match &report.kind {
        ReportKind::CoreDump(core, triggers, answer) => {
            let CoreDump { pid, uid, .. } = core;
            write!(out, "process {pid} ({}) of user {uid} dumped core", core.executable.to_string_lossy())?;
            match &triggers[..] {
                [] if *answer == 0 => writeln!(out, "; no session has a trigger for that")?,
                [] => writeln!(out, "; the sessions cannot be read")?,
                triggers => {
                    writeln!(out)?;
                    triggers.iter().try_for_each(|trigger| writeln!(out, "  {}", fired(trigger)))?;
                }
            }
        }
        ReportKind::Occurred(session, occurrence, triggers, _) => {
            write!(out, "{} in {session}", occurrence.condition)?;
            if occurrence.pid != 0 {
                write!(out, ", process {}", occurrence.pid)?;
            }
            let details = occurrence.entries.iter().filter(|(name, _)| !name.starts_with("trigger_"));
            details.clone().try_for_each(|(name, detail)| write!(out, ", {name} {detail}"))?;
            writeln!(out)?;
            triggers.iter().try_for_each(|trigger| writeln!(out, "  {}", fired(trigger)))?;
        }
        ReportKind::Later(triggers) => {
            writeln!(out, "after the time after")?;
            triggers.iter().try_for_each(|trigger| writeln!(out, "  {}", fired(trigger)))?;
        }
        ReportKind::Subscriber(session) => {
            let of = session.as_ref().map_or_else(|| "all sessions".to_owned(), |session| format!("session {session}"));
            writeln!(out, "process {sender} subscribes to the notifications of {of}")?;
        }
        ReportKind::Refused(what, answer) => writeln!(out, "process {sender}: refused with {answer}: {what}")?,
        ReportKind::OtherUser(user) => writeln!(out, "process {sender} of user {user}: refused, it is another user's")?,
        ReportKind::Closed(reason) => writeln!(out, "process {sender}: closed, {reason}")?,
        _ => writeln!(out, "process {sender}")?,
    }
    out.flush()
}

fn as_json(report: &Report) -> Value {
    let mut object = match &report.kind {
        ReportKind::CoreDump(core, triggers, answer) => json!({
            "type": "core_dump",
            "pid": core.pid,
            "uid": core.uid,
            "gid": core.gid,
            "exe": core.executable.to_string_lossy(),
            "host": core.host.to_string_lossy(),
            "signal": core.signal,
            "answer": answer,
            "triggers": triggers,
        }),
        ReportKind::Occurred(session, occurrence, triggers, answer) => json!({
            "type": "occurred",
            "session": session,
            "occurrence": occurrence,
            "answer": answer,
            "triggers": triggers,
        }),
        ReportKind::Later(triggers) => json!({ "type": "later", "triggers": triggers }),
        ReportKind::Subscriber(session) => json!({ "type": "subscriber", "session": session }),
        ReportKind::Refused(message, answer) => json!({ "type": "refused", "message": message, "answer": answer }),
        ReportKind::OtherUser(user) => json!({ "type": "other_user", "uid": user }),
        ReportKind::Closed(reason) => json!({ "type": "closed", "reason": reason }),
        _ => json!({ "type": "other" }),
    };
    object["sender"] = json!(report.sender);
    object
}
