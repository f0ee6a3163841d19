//! `tracectl notifications`: shows the notifications sent by the trigger action `notify`.

use super::outcome;
use crate::failure::{Failure, VerbResult};
use crate::session::controller;
use crate::{message, output};
use clap::Args;
use serde_json::json;
use std::io::Write;
use tracepoint_controller::trigger::{Notification, Subscription};

/// Shows what triggers send by the action `notify`
///
/// `tracectl listen` passes the notifications on. Each notification has the session, the trigger, the occurrence, and the results of the preceding
/// actions. Ends on Ctrl-C, and with an error when the listener ends. A subscriber that does not read misses notifications; the next one says how
/// many.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl notifications
  tracectl notifications -s flight --json | jq -r '.occurrence.condition'")]
pub(crate) struct Notifications {
    /// Only notifications of this session
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    /// Write one JSON object for each notification; the first, of the type `subscribed`, has the `path` of the socket
    #[arg(long)]
    json: bool,
}

impl Notifications {
    pub(crate) fn run(&self) -> VerbResult {
        let path = controller(self.pid)?.path().join("notify");
        let mut subscription = Subscription::new(Some(&path), self.session.as_deref())?;
        if self.json {
            output::json(&json!({ "type": "subscribed", "path": path.to_string_lossy() }))?;
        } else {
            message::summary(&format!("subscribed to {}", path.display()));
        }
        while let Some(notification) = subscription.next()? {
            if self.json { output::json(&json!(notification))? } else { write(&notification)? }
        }
        Err(Failure::Refused("the listener has ended; start `tracectl listen`, and this again".to_owned()))
    }
}

fn write(notification: &Notification) -> std::io::Result<()> {
    let Notification { session, trigger, occurrence, actions, missed, .. } = notification;
    let mut out = output::styled();
    if *missed > 0 {
        writeln!(out, "{} missed", message::counted(*missed, "notification"))?;
    }
    write!(out, "{} ", humantime::format_rfc3339_seconds(occurrence.time))?;
    writeln!(out, "trigger {trigger} of {session}: {}", occurrence.condition)?;
    for (name, detail) in &occurrence.entries {
        writeln!(out, "  {name} {detail}")?;
    }
    for action in actions {
        writeln!(out, "  {}", outcome(action))?;
    }
    out.flush()
}
