//! A statistic: its description, its memory, and the processing of events.

mod operation;

use crate::groups;
use crate::kept;
use crate::key::Key;
use crate::layout::{Kind, Layout, SECONDS, counter};
use crate::memory::{Cell, CellPlace, Cells, Memory, allocate, load};
use crate::snapshot::Snapshot;
use crate::spec::{Measure, StatisticError, StatisticSpec};
use crate::values::{Measurement, Scale};
use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_core::field::{FieldType, Value};
use tracepoint_ring::thread::position;

/// A statistic over events, updated by the threads that fire them.
///
/// It may observe several events. Its memory is allocated when it is created and never grows; [`words`](Self::words) returns its size.
pub struct Statistic {
    spec: StatisticSpec,
    layout: Layout,
    memory: Store,
    hasher: RandomState,
}

/// The words. Those on the heap are accessed without dynamic dispatch.
enum Store {
    Heap(Box<[AtomicU64]>),
    Given(Box<dyn Memory>),
}

impl Memory for Store {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        match self {
            Self::Heap(words) => words,
            Self::Given(memory) => memory.words(),
        }
    }

    #[inline(always)]
    fn increment(&self, at: usize, is_own: bool) {
        match self {
            Self::Heap(words) => words.increment(at, is_own),
            Self::Given(memory) => memory.increment(at, is_own),
        }
    }

    #[inline(always)]
    fn add_integer(&self, row: usize, value: u64, is_own: bool) {
        match self {
            Self::Heap(words) => words.add_integer(row, value, is_own),
            Self::Given(memory) => memory.add_integer(row, value, is_own),
        }
    }
}

impl std::fmt::Debug for Statistic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statistic")
            .field("spec", &self.spec.to_string())
            .field("words", &self.words())
            .finish_non_exhaustive()
    }
}

/// The kind of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// An integer or an enumeration.
    Integer,
    /// An integer: the nanoseconds of a duration.
    Duration,
    /// A floating-point number.
    Float,
    /// A boolean, a text or a path.
    Other,
    /// An array or a sequence.
    List,
}

impl From<&FieldType> for FieldKind {
    fn from(ty: &FieldType) -> Self {
        match ty {
            FieldType::Integer(_) | FieldType::Enum { .. } => Self::Integer,
            FieldType::Duration => Self::Duration,
            FieldType::Float { .. } | FieldType::Any => Self::Float,
            FieldType::Array { .. } | FieldType::Sequence { .. } => Self::List,
            FieldType::Optional { value } => (*value).into(),
            _ => Self::Other,
        }
    }
}

/// The role of an event in a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It is observed. In a latency, it ends an operation.
    Observed,
    /// It begins an operation of a latency.
    Begin,
}

/// The role of an event in a statistic, and the indices of the fields used.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    role: Role,
    /// The measured field, or the field that identifies an operation.
    value: Option<usize>,
    keys: [usize; 2],
}

/// The time and thread of an event.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    time: u64,
    tid: u32,
    /// Index of the calling thread, which may have a cell of its own.
    thread: usize,
}

impl Moment {
    /// An event on the calling thread, at `time` nanoseconds on the clock of the process.
    #[inline]
    pub fn here(time: u64) -> Self {
        match position() {
            Some(position) => Self { time, tid: position.tid, thread: position.index },
            None => Self::recorded(time, 0),
        }
    }

    /// A recorded event of the thread with this id.
    pub fn recorded(time: u64, tid: u32) -> Self {
        Self { time, tid, thread: usize::MAX }
    }

    /// Selects the cell to count in, which no other thread may use at the same time. A number that is too large selects the shared cell.
    #[must_use]
    pub fn counted_in(self, cell: usize) -> Self {
        Self { thread: cell, ..self }
    }
}

impl Columns {
    /// The measured field, or the field that identifies an operation.
    pub(crate) fn value(&self) -> Option<usize> {
        self.value
    }
}

