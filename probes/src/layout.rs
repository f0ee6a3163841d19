//! The memory layout of a statistic, in 64-bit words. `docs/format-statistics.md` documents it for other readers.
//!
//! ```text
//!   header (80) │ operations in flight │ groups │ cell 0 │ … │ cell N-1 │ shared cell
//!                                                  └ counters (8) │ row 0 │ row 1 │ …
//! ```
//!
//! A row has the counters of one group. The last two rows of a grouped statistic are the overflow row, for events whose group found no room,
//! and the ungrouped row, for events without a key. A statistic without groups has one row.

use crate::key::KEY_WORDS;
use crate::memory::{Cells, Memory, OWN_CELLS, load};
use crate::spec::{MAX_GROUPS, MAX_IN_FLIGHT, MAX_KEPT, Measure, StatisticError, StatisticSpec};
use crate::values::Scale;
use std::sync::atomic::Ordering;

/// "TPSTAT2\0" in the first word, stored last. Rows of version 1 had neither minimum, maximum nor sum.
const MAGIC: u64 = u64::from_le_bytes(*b"TPSTAT2\0");
pub(crate) const HEADER: usize = 80;
/// Words of the header.
const KIND: usize = 1;
const SIZE: usize = 2;
const OWN: usize = 3;
const GROUPS: usize = 4;
const KEYS: usize = 5;
const PARAMETER: usize = 6;
const TEXT_SIZE: usize = 7;
const TEXT: usize = 8;
const TEXT_BYTES: usize = (HEADER - TEXT) * 8;

/// Ways per set of a hash table: their identities fill a cache line.
pub(crate) const WAYS: usize = 8;
/// Number of sets in the table of operations in flight.
pub(crate) const SETS: usize = MAX_IN_FLIGHT / WAYS;
/// Words of that table: identities and times.
pub(crate) const FLIGHTS: usize = SETS * 2 * WAYS;
/// Words per entry of [`Measure::Last`]: sequence, time, value.
pub(crate) const LAST_WORDS: usize = 2 + KEY_WORDS;
/// Words per entry of [`Measure::Top`]: identity, count, error, value.
pub(crate) const TOP_WORDS: usize = 3 + KEY_WORDS;
/// Words per group: its identity and its keys.
fn group_words(keys: usize) -> usize {
    1 + keys * KEY_WORDS
}
/// Number of one-second counters of [`Measure::Rate`], a power of two.
pub(crate) const SECONDS: usize = 64;
/// If the cells of a statistic would exceed this size, it has fewer of its own.
const CELLS_BUDGET: usize = (1 << 20) / 8;

/// The counters at the beginning of a cell.
pub(crate) mod counter {
    /// All events.
    pub(crate) const EVENTS: usize = 0;
    /// Events without a usable value: a negative number or a NaN in a histogram, an array among the last or the most frequent values.
    pub(crate) const UNUSABLE: usize = 1;
    /// Operations that began.
    pub(crate) const BEGUN: usize = 2;
    /// Operations that replaced one with an equal key that was in flight.
    pub(crate) const REPLACED: usize = 3;
    /// Ends without a begin.
    pub(crate) const UNMATCHED: usize = 4;
    /// Begins for which there was no room.
    pub(crate) const NO_ROOM: usize = 5;
    /// A lock that is only tried, for cells that several threads may change. Odd while it is held.
    pub(crate) const LOCK: usize = 6;
    /// Events skipped because another one held the lock, or was writing the same entry.
    pub(crate) const SKIPPED: usize = 7;
    pub(crate) const ALL: usize = 8;
}

/// The kind of result, stored as a number in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Count,
    Histogram(Scale),
    Latency,
    Rate,
    Last,
    Top,
}

impl Kind {
    const ALL: [(u64, Self); 7] = [
        (1, Self::Count),
        (2, Self::Histogram(Scale::Integer)),
        (3, Self::Histogram(Scale::Any)),
        (4, Self::Latency),
        (5, Self::Rate),
        (6, Self::Last),
        (7, Self::Top),
    ];
}

/// The sizes that determine all offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) kind: Kind,
    pub(crate) groups: usize,
    pub(crate) keys: usize,
    /// Number of values kept by last and top.
    parameter: usize,
    /// Values derived from these, computed once.
    row_words: usize,
    pub(crate) cells: Cells,
}

impl Layout {
    pub(crate) fn of(spec: &StatisticSpec, scale: Scale) -> Result<Self, StatisticError> {
        spec.check()?;
        let (kind, parameter) = match &spec.measure {
            Measure::Count => (Kind::Count, 0),
            Measure::Histogram { .. } => (Kind::Histogram(scale), 0),
            Measure::Latency { .. } => (Kind::Latency, 0),
            Measure::Rate => (Kind::Rate, 0),
            Measure::Last { count, .. } => (Kind::Last, *count),
            Measure::Top { count, .. } => (Kind::Top, *count),
        };
        let keys = spec.by.len();
        let groups = if keys == 0 { 0 } else { spec.max_groups };
        let mut layout = Self::new(kind, OWN_CELLS, groups, keys, parameter);
        layout.cells.own = (CELLS_BUDGET / layout.cells.size).saturating_sub(1).min(OWN_CELLS);
        Ok(layout)
    }

