//! The tables of a store, or of a trace.

mod columns;
mod stored;
mod traced;

use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::session_state::SessionState;
use datafusion::object_store::ObjectStore;
use tracepoint_core::internal::nearest_names;

use crate::error::QueryError;
use crate::table::{Events, Place};
use stored::StoredTables;
use traced::TracedTables;

/// The table with the columns that all events share.
pub(crate) const EVENTS: &str = "events";
/// The table of the tracer's counts.
pub(crate) const ACCOUNT: &str = "account";
/// The table of missing events and packets.
pub(crate) const LOSSES: &str = "losses";
/// The tables that always exist.
const FIXED: [&str; 3] = [EVENTS, ACCOUNT, LOSSES];
/// Suffix of the table that unites all versions of an event.
pub(crate) const ALL_VERSIONS: &str = "#*";

/// Table name of an event whose own name is one of [`FIXED`].
fn renamed(event: &str) -> String {
    format!("event={event}")
}

/// The source of the tables.
enum Source {
    Store(StoredTables),
    Trace(TracedTables),
}

pub(crate) struct Catalog {
    source: Source,
}

impl Catalog {
    /// Lists the files of a store.
    pub(crate) async fn list(
        objects: Arc<dyn ObjectStore>,
        url: ObjectStoreUrl,
        place: Place,
    ) -> Result<Self, QueryError> {
        Ok(Self { source: Source::Store(StoredTables::list(objects, url, place).await?) })
    }

    pub(crate) async fn open_trace(path: &Path) -> Result<Self, QueryError> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || TracedTables::open(&path)).await;
        let opened = opened.map_err(|error| QueryError::Failed(error.to_string()))?;
        Ok(Self { source: Source::Trace(opened?) })
    }

    pub(crate) fn is_of_trace(&self) -> bool {
        matches!(self.source, Source::Trace(_))
    }

    /// The names of the single-event tables in sorted order.
    fn events(&self) -> Vec<&str> {
        match &self.source {
            Source::Store(store) => store.events.keys().map(String::as_str).collect(),
            Source::Trace(trace) => trace.events.keys().map(String::as_str).collect(),
        }
    }

    fn has_event(&self, name: &str) -> bool {
        match &self.source {
            Source::Store(store) => store.events.contains_key(name),
            Source::Trace(trace) => trace.events.contains_key(name),
        }
    }

    /// The names of all tables, single-event tables first.
    pub(crate) fn names(&self) -> Vec<String> {
        let events = self.events();
        let several = events.iter().filter(|name| self.versions(name).len() > 1);
        let several = several.map(|name| format!("{name}{ALL_VERSIONS}"));
        events.iter().map(ToString::to_string).chain(several).chain(FIXED.map(str::to_owned)).collect()
    }

    /// The events named `base`, `base#2` and so on.
    pub(crate) fn versions(&self, base: &str) -> Vec<&str> {
        let is_version = |name: &str| {
            let number = name.strip_prefix(base);
            number.is_some_and(|number| {
                let digits = number.strip_prefix('#');
                number.is_empty() || digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
            })
        };
        self.events().into_iter().filter(|name| is_version(name)).collect()
    }

    /// The events in the table with this name, if there is one.
    fn events_of(&self, name: &str) -> Option<Events> {
        let known = |name: &str| self.has_event(name).then(|| Events::These(vec![name.to_owned()]));
        let versions = || {
            let found = self.versions(name.strip_suffix(ALL_VERSIONS)?);
            (!found.is_empty()).then(|| Events::These(found.into_iter().map(str::to_owned).collect()))
        };
        match name {
            EVENTS => Some(Events::All),
            ACCOUNT | LOSSES => Some(Events::None),
            _ => known(name).or_else(versions),
        }
    }

    /// An error about an unknown table name, with suggestions.
    pub(crate) fn unknown(&self, name: &str) -> QueryError {
        let names = self.names();
        let nearest = nearest_names(name, names.iter().map(String::as_str));
        QueryError::UnknownTable(name.to_owned(), nearest)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.events_of(name).is_some()
    }

    /// The table with this name, if there is one.
    pub(crate) async fn table(
        &self,
        state: &SessionState,
        name: &str,
    ) -> datafusion::common::Result<Option<Arc<dyn TableProvider>>> {
        let Some(events) = self.events_of(name) else { return Ok(None) };
        Ok(Some(match &self.source {
            Source::Store(store) => Arc::new(store.table(state, name, events).await?),
            Source::Trace(trace) => Arc::new(trace.table(state, name, events)?),
        }))
    }

    /// The last day of a trace whose account is in the partition of `day`; `None` if unknown, as for a trace in chunks.
    pub(crate) async fn last_day(&self, trace: &str, day: Option<i32>) -> Option<i32> {
        match &self.source {
            Source::Store(store) => crate::stored_file::day(&store.last_day(trace).await?),
            Source::Trace(of) => day.filter(|_| !of.tables.is_in_chunks(trace)),
        }
    }
}
