//! The operations of a latency, which events begin and end.

use super::{Columns, Moment, Role, Statistic};
use crate::flights::{self, BeginOutcome};
use crate::groups;
use crate::key::Key;
use crate::layout::{HEADER, counter};
use crate::memory::{Cell, CellPlace, Memory};
use std::sync::atomic::AtomicU64;
use tracepoint_core::field::Value;

impl Statistic {
    /// Processes an event of a latency. A separate function, so that the shorter paths of [`record`](Self::record) do not save registers for it.
    #[inline(never)]
    pub(super) fn operation<'v>(
        &self,
        cell: Cell<'_>,
        columns: &Columns,
        moment: Moment,
        get: impl Fn(usize) -> Option<Value<'v>>,
    ) {
        let key = match columns.value {
            None => Some(Value::Unsigned(u64::from(moment.tid))),
            Some(index) => get(index),
        };
        let words = self.memory.words();
        if columns.role == Role::Begin {
            self.begin(words, cell, moment.time, key);
        } else if let Some(duration) = self.end(words, cell, moment.time, key) {
            cell.add_integer(self.row(cell, columns, get), duration);
        }
    }

    /// [`record`](Self::record) for an event that begins an operation with this key.
    #[inline(always)]
    pub(crate) fn begin_in(&self, cell: CellPlace, time: u64, key: Option<Value<'_>>) {
        let words = self.memory.words();
        self.begin(words, Cell::new(words, cell), time, key);
    }

    /// [`record`](Self::record) for an event that ends an operation with this key, of a latency without groups.
    #[inline(always)]
    pub(crate) fn end_in(&self, cell: CellPlace, time: u64, key: Option<Value<'_>>) {
        let words = self.memory.words();
        let cell = Cell::new(words, cell);
        if let Some(duration) = self.end(words, cell, time, key) {
            cell.add_integer(counter::ALL, duration);
        }
    }

    #[inline(always)]
    fn begin(&self, words: &[AtomicU64], cell: Cell<'_>, time: u64, key: Option<Value<'_>>) {
        let (Some(identity), Some(table)) = (self.operation_identity(key), words[HEADER..].first_chunk()) else {
            return cell.increment(counter::UNUSABLE);
        };
        cell.increment(counter::BEGUN);
        match flights::begin(table, identity, time) {
            BeginOutcome::New => {}
            BeginOutcome::Replaced => cell.increment(counter::REPLACED),
            BeginOutcome::NoRoom => cell.increment(counter::NO_ROOM),
        }
    }

    /// The duration of the operation that ends; `None` if it has not begun.
    #[inline(always)]
    fn end(&self, words: &[AtomicU64], cell: Cell<'_>, time: u64, key: Option<Value<'_>>) -> Option<u64> {
        let (Some(identity), Some(table)) = (self.operation_identity(key), words[HEADER..].first_chunk()) else {
            cell.increment(counter::UNUSABLE);
            return None;
        };
        let begin = flights::end(table, identity);
        if begin.is_none() {
            cell.increment(counter::UNMATCHED);
        }
        // Threads may read the clock in one order and get here in another.
        begin.map(|begin| time.saturating_sub(begin))
    }

    /// The identity of the operation with this key. Most keys are numbers.
    #[inline(always)]
    fn operation_identity(&self, key: Option<Value<'_>>) -> Option<u64> {
        match key {
            Some(Value::Unsigned(number)) => Some(groups::identity(&[Key::Unsigned(number)], &self.hasher)),
            key => self.other_identity(key),
        }
    }

    #[inline(never)]
    fn other_identity(&self, key: Option<Value<'_>>) -> Option<u64> {
        Some(groups::identity(&[Key::of(&key?)?], &self.hasher))
    }
}
