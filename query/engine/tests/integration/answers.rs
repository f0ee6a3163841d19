//! Answers of the engine as plain values.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Number, Value};
use tracepoint_query::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, types};
use tracepoint_query::arrow::compute::cast;
use tracepoint_query::arrow::datatypes::{DataType, TimeUnit};
use tracepoint_query::{Engine, EngineOptions, QueryError};

/// Rows of values.
pub(crate) type Rows = Vec<Vec<Value>>;

pub(crate) async fn open(store: &Path) -> Engine {
    Engine::open(store, EngineOptions::default()).await.expect("a store")
}

/// The engine's answer, or its error.
pub(crate) async fn ask(engine: &Engine, sql: &str) -> Result<Rows, QueryError> {
    let mut answer = engine.query(sql).await?;
    let mut rows = Vec::new();
    while let Some(batch) = answer.next().await? {
        rows.extend(plain(&batch));
    }
    Ok(rows)
}

/// The engine's notes about missing data in an answer.
pub(crate) async fn missing(engine: &Engine, sql: &str) -> Vec<String> {
    let answer = engine.query(sql).await.expect("a query");
    engine.missing(&answer).await.expect("losses can be read").notes
}

/// Converts values: times to nanoseconds, days to texts.
fn plain(batch: &RecordBatch) -> Rows {
    let columns: Vec<_> = batch.columns().iter().map(column).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

fn column(array: &ArrayRef) -> Vec<Value> {
    let ty = match array.data_type() {
        DataType::Timestamp(..) => DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::UInt64 => DataType::UInt64,
        ty if ty.is_integer() => DataType::Int64,
        ty if ty.is_numeric() => DataType::Float64,
        DataType::Boolean => DataType::Boolean,
        _ => DataType::Utf8,
    };
    let values = cast(array, &ty).expect("a plain type");
    let value = |row: usize| match &ty {
        _ if array.is_null(row) => Value::Null,
        DataType::Timestamp(..) => values.as_primitive::<types::TimestampNanosecondType>().value(row).into(),
        DataType::UInt64 => values.as_primitive::<types::UInt64Type>().value(row).into(),
        DataType::Int64 => values.as_primitive::<types::Int64Type>().value(row).into(),
        DataType::Float64 => {
            Number::from_f64(values.as_primitive::<types::Float64Type>().value(row)).map_or(Value::Null, Value::Number)
        }
        DataType::Boolean => values.as_boolean().value(row).into(),
        _ => values.as_string::<i32>().value(row).into(),
    };
    (0..Arc::clone(array).len()).map(value).collect()
}
