//! A Parquet file that is being written.

use std::collections::HashSet;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::backend::Output;
use crate::error::StoreError;

/// Key of the file metadata with the full name of the event.
pub(crate) const EVENT: &str = "tracepoint.event";
/// Number of values sampled to determine whether a column's values repeat.
const SAMPLE: usize = 1024;

/// A file that is being written.
pub(crate) struct PartWriter {
    /// The directory of the file, for error messages.
    partition: PathBuf,
    writer: ArrowWriter<Box<dyn Output>>,
    rows: u64,
}

/// Size of a completed file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSize {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl PartWriter {
    /// Creates a file in a partition. `first` are the rows that will be written first.
    pub(crate) fn create(
        partition: &Path,
        output: Box<dyn Output>,
        first: &RecordBatch,
        metadata: &[(&str, String)],
    ) -> Result<Self, StoreError> {
        let options =
            ArrowWriterOptions::new().with_properties(properties(first, metadata)).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(output, first.schema(), options)
            .map_err(StoreError::parquet(partition))?;
        Ok(Self { partition: partition.to_owned(), writer, rows: 0 })
    }

    /// Writes rows as a row group.
    pub(crate) fn row_group(&mut self, rows: &RecordBatch) -> Result<(), StoreError> {
        self.rows += rows.num_rows() as u64;
        self.writer.write(rows).and_then(|()| self.writer.flush()).map_err(StoreError::parquet(&self.partition))
    }

    /// Completes the file, so that it persists.
    pub(crate) fn finish(self) -> Result<PartSize, StoreError> {
        let output = self.writer.into_inner().map_err(StoreError::parquet(&self.partition))?;
        Ok(PartSize { rows: self.rows, bytes: output.finish()? })
    }
}

fn properties(first: &RecordBatch, metadata: &[(&str, String)]) -> WriterProperties {
    let metadata = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_max_row_group_row_count(None)
        .set_created_by(concat!("tracepoint ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(metadata));
    for (field, column) in first.schema().fields().iter().zip(first.columns()) {
        let path = ColumnPath::new(vec![field.name().clone()]);
        if field.data_type().is_integer() || matches!(field.data_type(), DataType::Timestamp(..)) {
            // Used if the dictionary grows too large, or is disabled.
            properties = properties.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        if !repeats(column) {
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    properties.build()
}

/// Returns whether the values of a column repeat, so that a dictionary saves space. Numbers are sampled; times count as unique, all others as
/// repeating.
fn repeats(column: &dyn Array) -> bool {
    match column.data_type() {
        DataType::Timestamp(..) => false,
        DataType::UInt64 => numbers_repeat::<UInt64Type>(column),
        DataType::Int64 => numbers_repeat::<Int64Type>(column),
        DataType::UInt32 => numbers_repeat::<UInt32Type>(column),
        DataType::Int32 => numbers_repeat::<Int32Type>(column),
        _ => true,
    }
}

fn numbers_repeat<T: ArrowPrimitiveType<Native: Hash + Eq>>(column: &dyn Array) -> bool {
    let count = column.len().min(SAMPLE);
    let distinct = column.as_primitive::<T>().iter().take(count).collect::<HashSet<_>>().len();
    distinct <= count / 2 || count < 16
}
