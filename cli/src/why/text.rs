//! The answer as text.

use crate::message::counted;
use crate::output;
use crate::statistics::duration;
use crate::table::{Table, number, text};
use anstyle::Style;
use jiff::Timestamp;
use std::io::{self, Write};
use tracepoint_export::{Cause, Division, FunctionSamples, Reasons, SlowSpan, SpanGroup, WaitKind};

/// Maximum number of functions of a span.
const MAX_FUNCTIONS: usize = 5;
const NAME: Style = Style::new().bold();

/// Writes the spans, after the groups, if there are any.
pub(super) fn write(reasons: &Reasons, by: Option<&str>) -> io::Result<()> {
    let mut out = output::styled();
    if let Some(field) = by {
        groups(&mut out, reasons, field)?;
    }
    if reasons.selected == 0 {
        writeln!(out, "no span is selected")?;
    }
    for slow in &reasons.spans {
        span(&mut out, slow)?;
    }
    let others = reasons.selected.saturating_sub(reasons.spans.len() as u64);
    if others > 0 {
        writeln!(out, "{} took less time", counted(others, "other span"))?;
    }
    out.flush()
}

fn groups(out: &mut impl Write, reasons: &Reasons, field: &str) -> io::Result<()> {
    let mut all: Vec<_> = reasons.groups.iter().collect();
    all.sort_by_key(|(_, group)| std::cmp::Reverse(group.nanoseconds));
    let has = |cause: &Cause| all.iter().any(|(_, group)| group.division.of(*cause) > 0);
    let causes: Vec<_> = Cause::ALL.into_iter().filter(has).collect();
    let mut table = Table::new("");
    let titles = causes.iter().map(|cause| number(cause.name().to_uppercase()));
    table.heading([text(field.to_uppercase()), number("SPANS"), number("TIME")].into_iter().chain(titles));
    for (value, SpanGroup { count, nanoseconds, division, .. }) in all {
        let times = causes.iter().map(|cause| match division.of(*cause) {
            0 => number("-"),
            time => number(duration(time)),
        });
        table.row(Style::new(), [text(value), number(count), number(duration(*nanoseconds))].into_iter().chain(times));
    }
    table.write(out)?;
    writeln!(out)
}

fn span(out: &mut impl Write, slow: &SlowSpan) -> io::Result<()> {
    let SlowSpan { name, nanoseconds, thread, process, fields, division, .. } = slow;
    let at = Timestamp::from_nanosecond(slow.begin_ns.into()).map(|at| at.to_string()).unwrap_or_default();
    let process = process.as_deref().unwrap_or("process");
    let open = if slow.is_open { ", not ended" } else { "" };
    let heading = format!(" {}{open}, from {at}, {process} [{thread}], {fields}", duration(*nanoseconds));
    writeln!(out, "{NAME}{}{NAME:#}{}", output::in_line(name), output::in_line(&heading))?;
    let mut table = Table::new("  ");
    for (cause, time) in division.parts() {
        table.row(Style::new(), [number(duration(time)), number(share(time, *nanoseconds)), text(cause.name())]);
        for wait in slow.waits.iter().filter(|wait| wait.cause == cause && !description(wait).is_empty()) {
            table.row(Style::new(), [number(""), number(""), text(format!("  {}", description(wait)))]);
        }
        if cause == Cause::Running {
            functions(&mut table, slow);
        }
    }
    if division.of(Cause::Running) == 0 {
        functions(&mut table, slow);
    }
    for (child, children) in &slow.children {
        let time = number(duration(children.nanoseconds));
        let what = format!("in {} {child}", counted(children.count, "child span"));
        table.row(Style::new(), [time, number(share(children.nanoseconds, *nanoseconds)), text(what)]);
    }
    table.write(out)?;
    for event in &slow.events {
        writeln!(out, "  event {}", output::in_line(event))?;
    }
    if slow.more_events > 0 {
        writeln!(out, "  {} inside", counted(slow.more_events, "further event"))?;
    }
    writeln!(out)
}

/// What the thread ran: the functions with the most samples.
fn functions(table: &mut Table, slow: &SlowSpan) {
    for FunctionSamples { function, samples, with_callees, .. } in slow.functions.iter().take(MAX_FUNCTIONS) {
        let with = if with_callees > samples { format!(", {with_callees} with its calls") } else { String::new() };
        let what = format!("  in {function}, {samples} of {}{with}", counted(slow.samples, "sample"));
        table.row(Style::new(), [number(""), number(""), text(what)]);
    }
}

/// How threads waited: in which system call, how often, and who ended it.
fn description(wait: &WaitKind) -> String {
    let call = wait.call.as_ref().map(|call| format!("in {call}"));
    let woken_by = wait.woken_by.as_ref().map(|thread| {
        let meanwhile = wait.meanwhile.as_ref().map(did).unwrap_or_default();
        format!("ended by {thread}{meanwhile}")
    });
    if call.is_none() && woken_by.is_none() {
        return String::new();
    }
    let times = format!("{}, {}", counted(wait.count, "time"), duration(wait.nanoseconds));
    call.into_iter().chain([times]).chain(woken_by).collect::<Vec<_>>().join(", ")
}

/// What a thread did meanwhile, the longest part first.
fn did(division: &Division) -> String {
    let mut parts: Vec<_> = division.parts().collect();
    parts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let parts: Vec<_> = parts.into_iter().map(|(cause, time)| format!("{} {}", cause.name(), duration(time))).collect();
    if parts.is_empty() { String::new() } else { format!(" (meanwhile: {})", parts.join(", ")) }
}

fn share(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}
