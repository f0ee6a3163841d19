//! The losses and the account of a trace. This reads the complete trace, but decodes no fields.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use tracepoint_reader::metadata::{EventClass, StreamClass};
use tracepoint_reader::{Damage, EventView, Loss, Packet, Stream, Trace, TraceVisitor};

use crate::accounts::{StreamCounts, account_rows};
use crate::days;
use crate::place::HostSession;
use crate::records::{LossRow, Row};
use crate::streams::StreamState;

/// The rows of the tables without events.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) losses: RecordBatch,
    pub(crate) account: RecordBatch,
    /// Number of damaged parts of the trace.
    pub(crate) damage: u64,
}

impl Survey {
    pub(crate) fn of(
        trace: &Trace,
        name: &dyn Fn(&Arc<EventClass>, &Arc<StreamClass>) -> String,
    ) -> Result<Self, ArrowError> {
        let mut surveyor = Surveyor::default();
        trace.metadata_damage().for_each(|damage| surveyor.damage(&damage));
        trace.visit_packets(&mut surveyor, &mut |_, _| {});
        let Surveyor { streams, losses, damage, .. } = surveyor;
        let named = |(state, counts): &(StreamState, HashMap<u64, u64>)| -> Vec<(String, u64)> {
            let class = &state.stream.class;
            let event = |(id, count): (&u64, &u64)| Some((name(class.events.get(id)?, class), *count));
            counts.iter().filter_map(event).collect()
        };
        let events: Vec<_> = streams.iter().map(named).collect();
        let counts = streams.iter().zip(&events).map(|((state, _), events)| StreamCounts {
            state,
            events: events.iter().map(|(name, count)| (name.as_str(), *count)).collect(),
        });
        let counts: Vec<_> = counts.collect();
        let mut table = |event: &_, class: &_| Ok::<_, ArrowError>(name(event, class));
        let mut accounts = Vec::new();
        for part in account_rows(trace, &counts, &mut table)? {
            accounts.extend(part.rows.into_iter().map(|row| (part.place.clone(), part.day, row)));
        }
        Ok(Self { losses: batch(losses)?, account: batch(accounts)?, damage })
    }
}

/// Combines rows with their partition columns.
fn batch<R: Row>(rows: Vec<(HostSession, Option<i64>, R)>) -> Result<RecordBatch, ArrowError> {
    let day = |day: Option<i64>| day.and_then(|day| i32::try_from(day).ok());
    let days: Date32Array = rows.iter().map(|(_, of_row, _)| day(*of_row)).collect();
    let hosts: StringArray = rows.iter().map(|(place, ..)| place.host_column()).collect();
    let sessions: StringArray = rows.iter().map(|(place, ..)| place.session_column()).collect();
    let records: Vec<_> = rows.into_iter().map(|(.., row)| row).collect();
    let batch = R::batch(&records)?;
    let keys = [("day", DataType::Date32), ("host", DataType::Utf8), ("session", DataType::Utf8)];
    let keys = keys.map(|(name, ty)| Arc::new(Field::new(name, ty, true)));
    let schema = Schema::new(batch.schema().fields().iter().cloned().chain(keys).collect::<Vec<_>>());
    let of_keys: [ArrayRef; 3] = [Arc::new(days), Arc::new(hosts), Arc::new(sessions)];
    RecordBatch::try_new(Arc::new(schema), batch.columns().iter().cloned().chain(of_keys).collect())
}

/// Visits the packets of a trace.
#[derive(Default)]
struct Surveyor {
    /// Each stream with its number of events by id.
    streams: Vec<(StreamState, HashMap<u64, u64>)>,
    /// By the address of the stream.
    known: HashMap<usize, usize>,
    /// The stream of the packet that began last.
    current: usize,
    losses: Vec<(HostSession, Option<i64>, LossRow)>,
    damage: u64,
}

impl Surveyor {
    fn stream(&mut self, stream: &Arc<Stream>) -> usize {
        let new = self.streams.len();
        let index = *self.known.entry(Arc::as_ptr(stream) as usize).or_insert(new);
        if index == new {
            self.streams.push((StreamState::new(stream), HashMap::new()));
        }
        index
    }
}

impl TraceVisitor for Surveyor {
    fn loss(&mut self, loss: &Loss) {
        let index = self.stream(&loss.stream);
        let state = &mut self.streams[index].0;
        let row = LossRow::of_loss(state, loss);
        self.losses.push((state.place.clone(), row.day(), row));
    }

    fn packet(&mut self, stream: &Arc<Stream>, packet: &Packet) -> ControlFlow<()> {
        self.current = self.stream(stream);
        self.streams[self.current].0.packet(packet);
        ControlFlow::Continue(())
    }

    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        let (state, counts) = &mut self.streams[self.current];
        let head = state.event(event);
        state.last_day = state.last_day.max(head.ts.map(days::of));
        *counts.entry(event.class().id).or_insert(0) += 1;
    }

    fn damage(&mut self, damage: &Damage) {
        self.damage += 1;
        let (place, row) = LossRow::of_damage(self.streams.iter().map(|(state, _)| state), damage);
        self.losses.push((place, row.day(), row));
    }
}
