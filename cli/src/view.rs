//! `tracectl view`: the events of a trace as text.

use crate::failure::{EXIT_CODES, Failure, Outcome, VerbResult};
use crate::message::{self, counted};
use crate::output;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_reader::json::write_item;
use tracepoint_reader::text::{TextOptions, TextWriter};
use tracepoint_reader::{DtSummary, DtTrace, Item, Trace};

/// Shows the events of a trace, merged by time, one per line, and losses where they happened
///
/// Reads CTF 1.8 directories, also those of other tracers, and dt files of sessions. Several traces below PATH are merged into one, and the
/// chunks of a trace into the whole. Events are printed as `babeltrace2` prints them. Damage, and the packets that a dt file no longer holds, are
/// reported on the standard error; the rest is shown.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl view /tmp/trace
  tracectl view /var/tmp/shop.dt | tail
  tracectl view /tmp/trace/chunk-000003 /tmp/trace/chunk-000004
  tracectl view --utc --date /tmp/trace | less
  tracectl view --json /tmp/trace | jq 'select(.name == \"treehash:error\").fields'

{EXIT_CODES}"))]
pub(crate) struct View {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged into one trace
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Write one JSON object per line: events, losses, damage, and the number of packets without a checksum; `type` distinguishes them
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
    pub(crate) fn run(&self) -> VerbResult {
        let trace = Trace::open_all(&self.paths)?;
        let mut out = output::raw();
        let mut text = TextWriter::new(self.options());
        let mut outcome = Outcome::Success;
        let mut items = trace.items();
        for item in items.by_ref() {
            if let Item::Damage(damage) = &item {
                // Events before the damage appear before its message.
                out.flush()?;
                message::error(&format!("{damage}; not shown"));
                outcome = Outcome::Incomplete;
            }
            match (self.json, &item) {
                (true, _) => write_item(&mut out, &item)?,
                (false, Item::Damage(_)) => {}
                (false, _) => text.write_item(&mut out, &item)?,
            }
        }
        let unchecked = items.unchecked();
        if self.json && unchecked > 0 {
            writeln!(out, "{}", json!({ "type": "unchecked", "packets": unchecked }))?;
        }
        out.flush()?;
        if unchecked > 0 {
            message::note_unchecked(unchecked);
        }
        trace.dt_files().try_for_each(note_contents)?;
        Ok(outcome)
    }

    fn options(&self) -> TextOptions {
        let mut options = TextOptions::default();
        options.utc = self.utc;
        options.date = self.date;
        options
    }
}

/// Prints which part of its trace a dt file holds.
fn note_contents(file: &DtTrace) -> Result<(), Failure> {
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
        parts.push("the session is still running, or was killed, so that its account is incomplete".to_owned());
    }
    message::note(&parts.join("; "));
    if file.has_changed()? {
        message::note(&format!("{path} changed while it was read; packets that were overwritten then are not shown"));
    }
    Ok(())
}
