//! Rows of the engine's own queries.

use std::sync::Arc;

use datafusion::arrow::array::types::{Date32Type, TimestampNanosecondType, UInt64Type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;

use crate::error::QueryError;
use crate::planner::Planner;

pub(super) struct Rows {
    stream: SendableRecordBatchStream,
}

impl Rows {
    pub(super) async fn of(planner: &Planner, sql: &str) -> Result<Self, QueryError> {
        let plan = planner.plan(sql).await?;
        let stream = DataFrame::new(planner.context.state(), plan).execute_stream().await?;
        Ok(Self { stream })
    }

    pub(super) async fn next(&mut self) -> Result<Option<Batch>, QueryError> {
        let batch = self.stream.try_next().await?;
        Ok(batch.as_ref().map(Batch::of).transpose().map_err(DataFusionError::from)?)
    }
}

/// A batch whose columns are texts, 64-bit numbers, days and times only.
pub(super) struct Batch(RecordBatch);

impl Batch {
    fn of(batch: &RecordBatch) -> Result<Self, ArrowError> {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
            let column = match column.data_type() {
                DataType::Utf8View => cast(column, &DataType::Utf8)?,
                ty if ty.is_integer() => cast(column, &DataType::UInt64)?,
                _ => Arc::clone(column),
            };
            Ok((field.name().clone(), column, true))
        });
        Ok(Self(RecordBatch::try_from_iter_with_nullable(columns.collect::<Result<Vec<_>, ArrowError>>()?)?))
    }

    pub(super) fn len(&self) -> usize {
        self.0.num_rows()
    }

    /// The column, if its value is not NULL in this row.
    fn column(&self, name: &str, row: usize) -> Option<&ArrayRef> {
        self.0.column_by_name(name).filter(|column| column.is_valid(row))
    }

    pub(super) fn text(&self, name: &str, row: usize) -> Option<String> {
        Some(self.column(name, row)?.as_string_opt::<i32>()?.value(row).to_owned())
    }

    pub(super) fn number(&self, name: &str, row: usize) -> Option<u64> {
        Some(self.column(name, row)?.as_primitive_opt::<UInt64Type>()?.value(row))
    }

    /// Days since the epoch.
    pub(super) fn day(&self, name: &str, row: usize) -> Option<i32> {
        Some(self.column(name, row)?.as_primitive_opt::<Date32Type>()?.value(row))
    }

    /// Nanoseconds since the epoch.
    pub(super) fn time(&self, name: &str, row: usize) -> Option<i64> {
        Some(self.column(name, row)?.as_primitive_opt::<TimestampNanosecondType>()?.value(row))
    }
}
