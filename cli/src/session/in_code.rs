//! Sessions that programs started in code, for `status`, `list` and `snapshot`.

use crate::table::{Table, number, text};
use crate::units;
use anstyle::Style;
use serde_json::{Value, json};
use std::io::{self, Write};
use tracepoint_controller::SessionInCode;
use tracepoint_session_spec::SessionSpec;

const HEADING: Style = Style::new().bold();

/// Writes a table, and the command that reads these sessions.
pub(crate) fn write(out: &mut impl Write, sessions: &[SessionInCode]) -> io::Result<()> {
    let Some(first) = sessions.first() else { return Ok(()) };
    writeln!(out, "{HEADING}sessions in the code of programs{HEADING:#}")?;
    let mut table = Table::new("  ");
    table.heading([text("SESSION"), text("PROCESS"), number("RINGS"), text("EVENTS")]);
    for session in sessions {
        let process = format!("{} {}", session.process.pid, session.program);
        let rules: Vec<_> =
            session.spec.iter().flat_map(|spec| spec.rules().flatten()).map(ToString::to_string).collect();
        let size = number(units::bytes(session.bytes));
        table.row(Style::new(), [text(&session.name), text(process.trim_end()), size, text(rules.join(", "))]);
    }
    table.write(out)?;
    writeln!(out, "  take what their rings hold: tracectl snapshot {} -o OUT", first.name)
}

pub(crate) fn as_json(session: &SessionInCode) -> Value {
    let rules: Vec<_> = session.spec.iter().flat_map(|spec| spec.rules().flatten()).collect();
    json!({
        "name": session.name,
        "process": session.process,
        "pid": session.process.pid,
        "program": session.program,
        "path": session.path.to_string_lossy(),
        "rings": session.bytes,
        "rules": rules,
        "channels": session.spec.iter().flat_map(SessionSpec::all_channels).collect::<Vec<_>>(),
        "sinks": session.spec.as_ref().map(|spec| &spec.sinks),
    })
}
