//! Tables of a trace, which are read from its packets.

mod exec;
mod packets;
mod times;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tracepoint_tables::{Selection, TraceTables};

pub use exec::TraceExec;

use crate::table::{Events, predicate, with_keys};
use packets::{Packets, Wanted};

/// A table of a trace.
#[derive(Debug)]
pub(crate) struct TraceTable {
    tables: Arc<TraceTables>,
    is_account: bool,
    events: Events,
    /// The names of the events in the trace.
    names: Vec<String>,
    schema: SchemaRef,
}

impl TraceTable {
    pub(crate) fn new(
        tables: Arc<TraceTables>,
        is_account: bool,
        events: Events,
        names: Vec<String>,
        columns: &SchemaRef,
    ) -> Self {
        let schema = Arc::clone(with_keys(Arc::clone(columns), events.keys()).table_schema());
        Self { tables, is_account, events, names, schema }
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    fn selection(&self, names: Vec<String>) -> Selection {
        match self.events {
            Events::All => Selection::Common(names),
            Events::These(_) => Selection::Events(names),
            Events::None if self.is_account => Selection::Account,
            Events::None => Selection::Losses,
        }
    }
}

#[async_trait]
impl TableProvider for TraceTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let wanted = Wanted {
            tables: Arc::clone(&self.tables),
            names: self.names.clone(),
            schema: Arc::clone(&self.schema),
            columns: Arc::clone(&columns),
            predicate: predicate(state, self.schema(), filters)?,
            partitions: state.config().target_partitions(),
        };
        // The headers of packets are read.
        let found = tokio::task::spawn_blocking(move || Packets::find(&wanted)).await;
        let Packets { names, partitions, pruned, .. } =
            found.map_err(|error| DataFusionError::External(Box::new(error)))??;
        let mut description = self.tables.describe(self.selection(names), columns, partitions);
        description.limit = limit.filter(|_| filters.is_empty());
        description.times = times::times(filters);
        description.batch_rows = state.config().batch_size();
        Ok(Arc::new(TraceExec::planned(description, Arc::clone(&self.tables), pruned)))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> datafusion::common::Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
