//! The results of a statistic, read from its memory: in the same process, in another one, or after the process has ended.

mod distribution;
mod part;
mod rows;
mod shared;

pub use distribution::{Bucket, Distribution, Number};
pub use rows::{Row, Rows};

use crate::flights;
use crate::groups;
use crate::kept;
use crate::key::GroupKey;
use crate::layout::{HEADER, Kind, Layout, SECONDS, counter};
use crate::memory::{Memory, load};
use crate::values::Scale;
use serde::Serialize;
use std::cell::Cell;
use std::sync::atomic::AtomicU64;

/// Maximum number of attempts to read each distribution consistently. A distribution never becomes consistent if its process was killed while adding
/// a value.
const TRIES: usize = 4;

/// The results of a statistic at a point in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The statistic in the notation of session rules.
    pub statistic: String,
    /// The results.
    #[serde(flatten)]
    pub results: Results,
    /// Events without a usable value: a negative number or a NaN in a histogram, an array as a key.
    pub unusable: u64,
    /// Events skipped among the last or most frequent values, because another event was being stored.
    pub skipped: u64,
}

/// Results by kind of statistic.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Results {
    /// Number of events.
    Count(Rows<u64>),
    /// Distribution of the values.
    Histogram(Rows<Distribution>),
    /// Distribution of the durations in nanoseconds.
    Latency {
        /// The durations.
        #[serde(flatten)]
        durations: Rows<Distribution>,
        /// Counts of begins and ends.
        operations: Operations,
    },
    /// Events per second.
    Rate(Rate),
    /// The last values, latest last.
    Last {
        /// The values.
        values: Vec<LastValue>,
    },
    /// The most frequent values, in descending order.
    Top {
        /// The values.
        values: Vec<FrequentValue>,
    },
}

/// Counts of the operations of a latency. Once no more events fire, `begun` = ended + `replaced` + `no_room` + `in_flight`, where ended is the number
/// of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Operations {
    /// Operations that began.
    pub begun: u64,
    /// Operations discarded because another one with an equal key began.
    pub replaced: u64,
    /// Begins for which there was no room.
    pub no_room: u64,
    /// Operations that have not ended.
    pub in_flight: u64,
    /// Ends without a begin.
    pub unmatched: u64,
}

impl Operations {
    fn add(&mut self, other: Self) {
        let Self { begun, replaced, no_room, in_flight, unmatched } = other;
        let own = [&mut self.begun, &mut self.replaced, &mut self.no_room, &mut self.in_flight, &mut self.unmatched];
        for (own, other) in own.into_iter().zip([begun, replaced, no_room, in_flight, unmatched]) {
            *own = own.saturating_add(other);
        }
    }
}

/// The number of events in each of the last seconds that had events, at most 60.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rate {
    /// All events since the statistic was created.
    pub events: u64,
    /// Seconds on the clock of the process (the low 32 bits), in ascending order, with the number of events in each.
    pub seconds: Vec<(u64, u64)>,
}

impl Rate {
    /// Events per second over the `window` full seconds before the second that contains `time` (nanoseconds on the clock of the process); at most 60.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn per_second(&self, time: u64, window: u64) -> f64 {
        let now = (time / 1_000_000_000) & 0xFFFF_FFFF;
        let window = window.clamp(1, 60);
        let counted = self.seconds.iter().filter(|(second, _)| (1..=window).contains(&now.wrapping_sub(*second)));
        counted.map(|(_, count)| count).sum::<u64>() as f64 / window as f64
    }
}

/// One of the last values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LastValue {
    /// The time of the event, in nanoseconds on the clock of the process.
    pub time: u64,
    /// The value.
    pub value: GroupKey,
}

/// One of the most frequent values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FrequentValue {
    /// The value.
    pub value: GroupKey,
    /// Upper bound of the number of events with this value.
    pub count: u64,
    /// Maximum error: the true number is in `count - error..=count`.
    pub error: u64,
}

/// The memory has no statistic of this version, or was changed by something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no statistic of a version that can be read, or it is damaged")]
pub struct FormatError;

impl Snapshot {
    /// Reads the results from the memory of a statistic created by this or another process. The contents may be arbitrary.
    ///
    /// # Errors
    ///
    /// If it contains no statistic.
    pub fn read(memory: &dyn Memory) -> Result<Self, FormatError> {
        let (layout, text) = Layout::load(memory).ok_or(FormatError)?;
        Ok(Self::of(memory, &layout, &text))
    }

