//! The tables beside the events: the account, and what is missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::backend::Transaction;
use crate::error::StoreError;
use crate::layout::time_type;
use crate::part::PartWriter;

/// A table that is written by rows of this type.
pub(crate) trait Row: Sized {
    /// Its directory in the store.
    const TABLE: &str;

    fn batch(rows: &[Self]) -> Result<RecordBatch, ArrowError>;
}

/// One number of the account.
#[derive(Debug)]
pub(crate) struct AccountRow {
    pub(crate) trace: Option<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) scope: &'static str,
    pub(crate) channel: Option<u64>,
    pub(crate) event: Option<String>,
    pub(crate) stream: Option<Arc<str>>,
    pub(crate) what: String,
    pub(crate) reason: Option<String>,
    pub(crate) count: u64,
}

impl Row for AccountRow {
    const TABLE: &str = "account";

    fn batch(rows: &[Self]) -> Result<RecordBatch, ArrowError> {
        let text = |of: fn(&Self) -> Option<&str>| Arc::new(rows.iter().map(of).collect::<StringArray>()) as ArrayRef;
        batch([
            ("trace", text(|row| row.trace.as_deref())),
            ("pid", Arc::new(rows.iter().map(|row| row.pid).collect::<UInt32Array>())),
            ("scope", text(|row| Some(row.scope))),
            ("channel", Arc::new(rows.iter().map(|row| row.channel).collect::<UInt64Array>())),
            ("name", text(|row| row.event.as_deref())),
            ("stream", text(|row| row.stream.as_deref())),
            ("what", text(|row| Some(&row.what))),
            ("reason", text(|row| row.reason.as_deref())),
            ("count", Arc::new(rows.iter().map(|row| row.count).collect::<UInt64Array>())),
        ])
    }
}

/// Something that is missing.
#[derive(Debug)]
pub(crate) struct LossRow {
    pub(crate) times: Option<(i64, i64)>,
    pub(crate) stream: Option<Arc<str>>,
    pub(crate) what: &'static str,
    pub(crate) events: Option<u64>,
    pub(crate) packets: Option<u64>,
    pub(crate) reason: Option<String>,
}

impl Row for LossRow {
    const TABLE: &str = "losses";

    fn batch(rows: &[Self]) -> Result<RecordBatch, ArrowError> {
        let text = |of: fn(&Self) -> Option<&str>| Arc::new(rows.iter().map(of).collect::<StringArray>()) as ArrayRef;
        let number = |of: fn(&Self) -> Option<u64>| Arc::new(rows.iter().map(of).collect::<UInt64Array>()) as ArrayRef;
        let time = |of: fn((i64, i64)) -> i64| {
            let times: TimestampNanosecondArray = rows.iter().map(|row| row.times.map(of)).collect();
            Arc::new(times.with_timezone("UTC")) as ArrayRef
        };
        batch([
            ("from_ts", time(|(from, _)| from)),
            ("to_ts", time(|(_, to)| to)),
            ("stream", text(|row| row.stream.as_deref())),
            ("what", text(|row| Some(row.what))),
            ("events", number(|row| row.events)),
            ("packets", number(|row| row.packets)),
            ("reason", text(|row| row.reason.as_deref())),
        ])
    }
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<RecordBatch, ArrowError> {
    let field = |(name, array): &(&str, ArrayRef)| {
        let ty =
            if matches!(array.data_type(), DataType::Timestamp(..)) { time_type() } else { array.data_type().clone() };
        Field::new(*name, ty, true)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect())
}

/// How many rows are kept in memory.
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

    /// Completes the file, and returns its size; 0 without a row.
    pub(crate) fn finish(mut self, transaction: &mut Transaction) -> Result<u64, StoreError> {
        if !self.rows.is_empty() {
            self.flush(transaction)?;
        }
        self.part.map_or(Ok(0), |part| Ok(part.finish()?.bytes))
    }
}
