//! Rings of ended sessions, for `status`, `list` and `clean`.

use crate::table::{Table, number, text};
use crate::units;
use anstyle::Style;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;
use tracepoint_controller::Leftover;

const HEADING: Style = Style::new().bold();

/// Writes a table, and the commands that apply to these rings.
pub(crate) fn write(out: &mut impl Write, leftovers: &[Leftover]) -> io::Result<()> {
    let Some(first) = leftovers.first() else { return Ok(()) };
    let sum = leftovers.iter().map(|leftover| leftover.bytes).sum();
    writeln!(out, "{HEADING}rings of sessions that are over{HEADING:#}: {}, kept for recovery", units::bytes(sum))?;
    table(leftovers).write(out)?;
    writeln!(out, "  recover them: tracectl recover {} -o OUT", first.path.display())?;
    writeln!(out, "  remove them:  tracectl clean --purge")
}

pub(crate) fn table(leftovers: &[Leftover]) -> Table {
    let mut table = Table::new("  ");
    table.heading([text("SESSION"), number("PROCESSES"), number("SIZE"), text("LEFT")]);
    for leftover in leftovers {
        let age = Duration::from_secs(leftover.age().as_secs());
        let left = format!("{} ago", humantime::format_duration(age));
        let size = number(units::bytes(leftover.bytes));
        table.row(Style::new(), [text(&leftover.name), number(leftover.processes), size, text(left)]);
    }
    table
}

pub(crate) fn as_json(leftover: &Leftover) -> Value {
    json!({
        "name": leftover.name,
        "path": leftover.path.to_string_lossy(),
        "processes": leftover.processes,
        "bytes": leftover.bytes,
        "age_seconds": leftover.age().as_secs(),
    })
}
