//! The partitions of events that are being written, in bounded memory.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tracepoint_reader::EventView;
use tracepoint_tables::names::partition;
use tracepoint_tables::{HostSession, Layout, RowHead, RowOrigin, Rows};

use super::IngestOptions;
use crate::backend::Transaction;
use crate::error::StoreError;
use crate::part::{EVENT, PartWriter};

/// Maximum number of row groups per file. Their descriptions stay in memory until the file is complete.
const ROW_GROUPS: u32 = 256;

/// A kind of event: a name and columns.
#[derive(Debug)]
pub(super) struct Kind {
    /// The name in the store.
    pub(super) name: String,
    pub(super) layout: Arc<Layout>,
}

/// A partition of events.
struct Partition {
    directory: PathBuf,
    event: String,
    rows: Rows,
    part: Option<PartWriter>,
    row_groups: u32,
    /// The total number of row groups written when this partition was last written.
    written: u64,
}

/// All partitions of events that are being written.
pub(super) struct Partitions {
    options: IngestOptions,
    all: Vec<Partition>,
    /// By directory and address of the kind. Traces with equal columns but different enumeration labels get separate files.
    known: HashMap<(PathBuf, usize), usize>,
    /// Approximate size of all rows in memory.
    bytes: usize,
    open: usize,
    row_groups: u64,
    /// Number of completed files.
    pub(super) parts: u64,
    /// Their total size in bytes.
    pub(super) written_bytes: u64,
    /// Their total number of rows.
    pub(super) written_rows: u64,
}

impl Partitions {
    pub(super) fn new(options: IngestOptions) -> Self {
        let (parts, written_bytes, written_rows) = (0, 0, 0);
        let (all, known) = (Vec::new(), HashMap::new());
        Self { options, all, known, bytes: 0, open: 0, row_groups: 0, parts, written_bytes, written_rows }
    }

    /// Finds or adds the partition of a kind of event on a day.
    pub(super) fn find(&mut self, kind: &Arc<Kind>, place: &HostSession, day: Option<i64>) -> usize {
        let directory = place.directory(day).join(partition("event", Some(&kind.name)));
        let new = self.all.len();
        let index = *self.known.entry((directory.clone(), Arc::as_ptr(kind) as usize)).or_insert(new);
        if index == new {
            let rows = Rows::new(Arc::clone(&kind.layout), place.host.clone());
            let event = kind.name.clone();
            self.all.push(Partition { directory, event, rows, part: None, row_groups: 0, written: 0 });
        }
        index
    }

    /// Appends an event to a partition.
    #[inline]
    pub(super) fn push(
        &mut self,
        index: usize,
        (head, origin): (RowHead, &Arc<RowOrigin>),
        event: &EventView<'_>,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let rows = &mut self.all[index].rows;
        self.bytes += rows.push(head, origin, event);
        if rows.len() >= self.options.row_group_rows || rows.batch_bytes() >= self.options.row_group_bytes {
            self.write(index, transaction)?;
        }
        if self.bytes > self.options.memory { self.flush_largest(transaction) } else { Ok(()) }
    }

    /// Writes the rows of the largest partitions, until half of the memory is free.
    fn flush_largest(&mut self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let mut largest: Vec<_> = (0..self.all.len()).collect();
        largest.sort_by_key(|index| std::cmp::Reverse(self.all[*index].rows.bytes()));
        for index in largest {
            if self.bytes <= self.options.memory / 2 {
                break;
            }
            self.write(index, transaction)?;
        }
        Ok(())
    }

    /// Writes the rows of a partition as a row group.
    fn write(&mut self, index: usize, transaction: &mut Transaction) -> Result<(), StoreError> {
        let partition = &mut self.all[index];
        if partition.rows.is_empty() {
            return Ok(());
        }
        self.bytes -= partition.rows.bytes();
        let batch = partition.rows.take().map_err(|error| StoreError::parquet(&partition.directory)(error.into()))?;
        let part = if let Some(part) = &mut partition.part {
            part
        } else {
            let output = transaction.add(&partition.directory, "parquet")?;
            self.open += 1;
            let metadata = [(EVENT, partition.event.clone())];
            partition.part.insert(PartWriter::create(&partition.directory, output, &batch, &metadata)?)
        };
        part.row_group(&batch)?;
        self.row_groups += 1;
        (partition.row_groups, partition.written) = (partition.row_groups + 1, self.row_groups);
        if partition.row_groups >= ROW_GROUPS {
            self.close(index)?;
        }
        if self.open > self.options.open_parts.max(1) {
            let open = (0..self.all.len()).filter(|index| self.all[*index].part.is_some());
            if let Some(oldest) = open.min_by_key(|index| self.all[*index].written) {
                self.close(oldest)?;
            }
        }
        Ok(())
    }

    /// Completes the file of a partition.
    fn close(&mut self, index: usize) -> Result<(), StoreError> {
        let partition = &mut self.all[index];
        partition.row_groups = 0;
        if let Some(part) = partition.part.take() {
            let written = part.finish()?;
            self.open -= 1;
            self.parts += 1;
            self.written_bytes += written.bytes;
            self.written_rows += written.rows;
        }
        Ok(())
    }

    /// Writes all rows, and completes all files.
    pub(super) fn finish(&mut self, transaction: &mut Transaction) -> Result<(), StoreError> {
        for index in 0..self.all.len() {
            self.write(index, transaction)?;
            self.close(index)?;
        }
        Ok(())
    }
}
