//! `tracectl list`: which processes can be traced, and what in them.

use crate::failure::{self, Outcome};
use crate::session::{Reach, controller, tell_silent};
use crate::{Ended, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use tracepoint_control::{AppStatus, Application, TracepointInfo, TracepointKind};

/// Shows the processes that can be traced, and their tracepoints: level, fields and types, on or off
///
/// How often events fired is counted while a session records them, and is that of the session that saw most.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl list
  tracectl list -p 4242
  tracectl list --json | jq -r '.processes[].tracepoints[] | select(.on).name'

{}", failure::EXIT_CODES))]
pub(crate) struct List {
    /// Only this process; its run directory is used, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    /// Write one JSON object: `run_dir` and `processes`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

const HEADING: Style = Style::new().bold();
const ON: Style = AnsiColor::Green.on_default().bold();
const FAINT: Style = Style::new().dimmed();

impl List {
    pub(crate) fn run(&self) -> Ended {
        let controller = controller(self.pid)?;
        let processes = || match self.pid {
            Some(pid) => Ok(vec![controller.process(pid)?]),
            None => controller.processes(),
        };
        let silent = controller.ask(processes()?, self.reach.timeout)?;
        let processes = processes()?;
        if self.json {
            let shown: Vec<_> = processes.iter().map(|process| as_json(process, &silent)).collect();
            let object = json!({ "run_dir": controller.path().to_string_lossy(), "processes": shown });
            output::json(&object)?;
        } else {
            let mut out = output::coloured();
            for process in &processes {
                write(&mut out, process)?;
            }
            out.flush()?;
            if processes.is_empty() {
                let place = controller.path().display();
                output::note(&format!(
                    "no process is traced in {place}; a program becomes traceable by \
                     `let _agent = tracepoint_control::Agent::start();` in its `main`"
                ));
            }
            tell_silent(&silent);
        }
        Ok(if silent.is_empty() { Outcome::Well } else { Outcome::Wanting })
    }
}

fn write(out: &mut impl Write, process: &Application) -> std::io::Result<()> {
    let info = process.info();
    // What has ended meanwhile has nothing to show.
    let status = process.status().unwrap_or_default();
    let tracepoints = process.tracepoints().unwrap_or_default();
    writeln!(out, "{HEADING}{} {}{HEADING:#}  {}", info.pid, info.name, info.executable)?;
    writeln!(out, "{FAINT}  {}{FAINT:#}", status.platform)?;
    let name_width = tracepoints.iter().map(|t| t.name.len()).max().unwrap_or(0);
    let level_width = tracepoints.iter().map(|t| t.level.len()).max().unwrap_or(0);
    for tracepoint in &tracepoints {
        let TracepointInfo { name, level, .. } = tracepoint;
        let (style, word) = if is_on(&status, name) { (ON, "on ") } else { (FAINT, "off") };
        write!(out, "  {style}{word}{style:#}  {name:name_width$}  {level:level_width$}  {}", content(tracepoint))?;
        match status.fired.get(name) {
            Some(fired) => writeln!(out, "  ({fired} times)")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// What is recorded of it; of a hook, what its probes see.
fn content(tracepoint: &TracepointInfo) -> String {
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
    let mut object = json!(process.info());
    let tracepoint = |tracepoint: TracepointInfo| {
        let mut object = json!(tracepoint);
        object["on"] = is_on(&status, &tracepoint.name).into();
        object["fired"] = json!(status.fired.get(&tracepoint.name));
        object
    };
    let tracepoints: Vec<_> = process.tracepoints().unwrap_or_default().into_iter().map(tracepoint).collect();
    let more = BTreeMap::from([
        ("process", json!(process.info().key())),
        ("answered", json!(!silent.iter().any(|other| other.name() == process.name()))),
        ("platform", json!(status.platform)),
        ("tracepoints", json!(tracepoints)),
    ]);
    for (name, value) in more {
        object[name] = value;
    }
    object
}
