//! The tables of a trace, read from its packets.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::file_format::parquet::transform_schema_to_view;
use datafusion::execution::session_state::SessionState;
use tracepoint_tables::{TablesError, TraceTables};

use super::columns::{account_columns, as_wanted, common_columns, losses_columns, union};
use super::{ACCOUNT, FIXED};
use crate::table::Events;
use crate::trace::TraceTable;

pub(super) struct TracedTables {
    pub(super) tables: Arc<TraceTables>,
    /// Names of events in the trace, by table name.
    pub(super) events: BTreeMap<String, String>,
}

impl TracedTables {
    /// This blocks.
    pub(super) fn open(path: &Path) -> Result<Self, TablesError> {
        let tables = Arc::new(TraceTables::open(path)?);
        let table = |name: &str| if FIXED.contains(&name) { super::renamed(name) } else { name.to_owned() };
        let events = tables.events().map(|(name, _)| (table(name), name.to_owned())).collect();
        Ok(Self { tables, events })
    }

    /// A table of these events.
    pub(super) fn table(
        &self,
        state: &SessionState,
        name: &str,
        events: Events,
    ) -> datafusion::common::Result<TraceTable> {
        let columns = match &events {
            Events::All => common_columns(),
            Events::These(names) => self.columns_of(names)?,
            Events::None if name == ACCOUNT => account_columns(),
            Events::None => losses_columns(),
        };
        let names = match &events {
            Events::These(tables) => tables.iter().map(|table| self.events[table].clone()).collect(),
            Events::All => self.events.values().cloned().collect(),
            Events::None => Vec::new(),
        };
        let columns = as_wanted(state, columns);
        Ok(TraceTable::new(Arc::clone(&self.tables), name == ACCOUNT, events, names, &columns))
    }

    /// The union of the columns of these events, matched by name, with the types that Parquet readers return.
    fn columns_of(&self, names: &[String]) -> datafusion::common::Result<SchemaRef> {
        let columns: BTreeMap<_, _> = self.tables.events().collect();
        let of_event = |name: &'_ String| {
            let columns = columns.get(self.events.get(name)?.as_str())?;
            Some((name.clone(), Arc::new(transform_schema_to_view(columns))))
        };
        let found: Vec<_> = names.iter().filter_map(of_event).collect();
        union(found.iter().map(|(name, columns)| (name.as_str(), Arc::clone(columns))))
    }
}
