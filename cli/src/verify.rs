//! `tracectl verify`: checks the account of a trace.

use crate::counts::Counts;
use crate::failure::{Outcome, VerbResult};
use crate::output::in_line;
use crate::progress::Bar;
use crate::table::{self, Table};
use crate::{message, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use tracepoint_reader::verify::Check;
use tracepoint_reader::{Parallelism, Report, Trace, verify_with};

/// Checks that a trace accounts for every event
///
/// Compares the counters of the tracer (fired, recorded, lost by reason) with the counters of its rings and with the events that can be decoded,
/// and each packet with its checksum. The first line shows the outcome of all events, the second if all comparisons agree, followed by those that
/// do not. `recorded` counts the events in the trace: events lost after the ring are counted as lost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl verify /tmp/trace
  tracectl verify -v /tmp/trace
  tracectl verify --json /tmp/trace | jq '.checks[] | select(.pass | not)'")]
pub(crate) struct Verify {
    /// A directory with a CTF trace, or with several below it; or a dt file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Show every comparison, with the letter of its rule (docs/format-account.md), its subject, and both sides
    #[arg(short, long)]
    verbose: bool,
    /// Write one JSON object: `path`, `passed`, `events` (`fired`, `recorded`, `filtered`, `suppressed`, and `lost` by reason; null without an account), `unchecked` (packets without a checksum) and `checks`
    #[arg(long)]
    json: bool,
    /// Write only the comparisons that fail, with the letters of their rules: nothing if the account balances
    #[arg(long, conflicts_with = "verbose")]
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
        let counts = Counts::of(&Trace::open(&self.path)?)?;
        let (all, failed, passed) = (report.checks.len(), report.failures().count(), report.passed());
        if self.failures {
            report.checks.retain(|check| !check.pass);
        }
        let path = self.path.display();
        let verdict = if passed {
            let goes_on = if report.snapshots() > 0 { "; snapshot, the session goes on" } else { "" };
            format!("the account balances: {all} checks{goes_on}")
        } else if report.has_no_account() {
            format!(
                "{path}: there is no account to balance, because the trace is of another tracer; {} other checks passed",
                all - failed
            )
        } else {
            format!("{path}: the account does not balance: {failed} of {all} checks failed")
        };
        if self.json {
            output::json(&json!({
                "path": report.path.to_string_lossy(),
                "passed": passed,
                "events": counts,
                "unchecked": report.unchecked,
                "checks": report.checks,
            }))?;
        } else {
            self.write(&report, counts.as_ref(), &verdict)?;
        }
        if !passed && (self.json || self.failures) {
            message::error(&verdict);
        }
        if report.unchecked > 0 {
            message::note_unchecked(report.unchecked);
        }
        Ok(if passed { Outcome::Success } else { Outcome::Incomplete })
    }

    fn write(&self, report: &Report, counts: Option<&Counts>, verdict: &str) -> io::Result<()> {
        let mut out = output::styled();
        if !self.failures {
            let unknown = "no account says how many events fired";
            writeln!(out, "{}", counts.map_or_else(|| unknown.to_owned(), Counts::sentence))?;
            let style = if report.passed() { PASS } else { FAIL };
            writeln!(out, "{style}{}{style:#}", in_line(verdict))?;
        }
        let mut table = Table::new(if self.failures { "" } else { "  " });
        let has_letters = self.verbose || self.failures;
        for Check { rule, subject, compares, left, right, pass, .. } in &report.checks {
            if *pass && !self.verbose {
                continue;
            }
            let (style, result) = if *pass { (PASS, "ok    ") } else { (FAIL, "FAILED") };
            let letter = has_letters.then(|| table::text(rule));
            let comparison = table::text(format!("{subject}: {compares}: {left}, {right}"));
            table.row(style, [table::text(result)].into_iter().chain(letter).chain([comparison]));
        }
        table.write(&mut out)?;
        out.flush()
    }
}
