//! A table of a store: files with the same columns. A query reads the files whose partitions may match.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, ScalarValue, project_schema};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use serde::{Deserialize, Serialize};

use crate::pruning::Ranges;
use crate::stored_file::{Key, StoredFile};

/// Nanoseconds per day.
pub(crate) const DAY_NS: i64 = 86_400_000_000_000;

/// The events in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    All,
    /// The events with these names.
    These(Vec<String>),
    /// No events: the account, or the losses.
    None,
}

/// Partition keys of the tables without events.
const PLACE: [Key; 3] = [Key::Day, Key::Host, Key::Session];

impl Events {
    /// Partition columns of a table with these events. The table of a single event omits the column `event`.
    pub(crate) fn keys(&self) -> &'static [Key] {
        const ALL: [Key; 3] = [Key::Day, Key::Session, Key::Event];
        match self {
            Self::These(names) if names.len() == 1 => &ALL[..2],
            Self::All | Self::These(_) => &ALL,
            Self::None => &PLACE,
        }
    }
}

/// Appends partition columns to the columns of a table.
pub(crate) fn with_keys(columns: SchemaRef, keys: &[Key]) -> TableSchema {
    let field = |key: &Key| {
        let ty = if *key == Key::Day { DataType::Date32 } else { DataType::Utf8 };
        Arc::new(Field::new(key.name(), ty, true))
    };
    TableSchema::builder(columns).with_table_partition_cols(keys.iter().map(field).collect::<Vec<_>>()).build()
}

/// The conjunction of all filters as a predicate on these columns.
pub(crate) fn predicate(
    state: &dyn Session,
    schema: SchemaRef,
    filters: &[Expr],
) -> datafusion::common::Result<Option<Arc<dyn PhysicalExpr>>> {
    let schema = DFSchema::try_from(schema)?;
    let filter = conjunction(filters.iter().cloned());
    filter.map(|filter| state.create_physical_expr(filter, &schema)).transpose()
}

/// The location of a store, valid in other processes as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The URL of the object store: `file:///`, or `s3://BUCKET`.
    pub(crate) url: String,
    /// The path of the store within the object store.
    pub(crate) prefix: String,
}

#[derive(Debug)]
pub(crate) struct StoreTable {
    events: Events,
    files: Arc<Vec<StoredFile>>,
    /// The registered URL of the files in this process.
    url: ObjectStoreUrl,
    place: Place,
    schema: TableSchema,
    keys: Vec<Key>,
}

impl StoreTable {
    /// Creates a table of files with these columns. The partition values of `keys` become further columns.
    pub(crate) fn new(
        events: Events,
        files: Arc<Vec<StoredFile>>,
        url: &ObjectStoreUrl,
        place: &Place,
        columns: SchemaRef,
        keys: &[Key],
    ) -> Self {
        let schema = with_keys(columns, keys);
        Self { events, files, url: url.clone(), place: place.clone(), schema, keys: keys.to_vec() }
    }

    /// The same table, reduced to the files that may have rows for which the predicate is true.
    pub(crate) fn reduced(&self, predicate: Option<&Arc<dyn PhysicalExpr>>) -> datafusion::common::Result<Self> {
        let may_match = self.may_match(predicate)?;
        let files = self.files.iter().zip(may_match).filter(|(_, may_match)| *may_match).map(|(file, _)| file.clone());
        Ok(Self {
            events: self.events.clone(),
            files: Arc::new(files.collect()),
            url: self.url.clone(),
            place: self.place.clone(),
            schema: self.schema.clone(),
            keys: self.keys.clone(),
        })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub(crate) fn all_files(&self) -> &[StoredFile] {
        &self.files
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Returns for each file whether it may have rows for which the predicate is true.
    fn may_match(&self, predicate: Option<&Arc<dyn PhysicalExpr>>) -> datafusion::common::Result<Vec<bool>> {
        let schema = self.schema();
        let mut ranges = Ranges::new(self.files.len());
        let partitions = || self.files.iter().map(|file| &file.partition);
        for key in [Key::Day, Key::Session, Key::Event] {
            ranges.add(
                &schema,
                key.name(),
                partitions().map(|partition| (partition.value(key), partition.value(key))),
            )?;
        }
        let host = partitions()
            .map(|partition| if partition.is_host_cut { ScalarValue::Utf8(None) } else { partition.value(Key::Host) });
        ranges.add(&schema, Key::Host.name(), host.map(|host| (host.clone(), host)))?;
        ranges.add(&schema, "ts", partitions().map(|partition| times_of(partition.day)))?;
        Ok(ranges.may_match(predicate, &schema))
    }

    /// The files that may have rows for which the predicate is true.
    fn files(&self, predicate: Option<&Arc<dyn PhysicalExpr>>) -> datafusion::common::Result<Vec<PartitionedFile>> {
        let may_match = self.may_match(predicate)?;
        let file = |file: &StoredFile| {
            let mut listed = PartitionedFile::new_from_meta(file.object.clone());
            listed.partition_values = self.keys.iter().map(|key| file.partition.value(*key)).collect();
            listed
        };
        Ok(self.files.iter().zip(may_match).filter(|(_, may_match)| *may_match).map(|(one, _)| file(one)).collect())
    }
}

/// The first and last nanosecond of a day since the epoch.
pub(crate) fn times_of(day: Option<i32>) -> (ScalarValue, ScalarValue) {
    let begin = day.and_then(|day| i64::from(day).checked_mul(DAY_NS));
    let end = begin.and_then(|begin| begin.checked_add(DAY_NS - 1));
    let time = |time| ScalarValue::TimestampNanosecond(time, Some("UTC".into()));
    (time(begin), time(end))
}

#[async_trait]
impl TableProvider for StoreTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.schema.table_schema())
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
        let files = self.files(predicate(state, self.schema(), filters)?.as_ref())?;
        if files.is_empty() {
            // A scan without files has no partition, and the executors of a partial plan cannot join that.
            let schema = project_schema(&self.schema(), projection)?;
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let groups = FileGroup::new(files).split_files(state.config().target_partitions());
        let format = ParquetFormat::new().with_options(state.default_table_options().parquet);
        // The optimizer passes the filters to the source, which prunes row groups and pages with them.
        let scan = FileScanConfigBuilder::new(self.url.clone(), format.file_source(self.schema.clone()))
            .with_file_groups(groups)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit.filter(|_| filters.is_empty()))
            .build();
        format.create_physical_plan(state, scan).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> datafusion::common::Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
