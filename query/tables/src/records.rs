//! The rows of the tables without events: the account, and the losses.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use tracepoint_reader::{Damage, Loss, LossKind};

use crate::days;
use crate::layout::time_type;
use crate::place::HostSession;
use crate::streams::StreamState;

/// A row of a table without events.
pub trait Row: Sized {
    /// The name of the table, and of its directory in a store.
    const TABLE: &str;

    /// The rows as a batch.
    ///
    /// # Errors
    /// No errors are known.
    fn batch(rows: &[Self]) -> Result<RecordBatch, ArrowError>;
}

/// A single count of the account.
#[derive(Clone, Debug)]
pub struct AccountRow {
    /// The UUID of the trace.
    pub trace: Option<String>,
    /// The process.
    pub pid: Option<u32>,
    /// The counted object: `event`, `stream` or `trace`.
    pub scope: &'static str,
    /// The channel.
    pub channel: Option<u64>,
    /// The name of the event, equal to its table name.
    pub event: Option<String>,
    /// The name of the stream.
    pub stream: Option<Arc<str>>,
    /// The counted occurrence.
    pub what: String,
    /// The reason of the loss, for lost events.
    pub reason: Option<String>,
    /// The count.
    pub count: u64,
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

/// A piece of missing data.
#[derive(Clone, Debug)]
pub struct LossRow {
    /// The time range in nanoseconds since the epoch.
    pub times: Option<(i64, i64)>,
    /// The name of the stream.
    pub stream: Option<Arc<str>>,
    /// `events`, `packets`, `renumbered` or `damage`.
    pub what: &'static str,
    /// Number of events, if known.
    pub events: Option<u64>,
    /// Number of packets, if known.
    pub packets: Option<u64>,
    /// The kind of damage.
    pub reason: Option<String>,
}

impl LossRow {
    /// The row for a loss in this stream before the next packet.
    pub fn of_loss(state: &mut StreamState, loss: &Loss) -> Self {
        let (events, packets) = state.loss(loss.kind);
        let what = match loss.kind {
            LossKind::Events(_) => "events",
            LossKind::Packets { .. } => "packets",
            _ => "renumbered",
        };
        let (times, stream) = (state.has_clock.then_some((loss.from_ns, loss.to_ns)), Some(Arc::clone(&state.name)));
        state.last_day = state.last_day.max(times.map(|(_, to)| days::of(to)));
        Self { times, stream, what, events, packets, reason: None }
    }

    /// The row for damage, with the host and session of its stream, if that is one of `streams`.
    pub fn of_damage<'a>(mut streams: impl Iterator<Item = &'a StreamState>, damage: &Damage) -> (HostSession, Self) {
        let state = streams.find(|state| state.stream.file == damage.file);
        let times = state.filter(|state| state.has_clock).and_then(|state| state.last_ns.zip(state.last_ns));
        let place = state.map_or_else(HostSession::default, |state| state.place.clone());
        let row = Self {
            times,
            stream: state.map(|state| Arc::clone(&state.name)),
            what: "damage",
            events: None,
            packets: None,
            reason: Some(damage.to_string()),
        };
        (place, row)
    }

    /// The day of its partition.
    pub fn day(&self) -> Option<i64> {
        self.times.map(|(_, to)| days::of(to))
    }
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
