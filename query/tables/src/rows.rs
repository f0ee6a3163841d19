//! Rows collected for a batch.

use std::sync::Arc;

use arrow_array::builder::UInt64Builder;
use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions, StringArray, TimestampNanosecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;
use tracepoint_reader::EventView;

use crate::column::Column;
use crate::layout::{Common, Layout};

/// The origin of rows. Usually shared by many consecutive rows.
#[derive(Debug)]
pub struct RowOrigin {
    /// The id of the process.
    pub pid: Option<u32>,
    /// The id of the thread.
    pub tid: Option<u32>,
    /// The name of the thread.
    pub thread: Option<String>,
    /// The name of the stream.
    pub stream: Arc<str>,
}

/// The common columns of a row, except its origin.
#[derive(Clone, Copy, Debug)]
pub struct RowHead {
    /// The time in nanoseconds since the epoch; `None` where the stream has no clock.
    pub ts: Option<i64>,
    /// The number of the event in its stream.
    pub seq: u64,
    /// Events lost before this one; `None` if some were lost, and their number is not known.
    pub lost_before: Option<u64>,
}

/// Rows collected for a batch.
#[derive(Debug)]
pub struct Rows {
    layout: Arc<Layout>,
    host: Option<String>,
    ts: Vec<Option<i64>>,
    seq: Vec<u64>,
    /// Indices of rows with losses before them.
    losses: Vec<(usize, Option<u64>)>,
    /// The origins, each with the index after its last row.
    origins: Vec<(Arc<RowOrigin>, usize)>,
    columns: Vec<Column>,
    /// Approximate size in memory in bytes.
    bytes: usize,
    /// Approximate additional size of the origins' texts in a batch, which repeats them for each row.
    origin_bytes: usize,
}

impl Rows {
    /// Creates an empty collection with these columns, for events of this host.
    pub fn new(layout: Arc<Layout>, host: Option<String>) -> Self {
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

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.seq.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.seq.is_empty()
    }

    /// Approximate size in memory in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends an event, and returns its approximate size in memory in bytes.
    #[inline]
    pub fn push(&mut self, head: RowHead, origin: &Arc<RowOrigin>, event: &EventView<'_>) -> usize {
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

    /// Approximate size of the batch of these rows in bytes.
    pub fn batch_bytes(&self) -> usize {
        self.bytes + self.origin_bytes
    }

    /// Takes the rows as a batch, and leaves none.
    ///
    /// # Errors
    /// No errors are known: the columns have the types and the length that the batch expects.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let count = self.len();
        let layout = Arc::clone(&self.layout);
        let common: Vec<_> = layout.common.iter().map(|column| self.common(*column, count)).collect();
        let fields = self.columns.iter_mut().map(Column::finish);
        let columns = common.into_iter().chain(fields).collect();
        (self.bytes, self.origin_bytes) = (0, 0);
        self.ts.clear();
        self.seq.clear();
        self.losses.clear();
        self.origins.clear();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(layout.schema()), columns, &options)
    }

    fn common(&mut self, column: Common, count: usize) -> ArrayRef {
        match column {
            Common::Ts => Arc::new(TimestampNanosecondArray::from(std::mem::take(&mut self.ts)).with_timezone("UTC")),
            Common::Host => Arc::new(std::iter::repeat_n(self.host.as_deref(), count).collect::<StringArray>()),
            Common::Pid => Arc::new(self.of_origins(|origin| origin.pid).collect::<UInt32Array>()),
            Common::Tid => Arc::new(self.of_origins(|origin| origin.tid).collect::<UInt32Array>()),
            Common::Thread => Arc::new(self.of_origins(|origin| origin.thread.as_deref()).collect::<StringArray>()),
            Common::Stream => Arc::new(self.of_origins(|origin| Some(&*origin.stream)).collect::<StringArray>()),
            Common::Seq => Arc::new(UInt64Array::from(std::mem::take(&mut self.seq))),
            Common::LostBefore => Arc::new(self.lost_before(count)),
        }
    }

    /// Returns a value of the origin for each row.
    fn of_origins<'a, T: Clone + 'a>(&'a self, of: impl Fn(&'a RowOrigin) -> T + 'a) -> impl Iterator<Item = T> + 'a {
        let mut begin = 0;
        self.origins.iter().flat_map(move |(origin, end)| {
            let count = end - std::mem::replace(&mut begin, *end);
            std::iter::repeat_n(of(origin), count)
        })
    }

    fn lost_before(&self, count: usize) -> UInt64Array {
        let mut lost = UInt64Builder::with_capacity(count);
        let mut begin = 0;
        for (row, events) in &self.losses {
            lost.append_value_n(0, row - begin);
            lost.append_option(*events);
            begin = row + 1;
        }
        lost.append_value_n(0, count - begin);
        lost.finish()
    }
}
