//! `tracectl view`: what was recorded, as text.

use crate::failure::{self, Failure, Outcome};
use crate::output::counted;
use crate::{Ended, output};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_reader::text::{TextOptions, TextWriter};
use tracepoint_reader::{DtSummary, DtTrace, Item, Trace, json};

/// Shows the events of a trace, merged by time, one per line, and its losses where they happened
///
/// Reads CTF 1.8 directories, those of other tracers too, and dt files of sessions. Several traces below PATH come out as one, and chunks
/// of a trace as the whole. Lines of
/// events are those of `babeltrace2`. Damage is told on the standard error, and what a dt file does not hold any more; what is readable
/// comes out all the same.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl view /tmp/trace
  tracectl view /var/tmp/shop.dt | tail
  tracectl view /tmp/trace/chunk-000003 /tmp/trace/chunk-000004
  tracectl view --utc --date /tmp/trace | less
  tracectl view --json /tmp/trace | jq 'select(.name == \"treehash:error\").fields'

{}", failure::EXIT_CODES))]
pub(crate) struct View {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several of them are shown as one
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Write one JSON object per line: events, losses and damage, told apart by `type`
    #[arg(long)]
    json: bool,
    /// Show times in UTC instead of the local time zone
    #[arg(long, conflicts_with = "json")]
    utc: bool,
    /// Show the date before each time
    #[arg(long, conflicts_with = "json")]
    date: bool,
}

impl View {
    pub(crate) fn run(&self) -> Ended {
        let trace = Trace::open_all(&self.paths)?;
        let mut out = output::raw();
        let mut text = TextWriter::new(self.options());
        let mut outcome = Outcome::Well;
        for item in trace.items() {
            if let Item::Damage(damage) = &item {
                // What was read before the damage is shown before it.
                out.flush()?;
                failure::say_error(&format!("{damage}; what follows in this stream is not shown"));
                outcome = Outcome::Wanting;
            }
            match (self.json, &item) {
                (true, _) => json::write_item(&mut out, &item)?,
                (false, Item::Damage(_)) => {}
                (false, _) => text.write_item(&mut out, &item)?,
            }
        }
        out.flush()?;
        trace.dt_files().try_for_each(tell)?;
        Ok(outcome)
    }

    fn options(&self) -> TextOptions {
        let mut options = TextOptions::default();
        options.utc = self.utc;
        options.date = self.date;
        options
    }
}

/// What a dt file holds of its trace, and what it lacks.
fn tell(file: &DtTrace) -> Result<(), Failure> {
    let summary = file.summary()?;
    let DtSummary { slots, packets, streams, gone_packets, gone_events, .. } = summary;
    let path = file.path().display();
    let (packets, streams, slots) = (counted(packets, "packet"), counted(streams, "stream"), counted(slots, "slot"));
    let mut parts = vec![format!("{path}: {packets} of {streams} in {slots}")];
    if gone_packets > 0 {
        let (packets, events) = (counted(gone_packets, "packet"), counted(gone_events, "event"));
        parts.push(format!("{packets} before that, with {events}, overwritten or not written"));
    }
    let lost: Vec<_> = summary.lost.iter().map(|(reason, count)| format!("{count} ({reason})")).collect();
    if !lost.is_empty() {
        parts.push(format!("events lost before that: {}", lost.join(", ")));
    }
    if !summary.complete {
        parts.push("the session runs still, or was killed: its account is not complete".to_owned());
    }
    output::note(&parts.join("; "));
    if file.has_changed()? {
        output::note(&format!("{path} was written to while it was read: what was overwritten meanwhile is not shown"));
    }
    Ok(())
}
