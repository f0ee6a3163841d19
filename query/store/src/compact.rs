//! Merges small files into few large ones.

use std::io::ErrorKind;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::reader::ChunkReader;
use serde::Serialize;

use crate::backend::{Contents, Maintenance, Output, Transaction};
use crate::error::StoreError;
use crate::files::PartFile;
use crate::part::{EVENT, PartWriter};
use crate::store::Store;

/// Rows per row group.
const ROWS: usize = 122_880;

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CompactionSummary {
    /// Partitions in which files were replaced.
    pub partitions: u64,
    /// Files replaced.
    pub files_before: u64,
    /// New files.
    pub files_after: u64,
    /// Total size of the replaced files in bytes.
    pub bytes_before: u64,
    /// Total size of the new files in bytes.
    pub bytes_after: u64,
}

/// Replaces files smaller than `target` bytes by files of about that size, in each partition with several such files. The rows stay the same, in the
/// order in which they were written. Partitions are replaced one by one; a concurrent reader may see the rows of one partition twice. Holds one row
/// group in memory; for a store in S3 also one of the small files. Waits for other processes that compact or remove.
///
/// # Errors
/// [`StoreError::Io`] and [`StoreError::Parquet`]. Partitions compacted before the error stay compacted.
pub fn compact(store: &Store, target: u64) -> Result<CompactionSummary, StoreError> {
    let mut alone = store.backend.maintain()?;
    let mut compacted = CompactionSummary::default();
    for (directory, files) in store.backend.parts()? {
        let mut group: Vec<PartFile> = Vec::new();
        let small = files.into_iter().filter(|file| file.bytes < target);
        let before = compacted.files_before;
        for file in small {
            group.push(file);
            if group.iter().map(|file| file.bytes).sum::<u64>() >= target {
                replace(store, &mut *alone, &directory, &std::mem::take(&mut group), &mut compacted)?;
            }
        }
        replace(store, &mut *alone, &directory, &group, &mut compacted)?;
        compacted.partitions += u64::from(compacted.files_before > before);
    }
    Ok(compacted)
}

/// Replaces several files by one.
fn replace(
    store: &Store,
    alone: &mut dyn Maintenance,
    directory: &Path,
    files: &[PartFile],
    done: &mut CompactionSummary,
) -> Result<(), StoreError> {
    if files.len() < 2 {
        return Ok(());
    }
    let mut change = alone.begin()?;
    match merge(store, directory, files, &mut change) {
        Ok((replaced, before, after)) if replaced > 1 => {
            // On failure, another process has completed the change of a dead one: leave the present files to the next run.
            if change.replace()? {
                (done.files_before, done.files_after) = (done.files_before + replaced, done.files_after + 1);
                (done.bytes_before, done.bytes_after) = (done.bytes_before + before, done.bytes_after + after);
            }
            Ok(())
        }
        Err(StoreError::Io(_, source)) if source.kind() == ErrorKind::NotFound => {
            change.abandon();
            Ok(())
        }
        other => {
            change.abandon();
            other.map(|_| ())
        }
    }
}

/// Merges those files that have the same columns as the first one. Returns their number, their total size, and the size of the new file.
fn merge(
    store: &Store,
    directory: &Path,
    files: &[PartFile],
    change: &mut Transaction,
) -> Result<(u64, u64, u64), StoreError> {
    let (mut merged, mut replaced, mut bytes): (Option<MergedFile<'_>>, u64, u64) = (None, 0, 0);
    for file in files {
        let (reader, event) = open(store, file)?;
        let schema = reader_schema(&reader);
        if merged.is_none() {
            let output = Some(change.add(directory, "parquet")?);
            merged = Some(MergedFile { directory, output, schema, event, rows: Vec::new(), count: 0, writer: None });
        }
        let Some(merged) = &mut merged else { continue };
        if reader_schema(&reader) != merged.schema {
            continue;
        }
        for batch in reader {
            merged.push(batch.map_err(|error| StoreError::parquet(&file.path)(error.into()))?)?;
        }
        change.remove(file.path.clone());
        (replaced, bytes) = (replaced + 1, bytes + file.bytes);
    }
    let Some(mut merged) = merged else { return Ok((0, 0, 0)) };
    merged.flush()?;
    let after = merged.writer.map_or(Ok(0), |writer| Ok(writer.finish()?.bytes))?;
    Ok((replaced, bytes, after))
}

fn reader_schema(reader: &ParquetRecordBatchReader) -> SchemaRef {
    use arrow_array::RecordBatchReader;
    reader.schema()
}

/// Opens a file. Also returns the name of its event.
fn open(store: &Store, file: &PartFile) -> Result<(ParquetRecordBatchReader, Option<String>), StoreError> {
    match store.backend.contents(file)? {
        Contents::File(contents) => reader(contents, &file.path),
        Contents::Bytes(contents) => reader(contents, &file.path),
    }
}

fn reader(
    contents: impl ChunkReader + 'static,
    path: &Path,
) -> Result<(ParquetRecordBatchReader, Option<String>), StoreError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(contents).map_err(StoreError::parquet(path))?;
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let event = metadata.and_then(|pairs| pairs.iter().find(|pair| pair.key == EVENT)?.value.clone());
    Ok((builder.with_batch_size(ROWS).build().map_err(StoreError::parquet(path))?, event))
}

/// The new file.
struct MergedFile<'a> {
    directory: &'a Path,
    /// `None` until the first rows are written.
    output: Option<Box<dyn Output>>,
    schema: SchemaRef,
    event: Option<String>,
    rows: Vec<RecordBatch>,
    count: usize,
    writer: Option<PartWriter>,
}

impl MergedFile<'_> {
    fn push(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        if self.count + batch.num_rows() > ROWS {
            self.flush()?;
        }
        self.count += batch.num_rows();
        self.rows.push(batch);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.count == 0 {
            return Ok(());
        }
        let rows = concat_batches(&self.schema, &self.rows);
        let rows = rows.map_err(|error| StoreError::parquet(self.directory)(error.into()))?;
        self.rows.clear();
        self.count = 0;
        if let Some(output) = self.output.take() {
            let metadata: Vec<_> = self.event.iter().map(|event| (EVENT, event.clone())).collect();
            self.writer = Some(PartWriter::create(self.directory, output, &rows, &metadata)?);
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.row_group(&rows))
    }
}
