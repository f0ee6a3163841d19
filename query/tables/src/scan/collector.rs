//! Collects the rows of packets.

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use tracepoint_reader::{Damage, EventView, Loss, Packet, Stream, TraceVisitor};

use super::{ScanCounts, batch};
use crate::description::{ScanDescription, Selection};
use crate::error::TablesError;
use crate::layout::Layout;
use crate::rows::Rows;
use crate::streams::StreamState;
use crate::trace_tables::TableStream;

/// A kind of event in the current stream, if it is selected.
#[derive(Debug)]
struct Slot {
    /// All of its columns, because the contexts contain the origin.
    layout: Arc<Layout>,
    /// Index of the rows that collect its events.
    rows: usize,
    /// Index of its name.
    name: u32,
}

/// Rows with equal columns.
#[derive(Debug)]
struct TableRows {
    rows: Rows,
    /// The index of each row's event name; empty if names are not requested.
    names: Vec<u32>,
}

/// Collects the rows of a stream's events.
#[derive(Debug)]
pub(super) struct Collector {
    times: Range<Option<i64>>,
    has_names: bool,
    tables: HashSet<String>,
    stream: Option<(TableStream, StreamState)>,
    /// By the id of the event.
    slots: HashMap<u64, Slot>,
    collected: Vec<TableRows>,
    names: Vec<Arc<str>>,
    row_count: usize,
    pub(super) counts: ScanCounts,
    pub(super) damage: Vec<Damage>,
}

impl Collector {
    pub(super) fn new(description: &ScanDescription) -> Self {
        Self {
            times: description.times.clone(),
            has_names: description.schema.field_with_name("event").is_ok(),
            tables: description.selection.tables().iter().cloned().collect(),
            stream: None,
            slots: HashMap::new(),
            collected: Vec::new(),
            names: Vec::new(),
            row_count: 0,
            counts: ScanCounts::default(),
            damage: Vec::new(),
        }
    }

    /// Number of collected rows.
    pub(super) fn rows(&self) -> usize {
        self.row_count
    }

    /// Returns whether this is the stream whose rows are being collected.
    pub(super) fn is_of(&self, stream: &TableStream) -> bool {
        self.stream.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(&known.index, &stream.index))
    }

    pub(super) fn is_wanted(&self, id: u64) -> bool {
        self.slots.contains_key(&id)
    }

    /// Starts a stream. The rows of the previous one must have been taken.
    pub(super) fn begin(&mut self, stream: &TableStream, description: &ScanDescription) {
        let is_same = self.is_of(stream);
        self.stream = Some((stream.clone(), StreamState::new(stream.index.stream())));
        if is_same {
            return;
        }
        self.slots.clear();
        self.collected.clear();
        let wanted = |name: &str| {
            let is_column = |name: &str| description.schema.field_with_name(name).is_ok();
            is_column(name) || (name == "ts" && is_column("day"))
        };
        let common = Arc::new(Layout::common().select(wanted));
        for (id, kind) in stream.kinds.iter().filter(|(_, kind)| self.tables.contains(&*kind.table)) {
            let is_common = matches!(description.selection, Selection::Common(_));
            let layout = if is_common { Arc::clone(&common) } else { Arc::new(kind.layout.select(wanted)) };
            if !is_common || self.collected.is_empty() {
                let rows = Rows::new(layout, stream.place.host.clone());
                self.collected.push(TableRows { rows, names: Vec::new() });
            }
            let rows = self.collected.len() - 1;
            let name = self.names.iter().position(|known| *known == kind.table).unwrap_or_else(|| {
                self.names.push(Arc::clone(&kind.table));
                self.names.len() - 1
            });
            let name = u32::try_from(name).unwrap_or(u32::MAX);
            self.slots.insert(*id, Slot { layout: Arc::clone(&kind.layout), rows, name });
        }
    }

    /// Takes the collected rows as batches.
    pub(super) fn take(&mut self, description: &ScanDescription) -> Result<Vec<RecordBatch>, TablesError> {
        self.row_count = 0;
        let Some((stream, _)) = &self.stream else { return Ok(Vec::new()) };
        let session = stream.place.session_column();
        let mut batches = Vec::new();
        for TableRows { rows, names } in self.collected.iter_mut().filter(|collected| !collected.rows.is_empty()) {
            let rows = rows.take()?;
            let names = std::mem::take(names);
            let most = description.batch_rows.max(1);
            for begin in (0..rows.num_rows()).step_by(most) {
                let rows = rows.slice(begin, most.min(rows.num_rows() - begin));
                let computed = |column: &str| -> Option<ArrayRef> {
                    match column {
                        "day" => rows.column_by_name("ts").map(|ts| batch::days_of(ts)),
                        "session" => {
                            let session = std::iter::repeat_n(session.as_deref(), rows.num_rows());
                            Some(Arc::new(session.collect::<StringArray>()))
                        }
                        "event" => {
                            let names = names[begin..begin + rows.num_rows()].iter();
                            let name = |name: &u32| Some(&*self.names[*name as usize]);
                            Some(Arc::new(names.map(name).collect::<StringArray>()))
                        }
                        _ => None,
                    }
                };
                batches.push(batch::adapted_with(&rows, &description.schema, computed)?);
            }
        }
        Ok(batches)
    }
}

impl TraceVisitor for Collector {
    fn loss(&mut self, loss: &Loss) {
        if let Some((_, state)) = &mut self.stream {
            state.loss(loss.kind);
        }
    }

    fn packet(&mut self, _: &Arc<Stream>, packet: &Packet) -> ControlFlow<()> {
        self.counts.packets += 1;
        if let Some((_, state)) = &mut self.stream {
            state.packet(packet);
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        let Some((_, state)) = &mut self.stream else { return };
        self.counts.records += 1;
        let head = state.event(event);
        let Range { start, end } = self.times;
        let is_outside = |ts| start.is_some_and(|start| ts < start) || end.is_some_and(|end| ts >= end);
        let is_outside = head.ts.is_some_and(is_outside);
        let Some(slot) = self.slots.get(&event.class().id).filter(|_| !is_outside) else { return };
        let TableRows { rows, names } = &mut self.collected[slot.rows];
        let origin = state.origin(&slot.layout, event);
        rows.push(head, origin, event);
        if self.has_names {
            names.push(slot.name);
        }
        self.row_count += 1;
    }

    fn damage(&mut self, damage: &Damage) {
        self.damage.push(damage.clone());
    }
}
