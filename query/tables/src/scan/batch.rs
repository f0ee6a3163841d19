//! Batches with the requested columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{Array, ArrayRef, Date32Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, SchemaRef};

use crate::days;

/// Selects the columns of this schema by name. Missing ones become NULL.
pub(super) fn adapted(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    adapted_with(batch, schema, |_| None)
}

/// Selects the columns of this schema by name, using `computed` for columns that it provides.
pub(super) fn adapted_with(
    batch: &RecordBatch,
    schema: &SchemaRef,
    computed: impl Fn(&str) -> Option<ArrayRef>,
) -> Result<RecordBatch, ArrowError> {
    let count = batch.num_rows();
    let columns = schema.fields().iter().map(|field| {
        let known = computed(field.name()).or_else(|| batch.column_by_name(field.name()).map(Arc::clone));
        match known {
            None => Ok(new_null_array(field.data_type(), count)),
            Some(column) if column.data_type() == field.data_type() => Ok(column),
            Some(column) => cast(&column, field.data_type()),
        }
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Converts times to days.
pub(super) fn days_of(ts: &dyn Array) -> ArrayRef {
    let times = ts.as_primitive::<TimestampNanosecondType>();
    let day = |ns: i64| i32::try_from(days::of(ns)).ok();
    Arc::new(times.iter().map(|time| time.and_then(day)).collect::<Date32Array>())
}
