//! Statistics over the events of this process.

use crate::memory::Cells;
use crate::snapshot::{Distribution, FrequentValue, LastValue, Operations, Rate, Results, Rows, Snapshot};
use crate::spec::{Measure, StatisticError, StatisticSpec};
use crate::statistic::{Columns, FieldKind, Moment, Role, Statistic};
use std::sync::Arc;
use tracepoint_core::marker::{Aggregate, FieldView, Marker, Subscriber, Subscription};
use tracepoint_ring::thread;

/// A statistic as the subscriber of one marker, with the indices of the marker's fields.
#[derive(Debug)]
struct Observer {
    statistic: Arc<Statistic>,
    columns: Columns,
}

impl Aggregate for Observer {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        self.statistic.record(&self.columns, Moment::here(time), |index| event.get(index));
    }

    fn needs_time(&self) -> bool {
        self.statistic.spec().needs_time()
    }
}

/// Specialised subscribers for statistics without groups, with at most a latency's key field: functions of a few instructions. The general case would
/// double their length.
#[derive(Debug)]
struct CountAll {
    statistic: Arc<Statistic>,
    cells: Cells,
}

impl Aggregate for CountAll {
    fn observe(&self, _time: u64, _event: FieldView<'_>) {
        self.statistic.count_in(self.cells.of(thread()));
    }

    fn needs_time(&self) -> bool {
        self.statistic.spec().needs_time()
    }
}

#[derive(Debug)]
struct DistributeAll {
    statistic: Arc<Statistic>,
    cells: Cells,
    field: usize,
}

impl Aggregate for DistributeAll {
    fn observe(&self, _time: u64, event: FieldView<'_>) {
        let value = event.get(self.field);
        self.statistic.distribute_in(self.cells.of(thread()), value);
    }

    fn needs_time(&self) -> bool {
        self.statistic.spec().needs_time()
    }
}

#[derive(Debug)]
struct BeginOperation {
    statistic: Arc<Statistic>,
    cells: Cells,
    key: usize,
}

impl Aggregate for BeginOperation {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        let key = event.get(self.key);
        self.statistic.begin_in(self.cells.of(thread()), time, key);
    }
}

#[derive(Debug)]
struct EndOperation {
    statistic: Arc<Statistic>,
    cells: Cells,
    key: usize,
}

impl Aggregate for EndOperation {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        let key = event.get(self.key);
        self.statistic.end_in(self.cells.of(thread()), time, key);
    }
}

/// The index of the calling thread, for its cell.
#[inline]
fn thread() -> usize {
    thread::index().unwrap_or(usize::MAX)
}

fn fields(marker: &Marker) -> Vec<(&'static str, FieldKind)> {
    marker.descriptor().fields().iter().map(|field| (field.name, FieldKind::from(&field.ty))).collect()
}

/// The subscribers of a statistic for a marker: two if the event both ends and begins operations of a latency.
///
/// # Errors
///
/// If the event lacks a field, or the field has an unsuitable type.
pub fn subscribers(statistic: &Arc<Statistic>, marker: &'static Marker) -> Result<Vec<Subscriber>, StatisticError> {
    let (name, fields) = (marker.full_name(), fields(marker));
    let subscriber = |role| {
        let columns = statistic.spec().columns(role, &name, &fields)?;
        let statistic = Arc::clone(statistic);
        let (is_grouped, cells) = (statistic.is_grouped(), statistic.cells());
        Ok(Subscriber::aggregate(match (statistic.spec().measure(), columns.value()) {
            (Measure::Latency { .. }, Some(key)) if role == Role::Begin => {
                Arc::new(BeginOperation { statistic, cells, key })
            }
            (Measure::Latency { .. }, Some(key)) if !is_grouped => Arc::new(EndOperation { statistic, cells, key }),
            (Measure::Count, _) if !is_grouped => Arc::new(CountAll { statistic, cells }),
            (Measure::Histogram { .. }, Some(field)) if !is_grouped => {
                Arc::new(DistributeAll { statistic, cells, field })
            }
            _ => Arc::new(Observer { statistic, columns }),
        }))
    };
    statistic.spec().roles(&name).into_iter().map(subscriber).collect()
}

/// A statistic that runs until it is dropped.
#[derive(Debug)]
pub struct RunningStatistic {
    statistic: Arc<Statistic>,
    _subscriptions: Vec<Subscription>,
}

impl RunningStatistic {
    /// Starts a statistic over the events named `events` (`provider:name`). When this returns, their sites are on.
    ///
    /// # Errors
    ///
    /// If an event does not exist, a field is missing or has an unsuitable type, or the sites cannot be switched on.
    pub fn start(spec: StatisticSpec, events: &[&str]) -> Result<Self, StatisticError> {
        let find = |name: &&str| {
            let marker = tracepoint_core::find(name)?.marker();
            marker.ok_or_else(|| StatisticError::NoFields((*name).to_owned()))
        };
        let markers: Vec<&'static Marker> = events.iter().map(find).collect::<Result<_, _>>()?;
        let is_float = markers.iter().any(|marker| spec.is_float(&fields(marker)));
        let statistic = Arc::new(Statistic::new(spec, is_float)?);
        let mut all = Vec::new();
        for marker in markers {
            all.extend(subscribers(&statistic, marker)?.into_iter().map(|subscriber| (marker, subscriber)));
        }
        Ok(Self { statistic, _subscriptions: Subscription::start_all(all)? })
    }

