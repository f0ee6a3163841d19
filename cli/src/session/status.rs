//! `tracectl status`: the state and counters of sessions.

use super::acks::{self, report_silent};
use super::outputs::describe;
use super::{WaitArguments, channels, controller, in_code, leftover};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::table::{Table, number, text};
use crate::view::sender_note;
use crate::{message, output, units};
use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;
use tracepoint_controller::{Application, Controller, NamedSession};
use tracepoint_run_dir::{Ack, AckState, Counters, RuleAck, StreamStatus};
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::ChannelSpec;

/// Shows sessions, and what each process recorded and lost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl status
  tracectl status --log flight
  tracectl status --json flight | jq '.sessions[].processes[].counters'")]
pub(crate) struct Status {
    /// The session [default: all]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Write one JSON object: `run_dir`, `sessions`, `in_code` (sessions in the code of programs), and `leftovers` (rings of sessions that are over)
    #[arg(long)]
    json: bool,
    /// Also show who changed the session, and how
    #[arg(long)]
    log: bool,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    wait: WaitArguments,
}

const HEADING: Style = Style::new().bold();

impl Status {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.pid)?;
        let mut in_code = controller.sessions_in_code();
        in_code.retain(|session| self.name.as_ref().is_none_or(|name| *name == session.name));
        let (names, silent) = match &self.name {
            Some(_) if !in_code.is_empty() => (Vec::new(), Vec::new()),
            Some(name) => (vec![name.clone()], refresh(&controller, name, self.wait.timeout)?),
            None => (controller.sessions()?, controller.refresh(self.wait.timeout)?),
        };
        let mut outcome = if silent.is_empty() { Outcome::Success } else { Outcome::Incomplete };
        report_silent(&silent);
        let mut objects = Vec::new();
        let mut out = output::styled();
        for name in names {
            let shown = controller.session(&name).map_err(Into::into).and_then(|session| {
                if self.json {
                    objects.push(as_json(&session)?);
                    return Ok(());
                }
                self.write(&mut out, &session)
            });
            if let Err(error) = shown {
                out.flush()?;
                message::error(&error.to_string());
                outcome = Outcome::Incomplete;
            }
        }
        let leftovers = if self.name.is_none() { controller.leftovers()? } else { Vec::new() };
        if self.json {
            output::json(&json!({
                "run_dir": controller.path().to_string_lossy(),
                "sessions": objects,
                "in_code": in_code.iter().map(in_code::as_json).collect::<Vec<_>>(),
                "leftovers": leftovers.iter().map(leftover::as_json).collect::<Vec<_>>(),
            }))?;
        } else {
            in_code::write(&mut out, &in_code)?;
            leftover::write(&mut out, &leftovers)?;
            out.flush()?;
        }
        Ok(outcome)
    }

    fn write(&self, out: &mut impl Write, session: &NamedSession<'_>) -> Result<(), Failure> {
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
        let acks = session.acks()?;
        write_counters(out, &acks, spec.generation)?;
        for ack in &acks {
            details(ack, spec.generation, spec.limits.memory)
                .iter()
                .try_for_each(|line| writeln!(out, "  process {}: {line}", ack.process.pid))?;
        }
        for rings in session.rings_of_dead()? {
            let rings = rings.display();
            writeln!(out, "  rings of a process that died or called `exec`: tracectl recover {rings} -o OUT")?;
        }
        if self.log {
            write!(out, "{}", session.log()?)?;
        }
        Ok(())
    }
}

/// Asks the processes of a session for their counters; if its description is damaged, all processes.
fn refresh(controller: &Controller, name: &str, timeout: Duration) -> Result<Vec<Application>, ControlError> {
    match controller.session(name)?.refresh(timeout) {
        Err(ControlError::SessionDamaged { .. }) => controller.refresh(timeout),
        refreshed => refreshed,
    }
}

/// Writes a row for each process, or for each channel of a process with several.
fn write_counters(out: &mut impl Write, acks: &[Ack], generation: u64) -> io::Result<()> {
    let mut table = Table::new("  ");
    if !acks.is_empty() {
        let [events, recorded, filtered, suppressed, lost, size] =
            ["EVENTS ON", "RECORDED", "FILTERED", "SUPPRESSED", "LOST", "SIZE"].map(number);
        table.heading([text("PROCESS"), text("STATE"), events, recorded, filtered, suppressed, lost, size]);
    }
    let counts = |counters: &Counters| {
        [counters.kept(), counters.filtered, counters.suppressed, counters.total_lost()].map(number)
    };
    for ack in acks {
        // The last answer of a dead process may be old: none of its numbers is current.
        let is_known = ack.state != AckState::Dead;
        let known = |cell| if is_known { cell } else { number("-") };
        let process =
            [text(format!("{} {}", ack.process.pid, ack.name)), text(state(ack, generation)), number(ack.events)];
        let size = number(units::bytes(ack.counters.bytes));
        let counted = counts(&ack.counters).into_iter().chain([size]).map(known);
        table.row(Style::new(), process.into_iter().chain(counted));
        for (channel, counters) in ack.channels.iter().filter(|_| is_known) {
            let channel = [text(format!("  channel {channel}")), text(""), text("")];
            table.row(Style::new(), channel.into_iter().chain(counts(counters)));
        }
    }
    table.write(out)
}

