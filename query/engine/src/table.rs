//! A table of a store: files with the same columns, of which a query reads those whose partitions it needs.

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

/// Nanoseconds in a day.
pub(crate) const DAY_NS: i64 = 86_400_000_000_000;

/// The events of which a table has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    All,
    /// Those of these names.
    These(Vec<String>),
    /// None: it is the account, or the losses.
    None,
}

/// The partitions of what is no event.
const PLACE: [Key; 3] = [Key::Day, Key::Host, Key::Session];

impl Events {
    /// The columns of partitions of a table with these events. That of one event does not repeat its name.
    pub(crate) fn keys(&self) -> &'static [Key] {
        const ALL: [Key; 3] = [Key::Day, Key::Session, Key::Event];
        match self {
            Self::These(names) if names.len() == 1 => &ALL[..2],
            Self::All | Self::These(_) => &ALL,
            Self::None => &PLACE,
        }
    }
}

/// The columns of a table, those of its partitions last.
pub(crate) fn with_keys(columns: SchemaRef, keys: &[Key]) -> TableSchema {
    let field = |key: &Key| {
        let ty = if *key == Key::Day { DataType::Date32 } else { DataType::Utf8 };
        Arc::new(Field::new(key.name(), ty, true))
    };
    TableSchema::builder(columns).with_table_partition_cols(keys.iter().map(field).collect::<Vec<_>>()).build()
}

/// A predicate of all filters, on these columns.
pub(crate) fn predicate(
    state: &dyn Session,
    schema: SchemaRef,
    filters: &[Expr],
) -> datafusion::common::Result<Option<Arc<dyn PhysicalExpr>>> {
    let schema = DFSchema::try_from(schema)?;
    let filter = conjunction(filters.iter().cloned());
    filter.map(|filter| state.create_physical_expr(filter, &schema)).transpose()
}

/// Where other processes find the files of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The URL of an object store: `file:///`, or `s3://BUCKET`.
    pub(crate) url: String,
    /// The path of the store in it.
    pub(crate) prefix: String,
}

/// A table of a store.
#[derive(Debug)]
pub(crate) struct StoreTable {
    events: Events,
    files: Arc<Vec<StoredFile>>,
    /// Where this process finds the files.
    url: ObjectStoreUrl,
    place: Place,
    schema: TableSchema,
    keys: Vec<Key>,
}

impl StoreTable {
    /// A table of files with these columns, and the values of `keys` as further columns.
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

    /// The same table with those files only for which the predicate may be true.
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

    /// For each file, whether it may have rows for which the predicate is true.
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

/// The first and the last time of a day, in nanoseconds since the epoch.
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
            // A scan of no files has no partition, which those who run a part of a plan do not know how to join.
            let schema = project_schema(&self.schema(), projection)?;
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let groups = FileGroup::new(files).split_files(state.config().target_partitions());
        let format = ParquetFormat::new().with_options(state.default_table_options().parquet);
        // The optimizer hands the filters to the source, which skips row groups and pages by them.
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
