//! The tables without events: the account, and missing data.

use std::path::{Path, PathBuf};

use tracepoint_tables::Row;

use crate::backend::Transaction;
use crate::error::StoreError;
use crate::part::PartWriter;

/// Maximum number of rows in memory.
const ROWS: usize = 8192;

/// One partition of such a table.
pub(crate) struct TableWriter<R> {
    partition: PathBuf,
    rows: Vec<R>,
    part: Option<PartWriter>,
}

impl<R: Row> TableWriter<R> {
    pub(crate) fn new(partition: &Path) -> Self {
        Self { partition: Path::new(R::TABLE).join(partition), rows: Vec::new(), part: None }
    }

    pub(crate) fn push(&mut self, row: R, transaction: &mut Transaction) -> Result<(), StoreError> {
        self.rows.push(row);
        if self.rows.len() >= ROWS { self.flush(transaction) } else { Ok(()) }
    }

    fn flush(&mut self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let batch = R::batch(&self.rows).map_err(|error| StoreError::parquet(&self.partition)(error.into()))?;
        self.rows.clear();
        let part = if let Some(part) = &mut self.part {
            part
        } else {
            let output = transaction.add(&self.partition, "parquet")?;
            self.part.insert(PartWriter::create(&self.partition, output, &batch, &[])?)
        };
        part.row_group(&batch)
    }

    /// Completes the file, and returns its size; 0 if there were no rows.
    pub(crate) fn finish(mut self, transaction: &mut Transaction) -> Result<u64, StoreError> {
        if !self.rows.is_empty() {
            self.flush(transaction)?;
        }
        self.part.map_or(Ok(0), |part| Ok(part.finish()?.bytes))
    }
}
