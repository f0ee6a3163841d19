//! `tracectl recover`: makes a trace from the rings and outputs of a process that died.

use crate::failure::{Outcome, VerbResult};
use crate::progress::Bar;
use crate::table::{Table, number, text};
use crate::{message, output, run_directory};
use anstyle::Style;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tracepoint_reader::RecoverySummary;
use tracepoint_reader::recover::{Progress, RecoveredProcess, recover_with, snapshot_with};

/// Completes the traces of a process that died
///
/// Makes a CTF trace from the rings of a process (`sessions/NAME/rings/PID-START` in the run directory), with the account of lost events.
/// It has every event that was committed before the process was killed. If there are several processes below DIR, each gets its own directory
/// in OUT. A process that is still running gives a snapshot, which is reported as incomplete. A process that was
/// killed before any of its events was switched on has nothing to recover: it is skipped, or is a failure (3) if it is the only one. DIR is
/// not changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl recover shop -o /tmp/shop && tracectl view /tmp/shop
  tracectl recover /run/user/1000/tracepoint/sessions/shop/rings/4242-777 -o /tmp/trace && tracectl view /tmp/trace
  tracectl recover --json /run/user/1000/tracepoint -o /tmp/all | jq '.processes[].lost'")]
pub(crate) struct Recover {
    /// The directory of a process, of a session, or the run directory; or the name of a session, as shown by `tracectl status`
    #[arg(value_name = "DIR|NAME")]
    directory: PathBuf,
    /// The output: a directory that is empty, or does not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write one JSON object: `path`, `output`, `complete`, `processes`, `failed` and `not_begun`
    #[arg(long)]
    json: bool,
    /// True if processes are expected to be running, so that an incomplete trace is a success
    #[arg(skip)]
    snapshot: bool,
}

const HEADING: Style = Style::new().bold();

impl Recover {
    /// A snapshot of a session whose processes are running.
    pub(crate) const fn snapshot(directory: PathBuf, output: PathBuf, json: bool) -> Self {
        Self { directory, output, json, snapshot: true }
    }

    pub(crate) fn run(&self) -> VerbResult {
        let directory = self.directory();
        let mut bar = Bar::new();
        let report = |progress: Progress| {
            let what = match progress.processes {
                1 => "recovering".to_owned(),
                processes => format!("recovering {} of {processes}", progress.process + 1),
            };
            bar.set(&what, progress.done, progress.total);
        };
        let recovered = if self.snapshot {
            snapshot_with(&directory, &self.output, report)?
        } else {
            recover_with(&directory, &self.output, report)?
        };
        drop(bar);
        if self.json {
            self.write_json(&directory, &recovered)?;
        } else {
            write_text(&recovered)?;
        }
        recovered.processes.iter().flat_map(|process| &process.notes).for_each(|note| message::note(note));
        for directory in &recovered.not_begun {
            let path = directory.display();
            message::note(&format!("{path}: no event of the process was switched on yet; nothing is lost"));
        }
        recovered.failed.iter().for_each(|process| message::error(&process.reason));
        let missing = recovered.missing();
        if (recovered.is_complete() && missing == 0) || (self.snapshot && recovered.failed.is_empty()) {
            return Ok(Outcome::Success);
        }
        let (path, output) = (directory.display(), self.output.display());
        if missing > 0 {
            let missing = message::counted(missing, "event");
            let peers: BTreeSet<_> = recovered.processes.iter().flat_map(|process| &process.peers).collect();
            let peers: Vec<_> = peers.into_iter().map(String::as_str).collect();
            let stream = match peers[..] {
                [] => String::new(),
                _ => format!("; they were on their way to {}, which has not acknowledged them", peers.join(", ")),
            };
            message::error(&format!(
                "{path}: {missing} were committed, and neither a ring nor an output of a sink has them{stream}"
            ));
        }
        message::error(&format!("{path}: not everything could be recovered; the rest is in {output}"));
        Ok(Outcome::Incomplete)
    }

    /// The directory, or the session directory if the name of a session was given. An existing directory of that name takes precedence.
    fn directory(&self) -> PathBuf {
        let name = self.directory.to_str().filter(|name| !name.contains('/') && !self.directory.exists());
        name.and_then(run_directory::of_session).unwrap_or_else(|| self.directory.clone())
    }

    fn write_json(&self, directory: &Path, recovered: &RecoverySummary) -> io::Result<()> {
        output::json(&json!({
            "path": directory.to_string_lossy(),
            "output": self.output.to_string_lossy(),
            "complete": recovered.is_complete(),
            "processes": recovered.processes,
            "failed": recovered.failed,
            "not_begun": recovered.not_begun,
        }))
    }
}

fn write_text(recovered: &RecoverySummary) -> io::Result<()> {
    let mut out = output::styled();
    for process in &recovered.processes {
        let RecoveredProcess { pid, session, output, .. } = process;
        writeln!(out, "{HEADING}process {pid}, session {session}{HEADING:#}: {}", output.display())?;
        counts(process).write(&mut out)?;
    }
    out.flush()
}

fn counts(process: &RecoveredProcess) -> Table {
    let mut table = Table::new("  ");
    let mut row = |label: &str, count: u64, what: &str| {
        table.row(Style::new(), [text(label), number(count), text(what)]);
    };
    row("kept", process.records, "events");
    for (count, what) in [
        (process.streams, "streams"),
        (process.packets_from_outputs, "packets that a sink had written"),
        (process.packets_from_rings, "packets from a ring"),
        (process.mended, "of them were still open"),
        (process.unchecked, "of them had not been taken, and have no checksum to compare"),
        (process.torn_places, "places where a packet could not be read"),
        (process.removed, "further events, in chunks that newer ones have replaced"),
        (process.acknowledged, "further events, which the peer of a stream has stored"),
    ] {
        if count > 0 {
            row("", count, what);
        }
    }
    if process.lost.is_empty() {
        row("lost", 0, "");
    }
    for (index, (reason, count)) in process.lost.iter().enumerate() {
        row(if index == 0 { "lost" } else { "" }, *count, reason);
    }
    table
}