    fn new(kind: Kind, own_cells: usize, groups: usize, keys: usize, parameter: usize) -> Self {
        let cells = Cells { start: 0, size: 0, own: own_cells };
        let mut layout = Self { kind, groups, keys, parameter, row_words: 0, cells };
        layout.row_words = match kind {
            Kind::Count => 1,
            Kind::Histogram(scale) => scale.words(),
            Kind::Latency => Scale::Integer.words(),
            Kind::Rate => SECONDS,
            Kind::Last => 1 + layout.entries() * LAST_WORDS,
            Kind::Top => layout.entries() * TOP_WORDS,
        };
        // Align to cache lines.
        let rows = if keys == 0 { 1 } else { groups + 2 };
        layout.cells.size = (counter::ALL + rows * layout.row_words).next_multiple_of(8);
        layout.cells.start = layout.group_at(groups).next_multiple_of(8);
        layout
    }

    /// Number of entries in a cell: for [`Measure::Last`] the number of values; for [`Measure::Top`] at least twice that number, in whole sets.
    pub(crate) fn entries(&self) -> usize {
        match self.kind {
            Kind::Top => (self.parameter * 2).next_multiple_of(WAYS).max(4 * WAYS),
            _ => self.parameter,
        }
    }

    pub(crate) fn parameter(&self) -> usize {
        self.parameter
    }

    /// The row of a group, or the overflow row.
    #[inline]
    pub(crate) fn row(&self, group: Option<usize>) -> usize {
        counter::ALL + group.unwrap_or(self.groups) * self.row_words
    }

    /// The row of events without a key.
    pub(crate) fn ungrouped_row(&self) -> usize {
        counter::ALL + (self.groups + 1) * self.row_words
    }

    #[inline]
    pub(crate) fn group_at(&self, group: usize) -> usize {
        let flights = if self.kind == Kind::Latency { FLIGHTS } else { 0 };
        HEADER + flights + group * group_words(self.keys)
    }

    pub(crate) fn group_words(&self) -> usize {
        group_words(self.keys)
    }

    /// Total size in words.
    pub(crate) fn words(&self) -> usize {
        self.cells.end()
    }

    /// Writes the header, for readers.
    pub(crate) fn store(&self, memory: &dyn Memory, text: &str) {
        let words = memory.words();
        let number = Kind::ALL.iter().find(|(_, kind)| *kind == self.kind).map_or(0, |(number, _)| *number);
        let set = |at: usize, value: u64| words[at].store(value, Ordering::Relaxed);
        set(KIND, number);
        set(SIZE, self.words() as u64);
        set(OWN, self.cells.own as u64);
        set(GROUPS, self.groups as u64);
        set(KEYS, self.keys as u64);
        set(PARAMETER, self.parameter as u64);
        let text = &text.as_bytes()[..text.len().min(TEXT_BYTES)];
        set(TEXT_SIZE, text.len() as u64);
        for (at, chunk) in text.chunks(8).enumerate() {
            let mut whole = [0; 8];
            whole[..chunk.len()].copy_from_slice(chunk);
            set(TEXT + at, u64::from_le_bytes(whole));
        }
        // L1: Release pairs with the Acquire load in `Layout::load`: a reader that sees the magic number sees the header.
        words[0].store(MAGIC, Ordering::Release);
    }

    /// Reads the layout and the text from a header, which may be malformed.
    pub(crate) fn load(memory: &dyn Memory) -> Option<(Self, String)> {
        let words = memory.words();
        // L1: Acquire pairs with the Release store in `Layout::store`.
        if words.len() < HEADER || words[0].load(Ordering::Acquire) != MAGIC {
            return None;
        }
        let below = |at: usize, limit: usize| usize::try_from(load(words, at)).ok().filter(|value| *value <= limit);
        let (_, kind) = *Kind::ALL.iter().find(|(number, _)| *number == load(words, KIND))?;
        let (own_cells, groups) = (below(OWN, OWN_CELLS)?, below(GROUPS, MAX_GROUPS)?);
        let layout = Self::new(kind, own_cells, groups, below(KEYS, 2)?, below(PARAMETER, MAX_KEPT)?);
        let is_consistent = (layout.keys == 0) == (layout.groups == 0)
            && load(words, SIZE) == layout.words() as u64
            && words.len() >= layout.words();
        let size = below(TEXT_SIZE, TEXT_BYTES)?;
        let bytes: Vec<u8> = words[TEXT..HEADER].iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect();
        is_consistent.then(|| (layout, String::from_utf8_lossy(&bytes[..size]).into_owned()))
    }
}
