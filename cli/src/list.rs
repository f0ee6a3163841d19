//! `tracectl list`: the processes that can be traced, and their tracepoints.

use crate::failure::{Outcome, VerbResult};
use crate::output::in_line;
use crate::session::acks::report_silent;
use crate::session::{WaitArguments, controller, in_code, leftover};
use crate::table::{Table, number, text};
use crate::{message, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use tracepoint_controller::Application;
use tracepoint_run_dir::{Ack, AppStatus, ApplicationInfo, FieldInfo, TracepointInfo, TracepointKind};

/// Shows traceable processes and their tracepoints
///
/// For each tracepoint it shows if it is on, its level, fields, types and documentation. The documentation is the first paragraph of the comment
/// above the tracepoint; `-v` shows all of it, and the documentation of fields. Events are counted while a session records them. If several sessions
/// do, FIRED is the largest of their counts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl list
  tracectl list -p 4242
  tracectl list -v
  tracectl list --json | jq -r '.processes[].tracepoints[] | select(.on).name'")]
pub(crate) struct List {
    /// Only this process, in the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    /// Also show where each tracepoint is declared and its full documentation, and for each process its platform: the form of sites, the clock, the
    /// machine's boot, and the outputs it was built with
    #[arg(short, long)]
    verbose: bool,
    /// Write one JSON object: `run_dir`, `processes`, `in_code` (sessions in the code of programs), `dead` (processes that died while a session recorded them), and `leftovers` (rings of sessions that are over)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wait: WaitArguments,
}

const HEADING: Style = Style::new().bold();
const ON: Style = AnsiColor::Green.on_default().bold();
const FAINT: Style = Style::new().dimmed();

impl List {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.pid)?;
        let processes = || match self.pid {
            Some(pid) => Ok(vec![controller.process(pid)?]),
            None => controller.processes(),
        };
        let silent = controller.refresh_processes(processes()?, self.wait.timeout)?;
        let processes = processes()?;
        let mut in_code = controller.sessions_in_code();
        in_code.retain(|session| self.pid.is_none() || processes.iter().any(|one| one.info().key() == session.process));
        let (mut dead, mut leftovers) = (Vec::new(), Vec::new());
        if self.pid.is_none() {
            (dead, leftovers) = (controller.dead()?, controller.leftovers()?);
        }
        if self.json {
            let of_dead = |(session, ack): &(String, Ack)| json!({ "process": ack.process, "pid": ack.process.pid, "name": ack.name, "session": session });
            let objects: Vec<_> = processes.iter().map(|process| as_json(process, &silent)).collect();
            output::json(&json!({
                "run_dir": controller.path().to_string_lossy(),
                "processes": objects,
                "in_code": in_code.iter().map(in_code::as_json).collect::<Vec<_>>(),
                "dead": dead.iter().map(of_dead).collect::<Vec<_>>(),
                "leftovers": leftovers.iter().map(leftover::as_json).collect::<Vec<_>>(),
            }))?;
        } else {
            let mut out = output::styled();
            processes.iter().try_for_each(|process| write(&mut out, process, self.verbose))?;
            in_code::write(&mut out, &in_code)?;
            for (session, Ack { process, name, rings, .. }) in &dead {
                let name = in_line(name);
                writeln!(out, "{HEADING}{} {name}{HEADING:#}  dead; the session {session} recorded it", process.pid)?;
                if let Some(rings) = rings.as_ref().filter(|rings| rings.exists()) {
                    writeln!(out, "  its rings: tracectl recover {} -o OUT", rings.display())?;
                }
            }
            leftover::write(&mut out, &leftovers)?;
            out.flush()?;
            if processes.is_empty() {
                let run_dir = controller.path().display();
                message::note(&format!(
                    "no process can be traced in {run_dir}; a program becomes traceable with \
                     `let _agent = tracepoint::Agent::start();` in its `main`"
                ));
            }
            report_silent(&silent);
        }
        Ok(if silent.is_empty() { Outcome::Success } else { Outcome::Incomplete })
    }
}