    /// The results so far.
    pub fn snapshot(&self) -> Snapshot {
        self.statistic.snapshot()
    }
}

/// Defines a statistic of one kind, with its own result type.
macro_rules! typed {
    ($(#[$doc:meta])* $name:ident, $results:ty, $pattern:pat => $value:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(RunningStatistic);

        impl $name {
            fn start(measure: Measure, by: &[&str], events: &[&str]) -> Result<Self, StatisticError> {
                RunningStatistic::start(StatisticSpec::new(measure).by(by.iter().copied()), events).map(Self)
            }

            /// The results so far. Takes no lock; events that fire meanwhile may be included.
            pub fn snapshot(&self) -> $results {
                match self.0.snapshot().results {
                    $pattern => $value,
                    other => unreachable!("{other:?}"),
                }
            }
        }
    };
}

typed! {
    /// Counts events.
    Count, Rows<u64>, Results::Count(rows) => { let mut rows = rows; rows.sort_by_rank(|count| *count); rows }
}
typed! {
    /// The distribution of a numeric field.
    Histogram, Rows<Distribution>, Results::Histogram(rows) => { let mut rows = rows; rows.sort_by_rank(Distribution::count); rows }
}
typed! {
    /// The distribution of the time between two events, in nanoseconds.
    Latency, (Rows<Distribution>, Operations),
    Results::Latency { mut durations, operations } => { durations.sort_by_rank(Distribution::count); (durations, operations) }
}
typed! {
    /// The number of events in each second.
    EventRate, Rate, Results::Rate(rate) => rate
}
typed! {
    /// The last values of a field.
    Last, Vec<LastValue>, Results::Last { values } => values
}
typed! {
    /// The most frequent values of a field.
    Top, Vec<FrequentValue>, Results::Top { values } => values
}

impl Count {
    /// Counts the event, optionally grouped by the values of one or two fields.
    ///
    /// # Errors
    ///
    /// The same as for [`RunningStatistic::start`].
    pub fn of(event: &str, by: &[&str]) -> Result<Self, StatisticError> {
        Self::start(Measure::Count, by, &[event])
    }
}

impl Histogram {
    /// The distribution of a field of the event, optionally grouped by the values of one or two other fields.
    ///
    /// # Errors
    ///
    /// The same as for [`RunningStatistic::start`].
    pub fn of(event: &str, field: &str, by: &[&str]) -> Result<Self, StatisticError> {
        Self::start(Measure::Histogram { field: field.to_owned() }, by, &[event])
    }
}

impl Latency {
    /// The time from the event `begin` to the event `end` with the same value of the field `key` (`None`: on the same thread), optionally grouped by
    /// the values of one or two fields of `end`.
    ///
    /// Up to 4,096 operations can be in flight. An operation that begins again before it has ended is measured from its latest begin.
    ///
    /// # Errors
    ///
    /// The same as for [`RunningStatistic::start`].
    pub fn between(begin: &str, end: &str, key: Option<&str>, by: &[&str]) -> Result<Self, StatisticError> {
        let measure = Measure::Latency { begin: begin.to_owned(), end: end.to_owned(), by: key.map(str::to_owned) };
        let events = if begin == end { vec![begin] } else { vec![begin, end] };
        Self::start(measure, by, &events)
    }

    /// The durations of the span `name` (`provider:name`) declared by `define_trace!`.
    ///
    /// # Errors
    ///
    /// The same as for [`RunningStatistic::start`].
    pub fn of_span(name: &str) -> Result<Self, StatisticError> {
        Self::start(Measure::span(name), &[], &[&format!("{name}_begin"), &format!("{name}_end")])
    }
}

impl EventRate {
    /// The rate of the event over the last 60 seconds.
    ///
    /// # Errors
    ///
    /// The same as for [`RunningStatistic::start`].
    pub fn of(event: &str) -> Result<Self, StatisticError> {
        Self::start(Measure::Rate, &[], &[event])
    }
}

impl Last {
    /// The last `count` values of a field of the event.
    ///
    /// # Errors
    ///
    /// The same as for [`RunningStatistic::start`].
    pub fn of(event: &str, field: &str, count: usize) -> Result<Self, StatisticError> {
        Self::start(Measure::Last { field: field.to_owned(), count }, &[], &[event])
    }
}

impl Top {
    /// The `count` most frequent values of a field of the event, each with its error bound.
    ///
    /// # Errors
    ///
    /// The same as for [`RunningStatistic::start`].
    pub fn of(event: &str, field: &str, count: usize) -> Result<Self, StatisticError> {
        Self::start(Measure::Top { field: field.to_owned(), count }, &[], &[event])
    }
}
