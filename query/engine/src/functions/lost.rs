//! `lost('event or stream', since, until)`: the number of lost events, as one row.

use super::arguments::Arguments;
use super::literal;
use crate::catalog::{ACCOUNT, Catalog, LOSSES};
use crate::error::QueryError;

pub(super) const NAME: &str = "lost";

const USAGE: &str = "lost('shop:answered', '2026-11-23 16:20:00Z', '2026-11-23 16:30:00Z'), with an event or a stream, without the times for all of the store";

/// Unsigned 0, the same type as the sum.
const ZERO: &str = "CAST(0 AS BIGINT UNSIGNED)";

/// Losses are known per stream, whose buffer holds several kinds of events. So the losses of an event are the losses of all channels that record it.
pub(super) fn query(arguments: &Arguments<'_>, catalog: &Catalog) -> Result<String, QueryError> {
    let (positional, mut times) = (arguments.positional(), arguments.times(USAGE)?);
    let name = match &arguments.texts(&positional[..positional.len().min(1)], USAGE)?[..] {
        [name] => name.clone(),
        _ => return Err(arguments.wrong("the event or stream is missing", USAGE)),
    };
    if positional.len() > 3 {
        return Err(arguments.wrong("there are too many arguments", USAGE));
    }
    times.since = times.since.or(positional.get(1).map(ToString::to_string));
    times.until = times.until.or(positional.get(2).map(ToString::to_string));
    let is_stream = name.split('/').count() == 3 && !catalog.has(&name);
    let of_streams = if is_stream {
        format!("stream = {}", literal(&name))
    } else if catalog.has(&name) {
        let names = catalog.versions(&name).into_iter().map(literal).collect::<Vec<_>>().join(", ");
        format!(
            "split_part(stream, '/', 1) || '/' || split_part(stream, '/', 2) IN (
                SELECT coalesce(trace, '-') || '/' || CAST(channel AS VARCHAR) FROM {ACCOUNT}
                WHERE scope = 'event' AND name IN ({names}))"
        )
    } else {
        return Err(catalog.unknown(&name));
    };
    let since = times.since.map(|time| format!(" AND (to_ts >= {time} OR to_ts IS NULL)")).unwrap_or_default();
    let until = times.until.map(|time| format!(" AND (from_ts < {time} OR from_ts IS NULL)")).unwrap_or_default();
    Ok(format!(
        "SELECT CASE WHEN count(*) = count(events) THEN coalesce(sum(events), {ZERO}) END AS events,
            coalesce(sum(events), {ZERO}) AS at_least, count(*) AS losses
        FROM {LOSSES} WHERE (stream IS NULL OR {of_streams}){since}{until}"
    ))
}
