//! `tracectl verify`: whether the books of a trace balance.

use crate::failure::{self, Outcome};
use crate::{Ended, output};
use anstyle::{AnsiColor, Style};
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;
use tracepoint_reader::verify::Check;
use tracepoint_reader::{Report, verify};

/// Checks that nothing is missing that the trace's own account does not tell
///
/// Compares, hop by hop, what the tracer counted (fired, recorded, lost by reason) with what its rings counted and with what
/// can be decoded. Each line is one comparison: the rule's letter, what it was applied to, the two sides.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl verify /tmp/trace
  tracectl verify --failures /tmp/trace
  tracectl verify --json /tmp/trace | jq '.checks[] | select(.pass | not)'

{}", failure::EXIT_CODES))]
pub(crate) struct Verify {
    /// A directory with a CTF trace, or with several below it; or a dt file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Write one JSON object: `path`, `passed` and `checks`
    #[arg(long)]
    json: bool,
    /// Show only the comparisons that fail
    #[arg(long)]
    failures: bool,
}

const PASS: Style = AnsiColor::Green.on_default();
const FAIL: Style = AnsiColor::Red.on_default().bold();

impl Verify {
    pub(crate) fn run(&self) -> Ended {
        let mut report = verify(&self.path)?;
        let (all, failed) = (report.checks.len(), report.failures().count());
        let passed = report.passed();
        if self.failures {
            report.checks.retain(|check| !check.pass);
        }
        if self.json {
            Self::write_json(&report, passed)?;
        } else {
            Self::write_text(&report)?;
        }
        if passed {
            if !self.json {
                anstream::eprintln!("the books balance: {all} checks");
            }
            return Ok(Outcome::Well);
        }
        let path = self.path.display();
        failure::say_error(&format!("{path}: the books do not balance: {failed} of {all} checks failed"));
        Ok(Outcome::Wanting)
    }

    fn write_text(report: &Report) -> io::Result<()> {
        let mut out = output::coloured();
        for Check { rule, subject, compares, left, right, pass, .. } in &report.checks {
            let (style, word) = if *pass { (PASS, "ok    ") } else { (FAIL, "FAILED") };
            writeln!(out, "{style}{word}{style:#}  {rule}  {subject}: {compares}: {left}, {right}")?;
        }
        out.flush()
    }

    fn write_json(report: &Report, passed: bool) -> io::Result<()> {
        let mut out = output::raw();
        let object =
            serde_json::json!({ "path": report.path.to_string_lossy(), "passed": passed, "checks": report.checks });
        serde_json::to_writer(&mut out, &object)?;
        writeln!(out)?;
        out.flush()
    }
}