impl StatisticSpec {
    /// The roles of the event named `name` (`provider:name`). An event of a latency can both end an operation and begin the next.
    /// Events with the same name but different fields are recorded as `name`, `name#2`, …; all of them match.
    pub fn roles(&self, name: &str) -> Vec<Role> {
        let numbered = name.rsplit_once('#').filter(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit()));
        let name = numbered.map_or(name, |(name, _)| name);
        match &self.measure {
            Measure::Latency { begin, end, .. } => {
                let roles = [(end, Role::Observed), (begin, Role::Begin)];
                roles.into_iter().filter(|(event, _)| *event == name).map(|(_, role)| role).collect()
            }
            _ => vec![Role::Observed],
        }
    }

    /// Looks up the statistic's fields among the fields of an event, and checks their types.
    ///
    /// # Errors
    ///
    /// If a field is missing or has an unsuitable type. The message names the event and its fields.
    pub fn columns(&self, role: Role, event: &str, fields: &[(&str, FieldKind)]) -> Result<Columns, StatisticError> {
        let find = |name: &str, wanted: &'static str, fits: fn(FieldKind) -> bool| {
            let Some(index) = fields.iter().position(|(field, _)| *field == name) else {
                let fields = fields.iter().map(|(field, _)| (*field).to_owned()).collect();
                return Err(StatisticError::NoField { event: event.to_owned(), field: name.to_owned(), fields });
            };
            if fits(fields[index].1) {
                Ok(index)
            } else {
                Err(StatisticError::FieldType { event: event.to_owned(), field: name.to_owned(), wanted })
            }
        };
        let is_number = |kind| matches!(kind, FieldKind::Integer | FieldKind::Duration | FieldKind::Float);
        let number = |name| find(name, "a number", is_number);
        let single = |name| find(name, "a single value", |kind| kind != FieldKind::List);
        let value = match &self.measure {
            Measure::Count | Measure::Rate | Measure::Latency { by: None, .. } => None,
            Measure::Histogram { field } => Some(number(field)?),
            Measure::Latency { by: Some(field), .. } | Measure::Last { field, .. } | Measure::Top { field, .. } => {
                Some(single(field)?)
            }
        };
        let mut keys = [0; 2];
        if role == Role::Observed {
            for (key, name) in keys.iter_mut().zip(&self.by) {
                *key = single(name)?;
            }
        }
        Ok(Columns { role, value, keys })
    }

    /// Returns whether the values are nanoseconds: for a latency, a duration, and an integer whose name ends with `_ns`.
    pub fn is_duration(&self, fields: &[(&str, FieldKind)]) -> bool {
        match &self.measure {
            Measure::Latency { .. } => true,
            Measure::Histogram { field } => fields.iter().any(|(name, kind)| {
                name == field && (*kind == FieldKind::Duration || *kind == FieldKind::Integer && name.ends_with("_ns"))
            }),
            _ => false,
        }
    }

    /// Returns whether the measured field is a floating-point number in an event with these fields.
    pub fn is_float(&self, fields: &[(&str, FieldKind)]) -> bool {
        matches!(&self.measure, Measure::Histogram { field } if fields.contains(&(field, FieldKind::Float)))
    }
}

impl Statistic {
    /// Creates a statistic in heap memory, with all pages touched. `is_float` selects a histogram of floating-point values.
    ///
    /// # Errors
    ///
    /// If the description is not supported.
    pub fn new(spec: StatisticSpec, is_float: bool) -> Result<Self, StatisticError> {
        let words = Self::words_for(&spec, is_float)?;
        Self::made(spec, is_float, Store::Heap(allocate(words)))
    }

    /// The number of 64-bit words that the statistic needs.
    ///
    /// # Errors
    ///
    /// If the description is not supported.
    pub fn words_for(spec: &StatisticSpec, is_float: bool) -> Result<usize, StatisticError> {
        Ok(Layout::of(spec, scale(is_float))?.words())
    }

    /// Creates a statistic in zeroed memory.
    ///
    /// # Errors
    ///
    /// If the description is not supported, or the memory is too small or contains a statistic already.
    pub fn in_memory(spec: StatisticSpec, is_float: bool, memory: Box<dyn Memory>) -> Result<Self, StatisticError> {
        Self::made(spec, is_float, Store::Given(memory))
    }

    fn made(spec: StatisticSpec, is_float: bool, memory: Store) -> Result<Self, StatisticError> {
        let layout = Layout::of(&spec, scale(is_float))?;
        if memory.words().len() < layout.words() || load(memory.words(), 0) != 0 {
            return Err(StatisticError::Memory);
        }
        layout.store(&memory, &spec.to_string());
        Ok(Self { spec, layout, memory, hasher: RandomState::new() })
    }

    /// A statistic with the same description and no events, in heap memory.
    #[must_use]
    pub fn empty(&self) -> Self {
        let memory = Store::Heap(allocate(self.layout.words()));
        self.layout.store(&memory, &self.spec.to_string());
        Self { spec: self.spec.clone(), layout: self.layout, memory, hasher: self.hasher.clone() }
    }

    /// The description of the statistic.
    pub fn spec(&self) -> &StatisticSpec {
        &self.spec
    }

    /// The size of the memory in 64-bit words.
    pub fn words(&self) -> usize {
        self.layout.words()
    }