fn state(ack: &Ack, generation: u64) -> &'static str {
    match ack.state {
        AckState::Ended => "ended",
        AckState::Dead => "dead",
        _ if ack.generation < generation => "outdated",
        AckState::Recording => "recording",
        AckState::Refused => "refused",
        AckState::Ending => "ending",
        _ => "waiting",
    }
}

/// Everything that a process acknowledges, except its counters.
fn details(ack: &Ack, generation: u64, memory: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if ack.state == AckState::Dead {
        lines.push(format!(
            "it died while it recorded; `tracectl snapshot` and `tracectl recover` read what is in its rings and count it; its last \
             answer was: {}",
            ack.counters
        ));
    } else if ack.generation < generation && ack.state != AckState::Ended {
        lines.push(format!("it has acknowledged generation {}, and not the newer ones yet", ack.generation));
    }
    if ack.ring_memory > 0 {
        lines.push(format!("its rings take {} of at most {}", units::bytes(ack.ring_memory), units::bytes(memory)));
    }
    if ack.statistics > 0 {
        let (statistics, size) =
            (message::counted(ack.statistics as u64, "statistic"), units::bytes(ack.statistic_memory));
        lines.push(format!("{statistics} of {size}, which `tracectl stat -s` shows"));
    }
    if ack.overflowed > 0 {
        lines.push(format!(
            "its threads have gone on in another ring {} times, because theirs were full",
            ack.overflowed
        ));
    }
    let lost = ack.counters.lost.iter().filter(|_| ack.state != AckState::Dead);
    let lost: Vec<_> = lost.map(|(reason, count)| format!("{reason} {count}")).collect();
    if !lost.is_empty() {
        lines.push(format!("lost: {}", lost.join(", ")));
    }
    for rule in ack.rules.iter().flatten() {
        if let RuleAck::Unsupported(reason) = rule {
            lines.push(format!("a rule is not supported: {reason}"));
        }
    }
    lines.extend(ack.over_budget.iter().map(ToString::to_string));
    lines.extend(ack.state_dumps.iter().map(ToString::to_string));
    lines.extend(ack.error.clone());
    lines.extend(ack.notices.iter().map(ToString::to_string));
    if let Some(error) = ack.rotated.as_ref().and_then(|rotated| rotated.error.as_ref()) {
        lines.push(format!("the last rotation failed: {error}"));
    }
    lines.extend(ack.streams.iter().map(stream));
    lines.extend(ack.servers.iter().map(|server| format!("udp {server}")));
    lines.extend(ack.outputs.iter().map(|output| format!("output {}", output.display())));
    lines
}

/// The state of a streaming sink: rate, lag, losses.
fn stream(stream: &StreamStatus) -> String {
    let StreamStatus { to, peer, trouble, packets, bytes, bytes_per_second, waiting, lag_ms, clock_ns, lost, .. } =
        stream;
    let unacknowledged = match stream.unacknowledged {
        0 => String::new(),
        count => format!(", {} not acknowledged", message::counted(count, "event")),
    };
    let peer = peer.as_ref().map_or_else(|| "not connected".to_owned(), |peer| format!("connected to {peer}"));
    let [bytes, rate, waiting] = [*bytes, *bytes_per_second, *waiting].map(units::bytes);
    let lag = lag_ms
        .map_or_else(String::new, |ms| format!(", {} behind", humantime::format_duration(Duration::from_millis(ms))));
    let reasons: Vec<_> = lost.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let lost = if reasons.is_empty() { String::new() } else { format!("; lost: {}", reasons.join(", ")) };
    let trouble = trouble.as_ref().map_or_else(String::new, |trouble| format!("; {trouble}"));
    let clock = clock_ns.and_then(|ahead| sender_note(to, ahead)).map_or_else(String::new, |note| format!("; {note}"));
    let packets = message::counted(*packets, "packet");
    format!(
        "streams to {to} ({peer}): {rate}/s; {packets} with {bytes} sent, {waiting} waiting{unacknowledged}{lag}{lost}{trouble}{clock}"
    )
}

fn as_json(session: &NamedSession<'_>) -> Result<Value, Failure> {
    let spec = session.spec()?;
    let rules: Vec<_> = spec
        .rules()
        .map(|rule| rule.map_or_else(|error| json!({"error": error.to_string()}), |rule| json!(rule)))
        .collect();
    let of_channel = |channel: &ChannelSpec| {
        let mut object = json!(channel);
        object["name"] = json!(channel.name);
        object["ring_size"] = json!(channel.first_ring_size());
        object
    };
    let channels = spec.all_channels().map(of_channel);
    Ok(json!({
        "name": session.name(),
        "path": session.path().to_string_lossy(),
        "state": spec.state,
        "generation": spec.generation,
        "channel": of_channel(&spec.channel),
        "channels": channels.collect::<Vec<_>>(),
        "sinks": spec.sinks,
        "budget": spec.budget,
        "limits": spec.limits,
        "rules": rules,
        "processes": session.acks()?.iter().map(acks::as_json).collect::<Vec<_>>(),
        "rings_of_dead": session.rings_of_dead()?.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
    }))
}