    /// Reads the results while threads may add to them. Repeats if the extremes and buckets of a distribution are inconsistent.
    pub(crate) fn of(memory: &dyn Memory, layout: &Layout, statistic: &str) -> Self {
        let mut read = Self::once(memory, layout, statistic);
        for _ in 1..TRIES {
            if read.1 {
                break;
            }
            read = Self::once(memory, layout, statistic);
        }
        read.0
    }

    /// Reads the results once. Also returns whether each distribution was consistent.
    fn once(memory: &dyn Memory, layout: &Layout, statistic: &str) -> (Self, bool) {
        let reader = Reader { words: memory.words(), layout, is_whole: Cell::new(true) };
        let sum = |at| reader.sum(at);
        let results = match layout.kind {
            Kind::Count => Results::Count(reader.rows(|row| Some(reader.sum(row)).filter(|count| *count > 0))),
            Kind::Histogram(scale) => Results::Histogram(reader.distributions(scale)),
            Kind::Latency => Results::Latency {
                durations: reader.distributions(Scale::Integer),
                operations: Operations {
                    begun: sum(counter::BEGUN),
                    replaced: sum(counter::REPLACED),
                    no_room: sum(counter::NO_ROOM),
                    in_flight: reader.words[HEADER..].first_chunk().map_or(0, flights::in_flight),
                    unmatched: sum(counter::UNMATCHED),
                },
            },
            Kind::Rate => Results::Rate(reader.rate()),
            Kind::Last => Results::Last { values: reader.last() },
            Kind::Top => Results::Top { values: reader.top() },
        };
        let statistic = statistic.to_owned();
        let snapshot = Self { statistic, results, unusable: sum(counter::UNUSABLE), skipped: sum(counter::SKIPPED) };
        (snapshot, reader.is_whole.get())
    }

    /// Adds `nanoseconds` to all times: for results of a process whose clock has another zero point.
    pub fn shift(&mut self, nanoseconds: i64) {
        match &mut self.results {
            Results::Rate(rate) => {
                for (second, _) in &mut rate.seconds {
                    *second = second.wrapping_add_signed(nanoseconds.div_euclid(1_000_000_000)) & 0xFFFF_FFFF;
                }
            }
            Results::Last { values } => {
                for value in values {
                    value.time = value.time.saturating_add_signed(nanoseconds);
                }
            }
            Results::Count(_) | Results::Histogram(_) | Results::Latency { .. } | Results::Top { .. } => {}
        }
    }

    /// Adds the results of the same statistic in another process.
    ///
    /// For last and top, the number of values kept is the length of the longer list. A value missing in one of two lists of frequent values may have
    /// been counted there as often as the last value of that list; that count is added to its count and its error.
    ///
    /// # Errors
    ///
    /// If the statistics differ. Nothing is added then.
    pub fn merge(&mut self, other: Self) -> Result<(), FormatError> {
        match (&mut self.results, other.results) {
            (Results::Count(own), Results::Count(other)) => {
                own.merge(other, |own, other| *own = own.saturating_add(other));
            }
            (Results::Histogram(own), Results::Histogram(other)) => own.merge(other, Distribution::merge),
            (
                Results::Latency { durations, operations },
                Results::Latency { durations: other, operations: other_operations },
            ) => {
                durations.merge(other, Distribution::merge);
                operations.add(other_operations);
            }
            (Results::Rate(own), Results::Rate(other)) => {
                own.events = own.events.saturating_add(other.events);
                own.seconds.extend(other.seconds);
                own.seconds = add_seconds(std::mem::take(&mut own.seconds));
            }
            (Results::Last { values }, Results::Last { values: other }) => {
                let most = values.len().max(other.len());
                values.extend(other);
                values.sort_by_key(|value| value.time);
                values.drain(..values.len().saturating_sub(most));
            }
            (Results::Top { values }, Results::Top { values: other }) => merge_frequent(values, other),
            _ => return Err(FormatError),
        }
        self.unusable = self.unusable.saturating_add(other.unusable);
        self.skipped = self.skipped.saturating_add(other.skipped);
        Ok(())
    }
}

/// Merges equal seconds, sorts them in ascending order, and keeps the last 60.
fn add_seconds(mut seconds: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    seconds.sort_unstable();
    let mut sums: Vec<(u64, u64)> = Vec::new();
    for (second, count) in seconds {
        match sums.last_mut() {
            Some(last) if last.0 == second => last.1 = last.1.saturating_add(count),
            _ => sums.push((second, count)),
        }
    }
    let newest = sums.last().map_or(0, |last| last.0);
    sums.retain(|(second, _)| newest - second < 60);
    sums
}

