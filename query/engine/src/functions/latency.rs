//! `latency('begin', 'end', 'key', …)`: pairs of events, and the time between them.

use super::arguments::Arguments;
use super::quoted;
use crate::catalog::Catalog;
use crate::error::QueryError;

pub(super) const NAME: &str = "latency";

const USAGE: &str =
    "latency('shop:asked', 'shop:answered', 'id'), with further columns of the key, and `since => time, until => time`";

/// Further columns of the key, which identify the origin of a pair.
const ORIGIN: [&str; 3] = ["host", "pid", "tid"];

/// Pairs each row of `begin` with the next row that has the same key, if that row is one of `end`. The query is one window over both tables: it takes
/// no more memory than sorting, and stays exact if keys are reused.
pub(super) fn query(arguments: &Arguments<'_>, catalog: &Catalog) -> Result<String, QueryError> {
    let (texts, times) = (arguments.texts(&arguments.positional(), USAGE)?, arguments.times(USAGE)?);
    let [begin, end, keys @ ..] = &texts[..] else {
        return Err(arguments.wrong("the two events are missing", USAGE));
    };
    if keys.is_empty() {
        return Err(arguments.wrong("the column by which the events belong together is missing", USAGE));
    }
    if begin == end {
        return Err(arguments.wrong(
            "the two events are the same; the time between events of one kind is `ts - lag(ts) OVER (…)`",
            USAGE,
        ));
    }
    if let Some(name) = [begin, end].into_iter().find(|name| !catalog.has(name)) {
        return Err(catalog.unknown(name));
    }
    let origin = ORIGIN.into_iter().filter(|name| !keys.iter().any(|key| key == name));
    let origin = origin.fold(String::new(), |text, name| format!("{text}, {name}"));
    let keys: Vec<_> = keys.iter().map(|key| quoted(key)).collect();
    let known = keys.iter().map(|key| format!("{key} IS NOT NULL"));
    let since = times.since.map(|time| format!("ts >= {time}"));
    let until = times.until.map(|time| format!("ts < {time}"));
    let condition = known.chain(since).chain(until).collect::<Vec<_>>().join(" AND ");
    let keys = keys.join(", ");
    let rows = |kind: u8, event: &str| {
        let table = quoted(event);
        format!("SELECT {kind} AS kind, ts, stream, seq{origin}, {keys} FROM {table} WHERE {condition}")
    };
    let (begins, ends) = (rows(0, begin), rows(1, end));
    Ok(format!(
        "SELECT {keys},
            CASE WHEN kind = 0 THEN ts END AS begin_ts,
            CASE WHEN kind = 1 THEN ts WHEN next_kind = 1 THEN next_ts END AS end_ts,
            CASE WHEN kind = 0 AND next_kind = 1 THEN CAST(next_ts AS BIGINT) - CAST(ts AS BIGINT) END AS nanos{origin},
            CASE WHEN kind = 0 THEN stream END AS begin_stream, CASE WHEN kind = 0 THEN seq END AS begin_seq,
            CASE WHEN kind = 1 THEN stream WHEN next_kind = 1 THEN next_stream END AS end_stream,
            CASE WHEN kind = 1 THEN seq WHEN next_kind = 1 THEN next_seq END AS end_seq
        FROM (
            SELECT *, lead(kind) OVER same AS next_kind, lead(ts) OVER same AS next_ts, lead(stream) OVER same AS next_stream,
                lead(seq) OVER same AS next_seq, lag(kind) OVER same AS previous_kind
            FROM ({begins} UNION ALL {ends}) AS both_events
            WINDOW same AS (PARTITION BY {keys} ORDER BY ts, kind, stream, seq)
        ) AS neighbours
        WHERE kind = 0 OR previous_kind IS DISTINCT FROM 0"
    ))
}
