//! The rows of one partition that are not written yet.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray};
use arrow_schema::ArrowError;
use tracepoint_reader::EventView;

use crate::column::Column;
use crate::layout::Layout;

/// Where rows are from: the same for many in a row.
#[derive(Debug)]
pub(crate) struct RowOrigin {
    pub(crate) pid: Option<u32>,
    pub(crate) tid: Option<u32>,
    pub(crate) thread: Option<String>,
    pub(crate) stream: Arc<str>,
}

/// The common columns of one row, but its origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowHead {
    /// `None` where the stream has no clock.
    pub(crate) ts: Option<i64>,
    pub(crate) seq: u64,
    /// `None` if events were lost, and it is not known how many.
    pub(crate) lost_before: Option<u64>,
}

/// Rows of one partition.
#[derive(Debug)]
pub(crate) struct Rows {
    layout: Arc<Layout>,
    host: Option<String>,
    ts: Vec<Option<i64>>,
    seq: Vec<u64>,
    /// The rows with losses before them.
    losses: Vec<(usize, Option<u64>)>,
    /// The origins, each with the number of the row behind its last one.
    origins: Vec<(Arc<RowOrigin>, usize)>,
    columns: Vec<Column>,
    /// About how much memory they take.
    pub(crate) bytes: usize,
    /// About how much more the texts of their origins take in a batch, which has them once for each row.
    origin_bytes: usize,
}

impl Rows {
    pub(crate) fn new(layout: Arc<Layout>, host: Option<String>) -> Self {
        let columns = layout.columns();
        Self {
            layout,
            host,
            ts: vec![],
            seq: vec![],
            losses: vec![],
            origins: vec![],
            columns,
            bytes: 0,
            origin_bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.seq.len()
    }

    /// Appends an event, and returns about how many bytes of memory it takes.
    #[inline]
    pub(crate) fn push(&mut self, head: RowHead, origin: &Arc<RowOrigin>, event: &EventView<'_>) -> usize {
        if head.lost_before != Some(0) {
            self.losses.push((self.len(), head.lost_before));
        }
        self.ts.push(head.ts);
        self.seq.push(head.seq);
        match self.origins.last_mut() {
            Some((last, end)) if Arc::ptr_eq(last, origin) => *end += 1,
            _ => self.origins.push((Arc::clone(origin), self.seq.len())),
        }
        let bytes = 24 + self.layout.append(event, &mut self.columns);
        self.bytes += bytes;
        let thread = origin.thread.as_ref().map_or(0, String::len);
        self.origin_bytes += self.host.as_ref().map_or(0, String::len) + thread + origin.stream.len();
        bytes
    }

    /// About how much memory the batch of these rows takes.
    pub(crate) fn batch_bytes(&self) -> usize {
        self.bytes + self.origin_bytes
    }

    /// The rows as a batch; none are left then.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let count = self.len();
        let (mut pid, mut tid) = (UInt32Builder::with_capacity(count), UInt32Builder::with_capacity(count));
        let (mut thread, mut stream) = (StringBuilder::new(), StringBuilder::new());
        let mut begin = 0;
        for (origin, end) in self.origins.drain(..) {
            for _ in begin..end {
                pid.append_option(origin.pid);
                tid.append_option(origin.tid);
                thread.append_option(origin.thread.as_deref());
                stream.append_value(&origin.stream);
            }
            begin = end;
        }
        let mut lost = UInt64Builder::with_capacity(count);
        let mut begin = 0;
        for (row, events) in self.losses.drain(..) {
            lost.append_value_n(0, row - begin);
            lost.append_option(events);
            begin = row + 1;
        }
        lost.append_value_n(0, count - begin);
        let ts = TimestampNanosecondArray::from(std::mem::take(&mut self.ts)).with_timezone("UTC");
        let seq = arrow_array::UInt64Array::from(std::mem::take(&mut self.seq));
        let host: StringArray = std::iter::repeat_n(self.host.as_deref(), count).collect();
        let common: [ArrayRef; 8] = [
            Arc::new(ts),
            Arc::new(host),
            Arc::new(pid.finish()),
            Arc::new(tid.finish()),
            Arc::new(thread.finish()),
            Arc::new(stream.finish()),
            Arc::new(seq),
            Arc::new(lost.finish()),
        ];
        let fields = self.columns.iter_mut().map(Column::finish);
        (self.bytes, self.origin_bytes) = (0, 0);
        RecordBatch::try_new(Arc::clone(&self.layout.schema), common.into_iter().chain(fields).collect())
    }
}
