//! Traces whose counts are not final, because the session is still running or the program was killed.

use std::collections::HashSet;

use datafusion::common::ScalarValue;

use super::rows::Rows;
use super::{Channels, Read, Span, times_of_days};
use crate::error::QueryError;
use crate::planner::Planner;

/// Number of such traces that may have events in the data read.
pub(super) async fn not_final(planner: &Planner, reads: &[Read], channels: &Channels) -> Result<u64, QueryError> {
    let sql = "SELECT trace, day, host, session FROM account WHERE scope = 'trace' AND what = 'complete' AND count = 0";
    let (mut rows, mut open) = (Rows::of(planner, sql).await?, HashSet::new());
    while let Some(batch) = rows.next().await? {
        for row in 0..batch.len() {
            let trace = batch.text("trace", row);
            let first = batch.day("day", row);
            let last = match &trace {
                Some(trace) => planner.catalog.last_day(trace, first).await,
                None => None,
            };
            let span = Span {
                days: (ScalarValue::Date32(first), ScalarValue::Date32(last)),
                times: times_of_days(first, last),
                host: batch.text("host", row),
                session: batch.text("session", row),
                stream: None,
            };
            let of_trace = format!("{}/", trace.as_deref().unwrap_or("-"));
            let events = channels.iter().filter(|(channel, _)| channel.starts_with(&of_trace));
            let events: HashSet<_> = events.flat_map(|(_, events)| events.iter().cloned()).collect();
            for read in reads.iter().filter(|read| read.has_any(Some(&events))) {
                if read.may_match(std::slice::from_ref(&span))? == [true] {
                    open.insert((trace.clone(), span.host.clone(), span.session.clone()));
                }
            }
        }
    }
    Ok(open.len() as u64)
}
