//! Reads a store with Arrow.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, IngestSummary, Store, StoreError, ingest};

/// Writes a trace into a store.
pub(crate) fn stored(store: &Path, trace: &Path, options: IngestOptions) -> Result<IngestSummary, StoreError> {
    let trace = Trace::open(trace).expect("a trace");
    ingest(&Store::create(store)?, &trace, options, &mut |_, _| {})
}

/// The files below a directory, except hidden ones.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The files of events.
pub(crate) fn event_files(store: &Path) -> Vec<PathBuf> {
    let is_event = |path: &PathBuf| path.strip_prefix(store).expect("below it").to_string_lossy().starts_with("day=");
    files(store).into_iter().filter(is_event).collect()
}

/// A row: the names of its columns, and its values as text.
pub(crate) type Row = Vec<(String, String)>;

/// The value of a column of a row.
pub(crate) fn cell<'a>(row: &'a Row, name: &str) -> &'a str {
    &row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no {name} in {row:?}")).1
}

pub(crate) fn rows(file: &Path) -> Vec<Row> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(file).expect("a file")).expect("Parquet");
    let mut rows = Vec::new();
    for batch in builder.build().expect("a reader") {
        let batch: RecordBatch = batch.expect("rows");
        for row in 0..batch.num_rows() {
            let columns = batch
                .schema()
                .fields()
                .iter()
                .zip(batch.columns())
                .map(|(field, column)| (field.name().clone(), text(column, row)))
                .collect();
            rows.push(columns);
        }
    }
    rows
}

/// The rows of a table other than the events.
pub(crate) fn table(store: &Path, table: &str) -> Vec<Row> {
    let directory = store.join(table);
    if directory.exists() { files(&directory).iter().flat_map(|file| rows(file)).collect() } else { Vec::new() }
}

pub(crate) fn float(number: f64) -> String {
    if number.is_nan() { "NaN".to_owned() } else { format!("{number:?}") }
}

/// A value as text that also reveals its type.
fn text(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    macro_rules! number {
        ($ty:ty) => {
            array.as_primitive::<$ty>().value(row).to_string()
        };
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::Timestamp(_, Some(zone)) if &**zone == "UTC" => number!(TimestampNanosecondType),
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => format!("{:?}", array.as_binary::<i32>().value(row)),
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            format!("[{}]", (0..values.len()).map(|row| text(&values, row)).collect::<Vec<_>>().join(", "))
        }
        DataType::Struct(members) => {
            let columns = array.as_struct().columns();
            let member = |(field, column): (&arrow_schema::FieldRef, &arrow_array::ArrayRef)| {
                format!("{}: {}", field.name(), text(column, row))
            };
            format!("{{{}}}", members.iter().zip(columns).map(member).collect::<Vec<_>>().join(", "))
        }
        other => panic!("a column is {other}"),
    }
}