fn merge_frequent(own: &mut Vec<FrequentValue>, other: Vec<FrequentValue>) {
    let most = own.len().max(other.len());
    // A list that is not full has all values, but its length does not show that: the bound is then larger than necessary.
    let least = |values: &[FrequentValue]| values.iter().map(|value| value.count).min().unwrap_or(0);
    let (least_own, least_other) = (least(own), least(&other));
    let is_in =
        |values: &[FrequentValue], value: &FrequentValue| values.iter().position(|one| one.value == value.value);
    for value in own.iter_mut() {
        let (count, error) =
            is_in(&other, value).map_or((least_other, least_other), |at| (other[at].count, other[at].error));
        value.count = value.count.saturating_add(count);
        value.error = value.error.saturating_add(error);
    }
    let new: Vec<_> = other.into_iter().filter(|value| is_in(own, value).is_none()).collect();
    own.extend(new.into_iter().map(|value| FrequentValue {
        count: value.count.saturating_add(least_own),
        error: value.error.saturating_add(least_own),
        ..value
    }));
    own.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    own.truncate(most);
}

struct Reader<'a> {
    words: &'a [AtomicU64],
    layout: &'a Layout,
    /// True while each distribution read so far was consistent.
    is_whole: Cell<bool>,
}

impl<'a> Reader<'a> {
    fn cells(&self) -> impl Iterator<Item = &'a [AtomicU64]> + use<'a> {
        let cells = self.layout.cells;
        self.words[cells.start..cells.end()].chunks_exact(cells.size)
    }

    /// The sum of a counter over all cells. Other processes may have written arbitrary values.
    fn sum(&self, at: usize) -> u64 {
        self.cells().fold(0, |sum, cell| sum.wrapping_add(load(cell, at)))
    }

    /// The rows that are not empty.
    fn rows<T>(&self, read: impl Fn(usize) -> Option<T>) -> Rows<T>
    where
        T: Default,
    {
        let layout = self.layout;
        if layout.keys == 0 {
            return Rows { all: Some(read(layout.row(Some(0))).unwrap_or_default()), ..Rows::default() };
        }
        let group = |group| {
            let keys = groups::keys(self.words, layout, group)?;
            Some(Row { keys, value: read(layout.row(Some(group)))? })
        };
        Rows {
            all: None,
            events: self.sum(counter::EVENTS),
            groups: (0..layout.groups).filter_map(group).collect(),
            overflow: read(layout.row(None)),
            ungrouped: read(layout.ungrouped_row()),
        }
    }

    fn distributions(&self, scale: Scale) -> Rows<Distribution> {
        let read = |row: usize| {
            let cells: Vec<_> = self.cells().map(|cell| &cell[row..row + scale.words()]).collect();
            let (distribution, is_whole) = Distribution::read(scale, &cells);
            self.is_whole.set(self.is_whole.get() && is_whole);
            (distribution.count() > 0).then_some(distribution)
        };
        self.rows(read)
    }

    fn rate(&self) -> Rate {
        let row = self.layout.row(Some(0));
        let seconds =
            self.cells().flat_map(|cell| &cell[row..row + SECONDS]).map(|word| load(std::slice::from_ref(word), 0));
        let seconds = seconds.filter(|word| *word != 0).map(|word| (word >> 32, word & 0xFFFF_FFFF));
        Rate { events: self.sum(counter::EVENTS), seconds: add_seconds(seconds.collect()) }
    }

    fn last(&self) -> Vec<LastValue> {
        let mut values: Vec<_> = self.cells().flat_map(|cell| kept::last_values(cell, self.layout)).collect();
        values.sort_by_key(|(time, _)| *time);
        let surplus = values.len().saturating_sub(self.layout.parameter());
        values.into_iter().skip(surplus).map(|(time, value)| LastValue { time, value }).collect()
    }

    fn top(&self) -> Vec<FrequentValue> {
        let values = kept::top_values(self.cells(), self.layout).into_iter().take(self.layout.parameter());
        values.map(|kept::Frequent { key, count, error }| FrequentValue { value: key, count, error }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_another_clock_are_shifted() {
        let results = Results::Rate(Rate { events: 3, seconds: vec![(86_410, 3), (5, 1)] });
        let mut snapshot = Snapshot { statistic: "rate".to_owned(), results, unusable: 0, skipped: 0 };
        snapshot.shift(-86_400_000_000_000);
        let Results::Rate(rate) = &snapshot.results else { panic!("{snapshot:?}") };
        assert_eq!(rate.seconds, [(10, 3), (0x1_0000_0000 - 86_395, 1)]);
        let value = LastValue { time: 7, value: GroupKey::Unsigned(0) };
        snapshot.results = Results::Last { values: vec![value] };
        snapshot.shift(3);
        assert!(matches!(&snapshot.results, Results::Last { values } if values[0].time == 10));
    }
}
