//! `view --clocks`: the clocks of traces, and how they were aligned.

use crate::failure::{Outcome, VerbResult};
use crate::output;
use crate::table::{Table, number, text};
use anstyle::Style;
use serde_json::json;
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;
use tracepoint_reader::metadata::EnvValue;
use tracepoint_reader::{ClockAlignment, Metadata, Trace};

/// Minimum correction, in nanoseconds, that is reported by default.
const FAR_OFF: u64 = 1_000_000_000;

fn host(metadata: &Metadata) -> &str {
    match metadata.env_value("hostname") {
        Some(EnvValue::String(host)) => host,
        _ => "",
    }
}

/// The path of a trace, its metadata, and the alignment of its clock.
type Clock<'a> = (Cow<'a, str>, &'a Metadata, Option<ClockAlignment>);

pub(super) fn all(trace: &Trace) -> impl Iterator<Item = Clock<'_>> {
    let alignments = trace.alignments().map(|(_, alignment)| alignment);
    trace.metadata().zip(alignments).map(|((path, metadata), alignment)| (path.to_string_lossy(), metadata, alignment))
}

/// Writes the clocks in place of the events.
pub(super) fn write<'a>(clocks: impl Iterator<Item = Clock<'a>>, is_json: bool) -> VerbResult {
    if is_json {
        let mut out = output::raw();
        for (place, metadata, alignment) in clocks {
            let line = json!({
                "type": "clock",
                "trace": place,
                "host": host(metadata),
                "clock": metadata.clocks().first().map(|clock| &clock.name),
                "aligned": alignment.is_some(),
                "offset_ns": alignment.map(|alignment| alignment.offset),
                "bound_ns": alignment.map(|alignment| alignment.bound),
                "correction_ns": alignment.map(|alignment| alignment.correction),
            });
            output::json_line(&mut out, &line)?;
        }
        out.flush()?;
        return Ok(Outcome::Success);
    }
    let mut table = Table::new("");
    table.heading([text("HOST"), number("CORRECTION"), number("ERROR AT MOST"), text("TRACE")]);
    for (place, metadata, alignment) in clocks {
        let [correction, bound] = match alignment {
            Some(alignment) => [signed(alignment.correction), signed(alignment.bound.try_into().unwrap_or(i64::MAX))],
            None => ["none".to_owned(), "unknown".to_owned()],
        };
        let bound = bound.trim_start_matches('+');
        table.row(Style::new(), [text(host(metadata)), number(correction), number(bound), text(place)]);
    }
    let mut out = output::styled();
    table.write(&mut out)?;
    out.flush()?;
    Ok(Outcome::Success)
}

/// Notes about clocks that are far off: host, and correction.
pub(super) fn far_off(trace: &Trace) -> Vec<String> {
    let aligned = all(trace).filter_map(|(_, metadata, alignment)| Some((metadata, alignment?)));
    let mut notes: Vec<_> = aligned.filter_map(|(metadata, alignment)| far_off_note(metadata, alignment)).collect();
    notes.dedup();
    notes
}

/// The note about one trace.
pub(super) fn far_off_note(metadata: &Metadata, alignment: ClockAlignment) -> Option<String> {
    let correction = alignment.correction;
    let direction = if correction > 0 { "behind" } else { "ahead of" };
    let by = signed(correction.saturating_abs());
    (correction.unsigned_abs() >= FAR_OFF).then(|| {
        format!(
            "the clock of {} is {} {direction} that of the collector; its events are shown at the time of the collector (`view --clocks`)",
            host(metadata),
            by.trim_start_matches('+'),
        )
    })
}

/// The warning if events are sent to a collector whose clock is `ahead` nanoseconds ahead of this host's and that is far off.
pub(crate) fn sender_note(to: &str, ahead: i64) -> Option<String> {
    let direction = if ahead > 0 { "behind" } else { "ahead of" };
    let by = signed(ahead.saturating_abs());
    (ahead.unsigned_abs() >= FAR_OFF).then(|| {
        format!(
            "the clock of this host is {} {direction} that of the collector at {to}; `tracectl view` shows its events at the collector's time",
            by.trim_start_matches('+')
        )
    })
}

/// `+1s 500ms`.
fn signed(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "+" };
    // Finer digits would exceed the precision of the measurement.
    let time = Duration::from_micros(nanoseconds.unsigned_abs().div_ceil(1000));
    format!("{sign}{}", humantime::format_duration(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_signs() {
        assert_eq!(signed(1_500_000_000), "+1s 500ms");
        assert_eq!(signed(-2_001), "-3us");
        assert_eq!(signed(0), "+0s");
    }

    #[test]
    fn a_sender_tells_that_its_clock_is_far_off() {
        for (ahead, part) in [(3_600_000_000_000, "is 1h behind that of"), (-2_000_000_000, "is 2s ahead of that of")] {
            assert!(sender_note("vm:1", ahead).is_some_and(|note| note.contains(part)), "{ahead}");
        }
        assert_eq!(sender_note("vm:1", 999_999_999), None);
    }
}
