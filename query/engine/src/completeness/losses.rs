//! Losses in the data that a query reads.

use datafusion::common::ScalarValue;

use super::rows::{Batch, Rows};
use super::{Channels, Read, Span};
use crate::error::QueryError;
use crate::planner::Planner;

#[derive(Debug, Default)]
pub(super) struct LossCounts {
    /// Lost events, as far as their number is known.
    events: u64,
    /// Number of losses with an unknown number of events.
    unknown: u64,
    /// Number of damaged parts of traces.
    pub(super) damage: u64,
}

impl LossCounts {
    pub(super) async fn count(planner: &Planner, reads: &[Read], channels: &Channels) -> Result<Self, QueryError> {
        let sql = "SELECT day, host, session, from_ts, to_ts, stream, what, events FROM losses";
        let (mut rows, mut lost) = (Rows::of(planner, sql).await?, Self::default());
        while let Some(batch) = rows.next().await? {
            let spans: Vec<_> = (0..batch.len()).map(|row| span(&batch, row)).collect();
            let mut counts = vec![false; spans.len()];
            for read in reads {
                let may_match = read.may_match(&spans)?;
                for ((counts, span), may_match) in counts.iter_mut().zip(&spans).zip(may_match) {
                    *counts |= may_match && read.has_any(events_of(span, channels));
                }
            }
            for (row, _) in counts.into_iter().enumerate().filter(|(_, counts)| *counts) {
                lost.add(&batch, row);
            }
        }
        Ok(lost)
    }

    fn add(&mut self, batch: &Batch, row: usize) {
        match (batch.text("what", row).as_deref(), batch.number("events", row)) {
            (Some("damage"), _) => self.damage += 1,
            (_, Some(events)) => self.events += events,
            (_, None) => self.unknown += 1,
        }
    }

    /// Describes the losses in a sentence; `None` if nothing was lost.
    pub(super) fn sentence(&self, tables: &str) -> Option<String> {
        let Self { events, unknown, damage } = *self;
        let counted = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let lost = match (events, unknown) {
            (0, 0) => None,
            (0, _) => Some("an unknown number of events was lost".to_owned()),
            (1, 0) => Some("1 event was lost".to_owned()),
            (_, 0) => Some(format!("{events} events were lost")),
            _ => Some(format!("{} or more were lost", counted(events, "event"))),
        };
        let are = if damage == 1 { "is" } else { "are" };
        let damaged = (damage > 0).then(|| format!("{} of the traces {are} damaged", counted(damage, "part")));
        let what = match (lost, damaged) {
            (None, None) => return None,
            (Some(lost), Some(damaged)) => format!("{lost} and {damaged}"),
            (lost, damaged) => lost.or(damaged)?,
        };
        Some(format!("{what} in the channels of {tables}, in this time: see the table losses"))
    }
}

/// The time range of a loss, and its place as far as known.
fn span(batch: &Batch, row: usize) -> Span {
    let time = |name| batch.time(name, row);
    let (from, to) = (time("from_ts"), time("to_ts"));
    let as_time = |time| ScalarValue::TimestampNanosecond(time, Some("UTC".into()));
    // The partition's day is the day of the end.
    let first = from.and_then(|from| i32::try_from(from.div_euclid(crate::table::DAY_NS)).ok());
    Span {
        days: (ScalarValue::Date32(first), ScalarValue::Date32(batch.day("day", row))),
        times: (as_time(from), as_time(to)),
        host: batch.text("host", row),
        session: batch.text("session", row),
        stream: batch.text("stream", row),
    }
}

/// The events in the channel of a loss, if known.
fn events_of<'a>(span: &Span, channels: &'a Channels) -> Option<&'a std::collections::HashSet<String>> {
    let stream = span.stream.as_deref()?;
    channels.get(stream.rsplit_once('/')?.0)
}
