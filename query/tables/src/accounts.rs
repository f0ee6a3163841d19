//! The account table: counts by the tracer, and counts of the events in the trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracepoint_reader::account::{Account, EventAccount, StreamAccount, uuid_text};
use tracepoint_reader::metadata::{EnvValue, EventClass, Metadata, StreamClass};
use tracepoint_reader::{Trace, chunk_number};

use crate::place::HostSession;
use crate::records::AccountRow;
use crate::streams::{StreamState, pid, place, stream_name};

/// The same trace is given twice, for example as a directory and as a dt file, and would be counted twice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} and {} are the same trace, which would be counted twice; name one of them", first.display(), second.display())]
pub struct GivenTwice {
    /// The first place.
    pub first: PathBuf,
    /// The second place.
    pub second: PathBuf,
}

/// The identities of traces: UUIDs, each with the number of its chunk if it has one. Chunks of other tracers have no numbers.
///
/// # Errors
/// If a trace of this tracer is given twice.
pub fn identities(trace: &Trace) -> Result<Vec<(String, &Metadata)>, GivenTwice> {
    let (mut identities, mut paths) = (Vec::new(), HashMap::new());
    for (path, metadata) in trace.metadata() {
        let Some(uuid) = metadata.uuid().map(uuid_text) else { continue };
        let identity = chunk_number(path).map_or(uuid.clone(), |number| format!("{uuid}.{number}"));
        let is_own = matches!(metadata.env_value("tracer_name"), Some(EnvValue::String(name)) if name == "tracepoint");
        if let Some(first) = paths.insert(identity.clone(), path).filter(|_| is_own) {
            return Err(GivenTwice { first: first.to_owned(), second: path.to_owned() });
        }
        identities.push((identity, metadata));
    }
    Ok(identities)
}

/// Returns the table name of an event.
pub type TableNames<'a, E> = &'a mut dyn FnMut(&Arc<EventClass>, &Arc<StreamClass>) -> Result<String, E>;

/// A stream that has been read, and its number of events by name.
#[derive(Debug)]
pub struct StreamCounts<'a> {
    /// The stream.
    pub state: &'a StreamState,
    /// Table names of events, and the number of events.
    pub events: Vec<(&'a str, u64)>,
}

/// The rows of the account in one partition.
#[derive(Debug)]
pub struct AccountPart {
    /// The host and the session.
    pub place: HostSession,
    /// The last day of the trace.
    pub day: Option<i64>,
    /// The rows.
    pub rows: Vec<AccountRow>,
}

/// The last day with an event or loss of a trace.
pub fn last_day<'a>(streams: impl Iterator<Item = &'a StreamState>, metadata: &Metadata) -> Option<i64> {
    streams.filter(|state| state.stream.metadata.uuid() == metadata.uuid()).filter_map(|state| state.last_day).max()
}

/// The account of traces that have been read completely. `table` returns the table name of an event.
///
/// # Errors
/// The errors of `table`.
pub fn account_rows<E>(
    trace: &Trace,
    streams: &[StreamCounts<'_>],
    table: TableNames<'_, E>,
) -> Result<Vec<AccountPart>, E> {
    let part = |of_trace: TraceAccount<'_>| {
        Ok(AccountPart {
            place: place(of_trace.metadata, Some(of_trace.path)),
            day: last_day(streams.iter().map(|counts| counts.state), of_trace.metadata),
            rows: rows_of(&of_trace, streams, table)?,
        })
    };
    trace_accounts(trace).into_iter().map(part).collect()
}

/// The account of a part of a trace; `None` if it is missing or unreadable.
fn account(trace: &Trace, path: &Path) -> Option<Account> {
    match trace.dt_files().find(|file| file.path() == path) {
        Some(file) => file.account().ok().flatten(),
        None => Account::open(path).ok(),
    }
}

/// A trace, with the latest account of its parts.
struct TraceAccount<'a> {
    path: &'a Path,
    metadata: &'a Metadata,
    account: Option<Account>,
}

fn trace_accounts(trace: &Trace) -> Vec<TraceAccount<'_>> {
    let mut trace_accounts: BTreeMap<_, TraceAccount<'_>> = BTreeMap::new();
    for (path, metadata) in trace.metadata() {
        let new = TraceAccount { path, metadata, account: account(trace, path) };
        // Chunks come in any order; the last one has the total counts.
        let chunk = |of_trace: &TraceAccount<'_>| {
            of_trace.account.as_ref().and_then(|account| Some(account.chunk.as_ref()?.number))
        };
        let key = (metadata.uuid(), metadata.uuid().is_none().then_some(path));
        match trace_accounts.get(&key) {
            Some(known) if chunk(known) >= chunk(&new) => {}
            _ => _ = trace_accounts.insert(key, new),
        }
    }
    trace_accounts.into_values().collect()
}

