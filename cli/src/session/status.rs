//! `tracectl status`: how sessions fare.

use super::outputs::describe;
use super::{Reach, channels, controller};
use crate::failure::{self, Outcome};
use crate::{Ended, output, units};
use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use tracepoint_control::{Ack, AckState, Application, ControlError, Controller, Counters, NamedSession, RuleAck};

/// Shows sessions: their rules, what each process does for them, what was recorded and lost
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl status
  tracectl status --json flight | jq '.sessions[].processes[].counters'

{}", failure::EXIT_CODES))]
pub(crate) struct Status {
    /// The session [default: all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Write one JSON object: `run_dir` and `sessions`
    #[arg(long)]
    json: bool,
    /// Show who changed what, too
    #[arg(long)]
    log: bool,
    /// Use the run directory of this process, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

const HEADING: Style = Style::new().bold();

impl Status {
    pub(crate) fn run(&self) -> Ended {
        let controller = controller(self.pid)?;
        let (names, silent) = match &self.name {
            Some(name) => (vec![name.clone()], asked(&controller, name, self.reach.timeout)?),
            None => (controller.sessions()?, controller.refresh(self.reach.timeout)?),
        };
        let mut outcome = if silent.is_empty() { Outcome::Well } else { Outcome::Wanting };
        super::tell_silent(&silent);
        let mut shown = Vec::new();
        let mut out = output::coloured();
        for name in names {
            let told = controller.session(&name).map_err(Into::into).and_then(|session| {
                if self.json {
                    shown.push(as_json(&session)?);
                    return Ok(());
                }
                self.write(&mut out, &session)
            });
            if let Err(error) = told {
                out.flush()?;
                failure::say_error(&error.to_string());
                outcome = Outcome::Wanting;
            }
        }
        if self.json {
            write_json(&controller, &shown)?;
        }
        out.flush()?;
        Ok(outcome)
    }

    fn write(&self, out: &mut impl Write, session: &NamedSession<'_>) -> Result<(), failure::Failure> {
        let spec = session.spec()?;
        let state = format!("{:?}", spec.state).to_lowercase();
        writeln!(out, "{HEADING}{}{HEADING:#}: {state}, generation {}", session.name(), spec.generation)?;
        for channel in channels::describe(&spec) {
            writeln!(out, "  {channel}")?;
        }
        for sink in &spec.sinks {
            writeln!(out, "  {}", describe(sink))?;
        }
        if let Some(budget) = &spec.budget {
            let cpu = budget.cpu_percent.map(|percent| format!("{percent} of a core"));
            let bytes = budget.bytes_per_second.map(|bytes| format!("{} a second", units::bytes(bytes)));
            let bounds: Vec<_> = cpu.into_iter().chain(bytes).collect();
            writeln!(out, "  budget of each process: {}", bounds.join(", "))?;
        }
        for rule in spec.rules() {
            match rule {
                Ok(rule) => writeln!(out, "  {rule}")?,
                Err(error) => writeln!(out, "  {error}")?,
            }
        }
        for ack in session.acks()? {
            write_ack(out, &ack, spec.generation)?;
        }
        if self.log {
            write!(out, "{}", session.log()?)?;
        }
        Ok(())
    }
}

/// Has the processes that take part in a session say how it fares; of one that is damaged nobody knows which they are.
fn asked(controller: &Controller, name: &str, timeout: Duration) -> Result<Vec<Application>, ControlError> {
    match controller.session(name)?.refresh(timeout) {
        Err(ControlError::Damaged { .. }) => controller.refresh(timeout),
        asked => asked,
    }
}

fn write_ack(out: &mut impl Write, ack: &Ack, generation: u64) -> std::io::Result<()> {
    let state = match ack.state {
        AckState::Recording => "records",
        AckState::Refused => "refused",
        AckState::Ending => "ending",
        AckState::Ended => "ended",
        _ => "waits",
    };
    let counters = &ack.counters;
    write!(out, "  {:>8} {}: {state}", ack.process.pid, ack.name)?;
    if ack.generation < generation && ack.state != AckState::Ended {
        write!(out, " generation {}, not acknowledged since", ack.generation)?;
    }
    write!(out, ", {} events on, ", ack.events)?;
    write_counters(out, counters)?;
    writeln!(out, ", {}", units::bytes(counters.bytes))?;
    for (name, counters) in &ack.channels {
        write!(out, "           channel {name}: ")?;
        write_counters(out, counters)?;
        writeln!(out)?;
    }
    for rule in ack.rules.iter().flatten() {
        if let RuleAck::Unsupported(reason) = rule {
            writeln!(out, "           a rule is not supported there: {reason}")?;
        }
    }
    ack.notices.iter().try_for_each(|notice| writeln!(out, "           {notice}"))?;
    ack.over_budget.iter().try_for_each(|over| writeln!(out, "           {over}"))?;
    ack.state_dumps.iter().try_for_each(|dump| writeln!(out, "           {dump}"))?;
    if let Some(error) = &ack.error {
        writeln!(out, "           {error}")?;
    }
    ack.sinks.iter().try_for_each(|notice| writeln!(out, "           {notice}"))?;
    if let Some(error) = ack.rotated.as_ref().and_then(|rotated| rotated.error.as_ref()) {
        writeln!(out, "           the last rotation failed: {error}")?;
    }
    ack.servers.iter().try_for_each(|server| writeln!(out, "           udp {server}"))?;
    ack.outputs.iter().try_for_each(|output| writeln!(out, "           {}", output.display()))
}

fn write_counters(out: &mut impl Write, counters: &Counters) -> std::io::Result<()> {
    write!(out, "{} recorded", counters.recorded)?;
    for (count, what) in [(counters.filtered, "filtered"), (counters.suppressed, "suppressed")] {
        if count > 0 {
            write!(out, ", {count} {what}")?;
        }
    }
    write!(out, ", {} lost", counters.total_lost())?;
    let reasons: Vec<_> = counters.lost.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    if reasons.is_empty() { Ok(()) } else { write!(out, " ({})", reasons.join(", ")) }
}

fn as_json(session: &NamedSession<'_>) -> Result<Value, failure::Failure> {
    let spec = session.spec()?;
    let rules: Vec<_> = spec
        .rules()
        .map(|rule| rule.map_or_else(|error| json!({"error": error.to_string()}), |rule| json!(rule)))
        .collect();
    let channels: Vec<_> = spec
        .all_channels()
        .map(|channel| {
            let mut shown = json!(channel);
            shown["name"] = json!(channel.name);
            shown
        })
        .collect();
    Ok(json!({
        "name": session.name(),
        "path": session.path().to_string_lossy(),
        "state": spec.state,
        "generation": spec.generation,
        "channel": spec.channel,
        "channels": channels,
        "sinks": spec.sinks,
        "budget": spec.budget,
        "rules": rules,
        "processes": session.acks()?,
    }))
}

fn write_json(controller: &Controller, sessions: &[Value]) -> std::io::Result<()> {
    output::json(&json!({ "run_dir": controller.path().to_string_lossy(), "sessions": sessions }))
}