    /// The results so far. Events that happened before (by a join, or by the end of a subscription) are included. Concurrent events may be
    /// included.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.memory, &self.layout, &self.spec.to_string())
    }

    /// Returns the results since the last call, and resets them, except operations in flight. Must not be called while events are added: threads
    /// change the words of their own cells without a lock.
    #[doc(hidden)]
    pub fn take(&self) -> Snapshot {
        let snapshot = self.snapshot();
        let cells = self.layout.cells;
        self.memory.words()[cells.start..cells.end()].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        snapshot
    }

    /// Processes an event; `get` returns its fields by index. Takes no lock and allocates nothing; may be called in a signal handler.
    #[inline]
    pub fn record<'v>(&self, columns: &Columns, moment: Moment, get: impl Fn(usize) -> Option<Value<'v>>) {
        let (cell, layout) = (self.cell(moment.thread), &self.layout);
        match layout.kind {
            Kind::Count => cell.increment(self.row(cell, columns, &get)),
            Kind::Histogram(scale) => {
                match columns.value.and_then(&get).and_then(|value| Measurement::of(scale, &value)) {
                    Some(value) => cell.add(self.row(cell, columns, &get), value),
                    None => cell.increment(counter::UNUSABLE),
                }
            }
            Kind::Latency => self.operation(cell, columns, moment, get),
            Kind::Rate => {
                cell.increment(counter::EVENTS);
                count_second(cell, layout.row(Some(0)), moment.time);
            }
            Kind::Last | Kind::Top => self.keep(cell, columns, moment, get),
        }
    }

    /// [`record`](Self::record) for a count without groups.
    #[inline(always)]
    pub(crate) fn count_in(&self, cell: CellPlace) {
        self.memory.increment(cell.start + counter::ALL, cell.is_own);
    }

    /// [`record`](Self::record) for a histogram without groups.
    #[inline(always)]
    pub(crate) fn distribute_in(&self, cell: CellPlace, value: Option<Value<'_>>) {
        let Kind::Histogram(scale) = self.layout.kind else { return };
        let integer = match value {
            Some(Value::Unsigned(value)) => value,
            Some(Value::Signed(value)) if value >= 0 => value.cast_unsigned(),
            // Out of line, so that integers need no stack frame.
            value => return self.distribute_other(cell, scale, value),
        };
        self.memory.add_integer(cell.start + counter::ALL, integer, cell.is_own);
    }

    #[inline(never)]
    fn distribute_other(&self, cell: CellPlace, scale: Scale, value: Option<Value<'_>>) {
        let cell = Cell::new(self.memory.words(), cell);
        match value.and_then(|value| Measurement::of(scale, &value)) {
            Some(value) => cell.add(counter::ALL, value),
            None => cell.increment(counter::UNUSABLE),
        }
    }

    pub(crate) fn cells(&self) -> Cells {
        self.layout.cells
    }

    pub(crate) fn is_grouped(&self) -> bool {
        self.layout.keys > 0
    }

    /// The cell of this thread.
    #[inline]
    fn cell(&self, thread: usize) -> Cell<'_> {
        Cell::new(self.memory.words(), self.layout.cells.of(thread))
    }

    /// Stores a value among the last, or the most frequent ones.
    #[inline(never)]
    fn keep<'v>(&self, cell: Cell<'_>, columns: &Columns, moment: Moment, get: impl Fn(usize) -> Option<Value<'v>>) {
        cell.increment(counter::EVENTS);
        let Some(key) = columns.value.and_then(get).and_then(|value| Key::of(&value)) else {
            return cell.increment(counter::UNUSABLE);
        };
        let is_kept = if self.layout.kind == Kind::Last {
            kept::last(cell, &self.layout, moment.time, &key)
        } else {
            kept::top(cell, &self.layout, groups::identity(&[key], &self.hasher), &key)
        };
        if !is_kept {
            cell.increment(counter::SKIPPED);
        }
    }

    /// The row of the event's group.
    #[inline]
    fn row<'v>(&self, cell: Cell<'_>, columns: &Columns, get: impl Fn(usize) -> Option<Value<'v>>) -> usize {
        if self.layout.keys == 0 { counter::ALL } else { self.group_row(cell, columns, get) }
    }

    #[inline(never)]
    fn group_row<'v>(&self, cell: Cell<'_>, columns: &Columns, get: impl Fn(usize) -> Option<Value<'v>>) -> usize {
        let layout = &self.layout;
        // Count independently of the groups.
        cell.increment(counter::EVENTS);
        let key = |at: usize| get(columns.keys[at]).and_then(|value| Key::of(&value));
        let words = self.memory.words();
        let group = match (key(0), layout.keys) {
            (Some(first), 1) => groups::find(words, layout, &[first], &self.hasher),
            (Some(first), _) => match key(1) {
                Some(second) => groups::find(words, layout, &[first, second], &self.hasher),
                None => return layout.ungrouped_row(),
            },
            (None, _) => return layout.ungrouped_row(),
        };
        layout.row(group)
    }
}

fn scale(is_float: bool) -> Scale {
    if is_float { Scale::Any } else { Scale::Integer }
}

/// Counts an event in the second of `time`. The upper half of a word is the second, the lower half the count.
fn count_second(cell: Cell<'_>, row: usize, time: u64) {
    let second = time / 1_000_000_000;
    let at = row + second as usize % SECONDS;
    let word = cell.word(at);
    let before = word.load(Ordering::Relaxed);
    if before >> 32 == second & 0xFFFF_FFFF {
        return cell.increment(at);
    }
    // If another thread or a signal handler has just started the same second, add to its word.
    if word.compare_exchange(before, second << 32 | 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        cell.increment(at);
    }
}
