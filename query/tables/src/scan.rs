//! Reads a partition of a scan: converts packets to batches of rows.
//!
//! Packets are read sequentially, and their rows are collected in columns. Only the requested columns are decoded, and records of other events are
//! skipped. Once there are enough rows, they become batches. Memory holds one packet and the rows of one packet at a time.

mod batch;
mod collector;

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tracepoint_reader::{Damage, PacketRun};

use crate::description::{ScanDescription, Selection};
use crate::error::TablesError;
use crate::trace_tables::TraceTables;
use collector::Collector;

/// Counts of data read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanCounts {
    /// Packets that were read.
    pub packets: u64,
    /// Records in these packets, whether or not they became rows.
    pub records: u64,
    /// Rows.
    pub rows: u64,
}

/// The result of a step.
#[derive(Debug)]
pub enum ScanStep {
    /// A batch of rows.
    Rows(RecordBatch),
    /// The packet ended without enough rows for a batch.
    Packet,
    /// The end of the partition.
    End,
}

/// Reads the rows of one partition.
#[derive(Debug)]
pub struct Scan {
    tables: Arc<TraceTables>,
    description: Arc<ScanDescription>,
    /// The partition, and the index of its next run.
    next: (usize, usize),
    run: Option<PacketRun>,
    collector: Collector,
    ready: VecDeque<RecordBatch>,
    /// Number of rows still needed.
    left: usize,
    is_done: bool,
}

impl Scan {
    /// Creates a scan positioned before the first row of a partition.
    pub fn new(tables: Arc<TraceTables>, description: Arc<ScanDescription>, partition: usize) -> Self {
        let collector = Collector::new(&description);
        let left = description.limit.unwrap_or(usize::MAX);
        let (run, ready, is_done) = (None, VecDeque::new(), false);
        Self { tables, description, next: (partition, 0), run, collector, ready, left, is_done }
    }

    /// The counts so far.
    pub fn counts(&self) -> ScanCounts {
        self.collector.counts
    }

    /// Takes the damage found since the last call.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.collector.damage)
    }

    /// Reads up to the next batch or to the end of the next packet, so that the caller can stop in between.
    ///
    /// # Errors
    /// [`TablesError`]. The scan has ended then.
    pub fn step(&mut self) -> Result<ScanStep, TablesError> {
        if self.ready.is_empty() && !self.is_done && self.left > 0 {
            let read = match &self.description.selection {
                Selection::Losses => self.tables.losses().and_then(|rows| self.whole(&rows)),
                Selection::Account => self.tables.account().and_then(|rows| self.whole(&rows)),
                Selection::Events(_) | Selection::Common(_) => self.packet(),
            };
            if let Err(error) = read {
                self.is_done = true;
                return Err(error);
            }
        }
        match self.ready.pop_front() {
            Some(batch) if self.left > 0 => {
                let batch = batch.slice(0, batch.num_rows().min(self.left));
                self.left -= batch.num_rows();
                self.collector.counts.rows += batch.num_rows() as u64;
                Ok(ScanStep::Rows(batch))
            }
            None if !self.is_done && self.left > 0 => Ok(ScanStep::Packet),
            _ => Ok(ScanStep::End),
        }
    }

    /// Returns a table that is available as one batch.
    fn whole(&mut self, rows: &RecordBatch) -> Result<(), TablesError> {
        let batch = batch::adapted(rows, &self.description.schema)?;
        self.ready.extend((0..batch.num_rows()).step_by(self.description.batch_rows.max(1)).map(|begin| {
            let count = self.description.batch_rows.max(1).min(batch.num_rows() - begin);
            batch.slice(begin, count)
        }));
        self.is_done = true;
        Ok(())
    }

    /// Reads up to the end of a packet.
    fn packet(&mut self) -> Result<(), TablesError> {
        let Some(run) = &mut self.run else { return self.next_run() };
        let most = self.description.batch_rows.max(1).min(self.left.max(1));
        if !run.read(&mut self.collector, |collector| collector.rows() >= most) {
            self.run = None;
        }
        if self.collector.rows() >= most {
            self.ready.extend(self.collector.take(&self.description)?);
        }
        Ok(())
    }

    fn next_run(&mut self) -> Result<(), TablesError> {
        let (partition, number) = self.next;
        let runs = self.description.partitions.get(partition);
        let Some(run) = runs.and_then(|runs| runs.get(number)) else {
            self.ready.extend(self.collector.take(&self.description)?);
            self.is_done = true;
            return Ok(());
        };
        self.next.1 += 1;
        let stream = self.tables.stream(&self.description.streams[run.stream])?.clone();
        if !self.collector.is_of(&stream) {
            self.ready.extend(self.collector.take(&self.description)?);
        }
        self.collector.begin(&stream, &self.description);
        let collector = &self.collector;
        let losses = self.description.schema.field_with_name("lost_before").is_ok();
        self.run = Some(stream.index.read(run.packets.clone(), |id| collector.is_wanted(id), losses));
        Ok(())
    }
}
