//! Tables of a trace, read from its packets.

mod described;
mod exec;
mod packets;
mod times;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, project_schema};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tracepoint_tables::{ScanDescription, Selection, TraceTables};

pub(crate) use described::DescribedTable;
pub use described::{decode_scan, encode_scan};
pub use exec::TraceExec;

use crate::table::{Events, predicate, with_keys};
use packets::{Packets, ScanRequest};

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

    /// The same table for another process, reduced to the packets that may match the filters. Reads packet headers.
    pub(crate) fn reduced(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> datafusion::common::Result<DescribedTable> {
        let wanted = self.wanted(state, projection, filters)?;
        let packets = Packets::find(&wanted)?;
        Ok(DescribedTable::new(self.described(packets, wanted.columns, filters), &self.schema))
    }

    fn wanted(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> datafusion::common::Result<ScanRequest> {
        Ok(ScanRequest {
            tables: Arc::clone(&self.tables),
            names: self.names.clone(),
            schema: Arc::clone(&self.schema),
            columns: project_schema(&self.schema, projection)?,
            predicate: predicate(state, self.schema(), filters)?,
            partitions: state.config().target_partitions(),
        })
    }

    fn described(&self, packets: Packets, columns: SchemaRef, filters: &[Expr]) -> ScanDescription {
        let Packets { names, partitions, .. } = packets;
        let mut description = self.tables.describe(self.selection(names), columns, partitions);
        description.times = times::times(filters);
        description
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
        let wanted = self.wanted(state, projection, filters)?;
        // Run in a blocking task, because it reads packet headers.
        let found =
            tokio::task::spawn_blocking(move || Packets::find(&wanted).map(|packets| (packets, wanted.columns)));
        let (packets, columns) = found.await.map_err(|error| DataFusionError::External(Box::new(error)))??;
        let pruned = packets.pruned;
        let mut description = self.described(packets, columns, filters);
        description.limit = limit.filter(|_| filters.is_empty());
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
