//! The table of the account: what the tracer has counted, and what was stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use tracepoint_reader::account::{Account, EventAccount, StreamAccount, uuid_text};
use tracepoint_reader::metadata::{EnvValue, Metadata};
use tracepoint_reader::{Trace, chunk_number};

use super::Ingest;
use super::partitions::HostSession;
use super::streams::{pid, place, stream_name};
use crate::error::StoreError;
use crate::table::{AccountRow, TableWriter};

/// What identifies the traces: their UUIDs, each with the number of a chunk if it has any. An error if one of our own is there twice; chunks of
/// other tracers have no numbers.
pub(super) fn identities(trace: &Trace) -> Result<Vec<(String, &Metadata)>, StoreError> {
    let (mut identities, mut paths) = (Vec::new(), HashMap::new());
    for (path, metadata) in trace.metadata() {
        let Some(uuid) = metadata.uuid().map(uuid_text) else { continue };
        let identity = chunk_number(path).map_or(uuid.clone(), |number| format!("{uuid}.{number}"));
        let is_own = matches!(metadata.env_value("tracer_name"), Some(EnvValue::String(name)) if name == "tracepoint");
        if let Some(first) = paths.insert(identity.clone(), path).filter(|_| is_own) {
            return Err(StoreError::GivenTwice { first: first.to_owned(), second: path.to_owned() });
        }
        identities.push((identity, metadata));
    }
    Ok(identities)
}

/// The account of a part of a trace, if it has one that can be read.
fn account(trace: &Trace, path: &Path) -> Option<Account> {
    match trace.dt_files().find(|file| file.path() == path) {
        Some(file) => file.account().ok().flatten(),
        None => Account::open(path).ok(),
    }
}

/// A trace, with the newest account of its parts.
struct TraceAccount<'a> {
    path: &'a Path,
    metadata: &'a Metadata,
    account: Option<Account>,
}

fn trace_accounts(trace: &Trace) -> Vec<TraceAccount<'_>> {
    let mut trace_accounts: BTreeMap<_, TraceAccount<'_>> = BTreeMap::new();
    for (path, metadata) in trace.metadata() {
        let new = TraceAccount { path, metadata, account: account(trace, path) };
        // Chunks come in any order; the last one has the counts of all.
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

impl Ingest<'_> {
    /// The last day of the events and losses of a trace.
    pub(super) fn last_day(&self, metadata: &Metadata) -> Option<i64> {
        let streams = self.streams.iter().filter(|state| state.stream.metadata.uuid() == metadata.uuid());
        streams.filter_map(|state| state.last_day).max()
    }

    /// Writes the account, and returns the size of its files.
    pub(super) fn account(&mut self, trace: &Trace) -> Result<u64, StoreError> {
        let mut writers: HashMap<HostSession, TableWriter<AccountRow>> = HashMap::new();
        for of_trace in trace_accounts(trace) {
            let place = place(of_trace.metadata, Some(of_trace.path));
            let day = self.last_day(of_trace.metadata);
            let rows = self.rows_of(&of_trace)?;
            let writer = writers.entry(place).or_insert_with_key(|place| TableWriter::new(&place.directory(day)));
            rows.into_iter().try_for_each(|row| writer.push(row, &mut self.transaction))?;
        }
        writers.into_values().map(|writer| writer.finish(&mut self.transaction)).sum()
    }

    fn rows_of(&mut self, of_trace: &TraceAccount<'_>) -> Result<Vec<AccountRow>, StoreError> {
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
        let mut rows = self.stored(of_trace, &row);
        let stored: HashSet<_> = rows.iter().map(|row| (row.channel, row.event.clone())).collect();
        let Some(account) = account else { return Ok(rows) };
        rows.push(row("trace", "complete", account.complete.into()));
        if let Some(chunk) = &account.chunk {
            rows.push(row("trace", "removed", chunk.removed.events));
        }
        for channel in &account.channels {
            for event in &channel.events {
                let class =
                    metadata.stream(channel.id).and_then(|stream| Some((stream.events.get(&event.id)?, stream)));
                let name = match class {
                    Some((class, stream)) => self.kind(class, stream)?.name.clone(),
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

    /// What was stored: by event, and by stream.
    fn stored(
        &self,
        of_trace: &TraceAccount<'_>,
        row: &dyn Fn(&'static str, &str, u64) -> AccountRow,
    ) -> Vec<AccountRow> {
        let (mut rows, mut events) = (Vec::new(), BTreeMap::new());
        let is_of = |metadata: &Metadata| match metadata.uuid() {
            Some(uuid) => of_trace.metadata.uuid() == Some(uuid),
            None => of_trace.metadata.uuid().is_none(),
        };
        for state in self.streams.iter().filter(|state| is_of(&state.stream.metadata)) {
            if of_trace.metadata.uuid().is_none() && state.stream.file.parent() != Some(of_trace.path) {
                continue;
            }
            let channel = state.stream.class.id;
            let mut all = 0;
            for event in state.events.values() {
                all += event.stored;
                *events.entry((channel, event.kind.name.as_str())).or_insert(0) += event.stored;
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