/// The events that the accounts name, in the same order.
pub(crate) fn declared_by_accounts(trace: &Trace) -> Vec<(Arc<EventClass>, Arc<StreamClass>)> {
    let mut declared = Vec::new();
    for TraceAccount { metadata, account, .. } in trace_accounts(trace) {
        for channel in account.iter().flat_map(|account| &account.channels) {
            let Some(class) = metadata.stream(channel.id) else { continue };
            let events = channel.events.iter().filter_map(|event| class.events.get(&event.id));
            declared.extend(events.map(|event| (Arc::clone(event), Arc::clone(class))));
        }
    }
    declared
}

fn rows_of<E>(
    of_trace: &TraceAccount<'_>,
    streams: &[StreamCounts<'_>],
    table: TableNames<'_, E>,
) -> Result<Vec<AccountRow>, E> {
    let TraceAccount { metadata, account, path } = of_trace;
    let trace = metadata.uuid().map(uuid_text);
    let row = |scope, what: &str, count| AccountRow {
        trace: trace.clone(),
        pid: account.as_ref().map(|account| account.pid).or(pid(metadata)),
        scope,
        channel: None,
        event: None,
        stream: None,
        what: what.to_owned(),
        reason: None,
        count,
    };
    let mut rows = stored(of_trace, streams, &row);
    let stored: HashSet<_> = rows.iter().map(|row| (row.channel, row.event.clone())).collect();
    let Some(account) = account else { return Ok(rows) };
    rows.push(row("trace", "complete", account.complete.into()));
    if let Some(chunk) = &account.chunk {
        rows.push(row("trace", "removed", chunk.removed.events));
    }
    for channel in &account.channels {
        for event in &channel.events {
            let class = metadata.stream(channel.id).and_then(|stream| Some((stream.events.get(&event.id)?, stream)));
            let name = match class {
                Some((class, stream)) => table(class, stream)?,
                None => event.name.clone(),
            };
            let is_stored = stored.contains(&(Some(channel.id), Some(name.clone())));
            let none = (!is_stored).then_some(("stored", None, 0));
            rows.extend(event_counts(event).into_iter().chain(none).map(|(what, reason, count)| AccountRow {
                channel: Some(channel.id),
                event: Some(name.clone()),
                reason,
                ..row("event", what, count)
            }));
        }
        for stream in &channel.streams {
            let name = stream_name(metadata, channel.id, Some(stream.instance), path);
            rows.extend(stream_counts(stream).map(|(what, count)| AccountRow {
                channel: Some(channel.id),
                stream: Some(Arc::clone(&name)),
                ..row("stream", what, count)
            }));
        }
    }
    Ok(rows)
}

/// The rows for the stored events: by event, and by stream.
fn stored(
    of_trace: &TraceAccount<'_>,
    streams: &[StreamCounts<'_>],
    row: &dyn Fn(&'static str, &str, u64) -> AccountRow,
) -> Vec<AccountRow> {
    let (mut rows, mut events) = (Vec::new(), BTreeMap::new());
    let is_of = |metadata: &Metadata| match metadata.uuid() {
        Some(uuid) => of_trace.metadata.uuid() == Some(uuid),
        None => of_trace.metadata.uuid().is_none(),
    };
    for counts in streams.iter().filter(|counts| is_of(&counts.state.stream.metadata)) {
        let state = counts.state;
        if of_trace.metadata.uuid().is_none() && state.stream.file.parent() != Some(of_trace.path) {
            continue;
        }
        let channel = state.stream.class.id;
        let mut all = 0;
        for (name, count) in &counts.events {
            all += count;
            *events.entry((channel, *name)).or_insert(0) += count;
        }
        let stream = Some(Arc::clone(&state.name));
        rows.push(AccountRow { channel: Some(channel), stream, ..row("stream", "stored", all) });
    }
    rows.extend(events.into_iter().map(|((channel, name), count)| AccountRow {
        channel: Some(channel),
        event: Some(name.to_owned()),
        ..row("event", "stored", count)
    }));
    rows
}

fn event_counts(event: &EventAccount) -> Vec<(&'static str, Option<String>, u64)> {
    let EventAccount { fired, recorded, filtered, suppressed, lost, .. } = event;
    let counts = [("fired", fired), ("recorded", recorded), ("filtered", filtered), ("suppressed", suppressed)];
    let lost = lost.iter().map(|(reason, count)| ("lost", Some(reason.clone()), *count));
    counts.into_iter().map(|(what, count)| (what, None, *count)).chain(lost).collect()
}

fn stream_counts(stream: &StreamAccount) -> impl Iterator<Item = (&'static str, u64)> + use<> {
    let StreamAccount { recorded, written, overwritten, sink, discarded, .. } = *stream;
    let counts = [
        ("recorded", recorded),
        ("written", written),
        ("overwritten", overwritten),
        ("sink", sink),
        ("discarded", discarded),
    ];
    counts.into_iter()
}