fn write(out: &mut impl Write, process: &Application, is_verbose: bool) -> io::Result<()> {
    let info = process.info();
    // Both are empty if the process has ended in the meantime.
    let (status, tracepoints) = (process.status().unwrap_or_default(), process.tracepoints().unwrap_or_default());
    writeln!(out, "{HEADING}{} {}{HEADING:#}  {}", info.pid, in_line(&info.name), in_line(&info.executable))?;
    if is_verbose {
        let ApplicationInfo { library, boot, hostname, user, pid_namespace, .. } = info;
        writeln!(out, "{FAINT}  {}{FAINT:#}", status.platform)?;
        let place = format!("user {user}, pid namespace {pid_namespace}, host {}, boot {boot}", in_line(hostname));
        writeln!(out, "{FAINT}  tracepoint {}, {place}{FAINT:#}", in_line(library))?;
        if let Some(sinks) = &info.sinks {
            writeln!(out, "{FAINT}  outputs of its own: {}{FAINT:#}", in_line(&sinks.join(", ")))?;
        }
        if !info.waits_for_recorder {
            writeln!(out, "{FAINT}  cannot be recorded with `--lossless`{FAINT:#}")?;
        }
    }
    if process.is_damaged() {
        writeln!(out, "  another program has damaged its description, and it has not written it again")?;
    }
    let mut table = Table::new("  ");
    let has_docs = tracepoints.iter().any(|tracepoint| !summary(&tracepoint.doc).is_empty());
    if !tracepoints.is_empty() {
        let docs = has_docs.then_some("DOCUMENTATION");
        table.heading(["", "TRACEPOINT", "LEVEL", "FIRED", "FIELDS"].into_iter().chain(docs).map(text));
    }
    for tracepoint in &tracepoints {
        let (style, state) = if is_on(&status, &tracepoint.name) { (ON, "on") } else { (FAINT, "off") };
        let fired = status.fired.get(&tracepoint.name).map(u64::to_string).unwrap_or_default();
        let TracepointInfo { name, level, doc, .. } = tracepoint;
        let cells = [text(state), text(name), text(level), number(fired), text(fields(tracepoint))];
        table.row(style, cells.into_iter().chain(has_docs.then(|| text(summary(doc)))));
    }
    table.write(out)?;
    if is_verbose {
        tracepoints.iter().try_for_each(|tracepoint| write_details(out, tracepoint))?;
    }
    Ok(())
}

/// Writes the source location of a tracepoint and its full documentation.
fn write_details(
    out: &mut impl Write,
    TracepointInfo { name, declared, doc, fields, .. }: &TracepointInfo,
) -> io::Result<()> {
    writeln!(out, "  {HEADING}{}{HEADING:#}  {}", in_line(name), in_line(declared))?;
    doc.trim().lines().try_for_each(|line| writeln!(out, "    {}", line.trim()))?;
    for FieldInfo { name, doc, .. } in fields.iter().filter(|field| !field.doc.trim().is_empty()) {
        writeln!(out, "    {}: {}", in_line(name), paragraph(doc.trim()))?;
    }
    Ok(())
}

/// The first paragraph of a documentation, in one line.
fn summary(doc: &str) -> String {
    paragraph(doc.trim().split("\n\n").next().unwrap_or_default())
}

fn paragraph(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The fields that are recorded, or the arguments that probes see.
fn fields(tracepoint: &TracepointInfo) -> String {
    if tracepoint.kind == TracepointKind::Hook {
        let arguments: Vec<_> = tracepoint.arguments.iter().map(|a| format!("{}: {}", a.name, a.ty)).collect();
        return format!("({}), for probes only", arguments.join(", "));
    }
    let fields: Vec<_> = tracepoint.fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
    fields.join(", ")
}

fn is_on(status: &AppStatus, name: &str) -> bool {
    status.on.binary_search_by(|on| on.as_str().cmp(name)).is_ok()
}

fn as_json(process: &Application, silent: &[Application]) -> Value {
    let status = process.status().unwrap_or_default();
    let tracepoint = |tracepoint: TracepointInfo| {
        let mut object = json!(tracepoint);
        object["on"] = is_on(&status, &tracepoint.name).into();
        object["fired"] = json!(status.fired.get(&tracepoint.name));
        object
    };
    let tracepoints = process.tracepoints().unwrap_or_default().into_iter().map(tracepoint);
    let mut object = json!(process.info());
    object["process"] = json!(process.info().key());
    object["damaged"] = json!(process.is_damaged());
    object["answered"] = json!(!silent.iter().any(|other| other.name() == process.name()));
    object["platform"] = json!(status.platform);
    object["tracepoints"] = tracepoints.collect();
    object
}
