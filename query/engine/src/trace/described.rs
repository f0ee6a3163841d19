//! A table scan planned by another process; packets are not searched again here.
//!
//! A scheduler can divide only file scans among executors, by their groups of files. In its plan such a table is therefore a scan of files, with one
//! file for each partition of the [description](ScanDescription). In an executor's part of the plan, the remaining partitions become a [`TraceExec`]:
//! [`encode_scan`], [`decode_scan`].

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, internal_datafusion_err, internal_err, project_schema};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use tracepoint_tables::ScanDescription;

use super::TraceExec;

/// The nominal location of the files in such a scan.
const PARTITIONS: &str = "tracepoint://partitions";

/// A table of a trace with its packets already selected. The process that reads the packets opens the trace.
#[derive(Debug)]
pub(crate) struct DescribedTable {
    description: ScanDescription,
    schema: SchemaRef,
}

impl DescribedTable {
    /// Creates a table with these columns. The description has the subset of columns to read.
    pub(crate) fn new(description: ScanDescription, schema: &SchemaRef) -> Self {
        Self { description, schema: Arc::clone(schema) }
    }

    pub(crate) fn description(&self) -> &ScanDescription {
        &self.description
    }
}

#[async_trait]
impl TableProvider for DescribedTable {
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
        let mut description = self.description.clone();
        description.schema = project_schema(&self.schema, projection)?;
        description.batch_rows = state.config().batch_size();
        // The path of each file is the number of its partition.
        let group = |number: usize| FileGroup::new(vec![PartitionedFile::new(number.to_string(), 0)]);
        let groups = (0..description.partitions.len()).map(group).collect();
        let source = Arc::new(DescribedSource::new(description));
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::parse(PARTITIONS)?, source)
            .with_file_groups(groups)
            .with_limit(limit.filter(|_| filters.is_empty()))
            .build();
        Ok(DataSourceExec::from_data_source(scan))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> datafusion::common::Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// A file source that stands for the packets of a trace.
#[derive(Debug)]
struct DescribedSource {
    description: ScanDescription,
    schema: TableSchema,
    metrics: ExecutionPlanMetricsSet,
}

impl DescribedSource {
    fn new(description: ScanDescription) -> Self {
        let schema = TableSchema::builder(Arc::clone(&description.schema)).build();
        Self { description, schema, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl FileSource for DescribedSource {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        _: usize,
    ) -> datafusion::common::Result<Arc<dyn FileOpener>> {
        internal_err!("a scan of a trace is run by the process that it is sent to")
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let mut description = self.description.clone();
        description.batch_rows = batch_size;
        Arc::new(Self::new(description))
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> datafusion::common::Result<TreeNodeRecursion>,
    ) -> datafusion::common::Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn file_type(&self) -> &'static str {
        "trace"
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }
}

/// Encodes the partitions that remain in a part of a decoded table's scan; `None` if the node is not such a scan.
///
/// # Errors
/// No errors are known.
pub fn encode_scan(node: &dyn ExecutionPlan) -> Result<Option<Vec<u8>>, DataFusionError> {
    let config = node.downcast_ref::<DataSourceExec>().map(|scan| &**scan.data_source() as &dyn Any);
    let Some(config) = config.and_then(|source| source.downcast_ref::<FileScanConfig>()) else { return Ok(None) };
    let source = &**config.file_source() as &dyn Any;
    let Some(source) = source.downcast_ref::<DescribedSource>() else { return Ok(None) };
    let mut description = source.description.clone();
    let partition = |file: &PartitionedFile| {
        let number: usize = file.object_meta.location.as_ref().parse().ok()?;
        description.partitions.get(number).cloned()
    };
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let partitions: Option<Vec<_>> = files.map(partition).collect();
    description.partitions = partitions.ok_or_else(|| internal_datafusion_err!("a scan of other partitions"))?;
    description.limit = config.limit;
    description.to_bytes().map(Some).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Decodes the node that reads an encoded scan.
///
/// # Errors
/// If the bytes are not an encoded scan.
pub fn decode_scan(bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let description = ScanDescription::from_bytes(bytes);
    Ok(Arc::new(TraceExec::new(description.map_err(|error| DataFusionError::External(Box::new(error)))?)))
}
