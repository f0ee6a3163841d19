//! `tracectl recover`: makes a trace of what a dead process left behind.

use crate::failure::{self, Outcome};
use crate::progress::Bar;
use crate::{Ended, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;
use tracepoint_reader::Recovered;
use tracepoint_reader::recover::{RecoveredProcess, recover_with};

/// Completes the session of a process that died: what was in its rings still, and what its sinks had kept
///
/// Makes a CTF trace of a process's rings (`sessions/NAME/rings/PID-START` in the run directory), with the account of what was
/// lost. Events that were committed before the process was killed are in it. Of several processes below DIR each gets a
/// directory of its own in OUT. Of a process that runs still it makes a snapshot, which is told as incomplete. Nothing in DIR
/// is changed.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl recover /run/user/1000/tracepoint/sessions/shop -o /tmp/shop
  tracectl recover /run/user/1000/tracepoint/sessions/shop/rings/4242-777 -o /tmp/trace && tracectl view /tmp/trace
  tracectl recover --json /run/user/1000/tracepoint -o /tmp/all | jq '.processes[].lost'

{}", failure::EXIT_CODES))]
pub(crate) struct Recover {
    /// The directory of a process, of a session, or the run directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the trace goes: a directory that is empty, or does not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write one JSON object: `path`, `output`, `complete`, `processes` and `failed`
    #[arg(long)]
    json: bool,
    /// Processes may run
    #[arg(skip)]
    snapshot: bool,
}

const HEADING: Style = Style::new().bold();
const NOTE: Style = AnsiColor::Yellow.on_default().bold();

impl Recover {
    /// The same of a session whose processes run: that they do is no fault.
    pub(crate) const fn snapshot(directory: PathBuf, output: PathBuf, json: bool) -> Self {
        Self { directory, output, json, snapshot: true }
    }

    pub(crate) fn run(&self) -> Ended {
        let mut bar = Bar::new();
        let recovered = recover_with(&self.directory, &self.output, |progress| {
            let what = match progress.processes {
                1 => "recovering".to_owned(),
                processes => format!("recovering {} of {processes}", progress.process + 1),
            };
            bar.set(&what, progress.done, progress.total);
        })?;
        drop(bar);
        if self.json {
            self.write_json(&recovered)?;
        } else {
            Self::write_text(&recovered)?;
        }
        for process in &recovered.processes {
            for note in &process.notes {
                anstream::eprintln!("{NOTE}note{NOTE:#}: {note}");
            }
        }
        for process in &recovered.failed {
            failure::say_error(&process.reason);
        }
        if recovered.is_complete() || (self.snapshot && recovered.failed.is_empty()) {
            return Ok(Outcome::Well);
        }
        let path = self.directory.display();
        failure::say_error(&format!(
            "{path}: not all of it could be recovered; what could is in {}",
            self.output.display()
        ));
        Ok(Outcome::Wanting)
    }

    fn write_text(recovered: &Recovered) -> io::Result<()> {
        let mut out = output::coloured();
        for process in &recovered.processes {
            Self::write_process(&mut out, process)?;
        }
        out.flush()
    }

    fn write_process(out: &mut impl Write, process: &RecoveredProcess) -> io::Result<()> {
        let RecoveredProcess { pid, session, output, records, streams, .. } = process;
        let output = output.display();
        writeln!(out, "{HEADING}process {pid}, session {session}{HEADING:#}: {output}")?;
        writeln!(out, "  kept  {records:>12}  events")?;
        let mut line = |word: &str, count: u64, what: &str| {
            if count == 0 { Ok(()) } else { writeln!(out, "  {word:4}  {count:>12}  {what}") }
        };
        line("", *streams, "streams")?;
        line("", process.packets_from_outputs, "packets that a sink had kept")?;
        line("", process.packets_from_rings, "packets that were in a ring")?;
        line("", process.mended, "of them not closed yet")?;
        line("", process.torn_places, "places of packets that could not be read")?;
        let mut word = "lost";
        for (reason, count) in &process.lost {
            line(std::mem::take(&mut word), *count, reason)?;
        }
        if process.lost.is_empty() {
            writeln!(out, "  lost  {:>12}", 0)?;
        }
        Ok(())
    }

    fn write_json(&self, recovered: &Recovered) -> io::Result<()> {
        let mut out = output::raw();
        let object = serde_json::json!({
            "path": self.directory.to_string_lossy(),
            "output": self.output.to_string_lossy(),
            "complete": recovered.is_complete(),
            "processes": recovered.processes,
            "failed": recovered.failed,
        });
        serde_json::to_writer(&mut out, &object)?;
        writeln!(out)?;
        out.flush()
    }
}
