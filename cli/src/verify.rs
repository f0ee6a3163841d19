//! `tracectl verify`: checks the account of a trace.

use crate::failure::{EXIT_CODES, Outcome, VerbResult};
use crate::progress::Bar;
use crate::table::{self, Table};
use crate::{message, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use tracepoint_reader::verify::Check;
use tracepoint_reader::{Parallelism, Report, verify_with};

/// Checks that a trace accounts for every event
///
/// Compares the counters of the tracer (fired, recorded, lost by reason) with those of its rings and with the events that can be decoded,
/// and each packet with its checksum. Each line is one comparison: its rule (docs/format-account.md), its subject, and both sides.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl verify /tmp/trace
  tracectl verify --failures /tmp/trace
  tracectl verify --json /tmp/trace | jq '.checks[] | select(.pass | not)'

{EXIT_CODES}"))]
pub(crate) struct Verify {
    /// A directory with a CTF trace, or with several below it; or a dt file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Write one JSON object: `path`, `passed`, `unchecked` (packets without a checksum) and `checks`
    #[arg(long)]
    json: bool,
    /// Show only the comparisons that fail
    #[arg(long)]
    failures: bool,
}

const PASS: Style = AnsiColor::Green.on_default();
const FAIL: Style = AnsiColor::Red.on_default().bold();

impl Verify {
    pub(crate) fn run(&self) -> VerbResult {
        let mut bar = Bar::new();
        let mut report =
            verify_with(&self.path, Parallelism::default(), &mut |done, all| bar.set("reading", done, all))?;
        drop(bar);
        let (all, failed, passed) = (report.checks.len(), report.failures().count(), report.passed());
        if self.failures {
            report.checks.retain(|check| !check.pass);
        }
        if self.json {
            output::json(&json!({
                "path": report.path.to_string_lossy(),
                "passed": passed,
                "unchecked": report.unchecked,
                "checks": report.checks,
            }))?;
        } else {
            write_text(&report)?;
        }
        if report.unchecked > 0 {
            message::note_unchecked(report.unchecked);
        }
        if !passed {
            let path = self.path.display();
            message::error(&format!("{path}: the account does not balance: {failed} of {all} checks failed"));
            return Ok(Outcome::Incomplete);
        }
        if !self.json {
            let goes_on = if report.snapshots() > 0 { "; snapshot, the session goes on" } else { "" };
            message::summary(&format!("the account balances: {all} checks{goes_on}"));
        }
        Ok(Outcome::Success)
    }
}

fn write_text(report: &Report) -> io::Result<()> {
    let mut table = Table::new("");
    for Check { rule, subject, compares, left, right, pass, .. } in &report.checks {
        let (style, result) = if *pass { (PASS, "ok    ") } else { (FAIL, "FAILED") };
        let comparison = format!("{subject}: {compares}: {left}, {right}");
        table.row(style, [table::text(result), table::text(rule), table::text(comparison)]);
    }
    let mut out = output::styled();
    table.write(&mut out)?;
    out.flush()
}
