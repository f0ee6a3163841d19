//! Statistics over recorded events: the same statistics as over the events of a running program.

use crate::filter::FieldKind;
use crate::kinds::Kinds;
use crate::trace_filter::condition_fields;
use std::collections::BTreeSet;
use std::sync::Arc;
use tracepoint_core::field;
use tracepoint_core::internal::nearest_names;
use tracepoint_probes as probes;
use tracepoint_probes::{Columns, Measure, Moment, Role, Snapshot, Statistic, StatisticError, StatisticSpec};
use tracepoint_reader::EventView;
use tracepoint_reader::metadata::{EventClass, Metadata, StreamClass};

/// A statistic over the events of traces, given in the order of their times if it [needs that](Self::needs_order).
///
/// Events that lack one of its fields are left out. The fields may also be members of the contexts of an event and of its packet, such as
/// `tid`.
#[derive(Debug)]
pub struct TraceStatistic {
    statistic: Arc<Statistic>,
    /// Index of the cell in which this statistic counts.
    cell: usize,
    /// The fields that it uses of each kind of event.
    kinds: Kinds<Vec<Columns>>,
    /// True if the thread of an event matters.
    by_thread: bool,
    is_duration: bool,
}

fn kind_of(kind: &FieldKind<'_>) -> probes::FieldKind {
    match kind {
        FieldKind::Integer { .. } | FieldKind::Enum(_) => probes::FieldKind::Integer,
        FieldKind::Duration => probes::FieldKind::Duration,
        FieldKind::Float | FieldKind::Any => probes::FieldKind::Float,
        FieldKind::Other => probes::FieldKind::List,
        _ => probes::FieldKind::Other,
    }
}

/// The unit and type of a statistic's values.
#[derive(Clone, Copy, Default)]
struct Values {
    is_float: bool,
    is_duration: bool,
}

/// Returns the fields that the statistic uses of a kind of event, for each role of the event in it.
fn columns(
    spec: &StatisticSpec,
    stream: &StreamClass,
    class: &EventClass,
) -> Result<(Vec<Columns>, Values), StatisticError> {
    let fields = condition_fields(stream, class);
    let fields: Vec<_> = fields.iter().map(|field| (field.name, kind_of(&field.kind))).collect();
    let columns: Result<Vec<_>, _> =
        spec.roles(&class.name).into_iter().map(|role: Role| spec.columns(role, &class.name, &fields)).collect();
    Ok((columns?, Values { is_float: spec.is_float(&fields), is_duration: spec.is_duration(&fields) }))
}

impl TraceStatistic {
    /// Creates a statistic over the events of these traces.
    ///
    /// # Errors
    ///
    /// If no event that `is_wanted` has the fields, or one of the events of a latency is missing.
    pub fn new<'a>(
        spec: StatisticSpec,
        traces: impl Iterator<Item = &'a Metadata>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, StatisticError> {
        // Checks the specification.
        Statistic::words_for(&spec, false)?;
        let (mut fits, mut values) = (0, Values::default());
        let (mut missing, mut wrong, mut known) = (None, None, BTreeSet::new());
        let mut names = BTreeSet::new();
        for stream in traces.flat_map(Metadata::streams) {
            for class in stream.events.values().filter(|class| is_wanted(&class.name)) {
                names.insert(class.name.as_str());
                match columns(&spec, stream, class) {
                    Ok((columns, of_class)) => {
                        fits += columns.len();
                        values.is_float |= of_class.is_float && !columns.is_empty();
                        values.is_duration |= of_class.is_duration && !columns.is_empty();
                    }
                    Err(StatisticError::NoField { field, .. }) => {
                        known.extend(condition_fields(stream, class).iter().map(|field| field.name));
                        missing = Some(field);
                    }
                    Err(error) => wrong = Some(error),
                }
            }
        }
        if let Measure::Latency { begin, end, .. } = spec.measure()
            && let Some(event) = [begin, end].into_iter().find(|event| !names.contains(event.as_str()))
        {
            let nearest = nearest_names(event, names);
            return Err(StatisticError::NoEventAnywhere { event: event.clone(), nearest });
        }
        match (wrong, missing) {
            (Some(error), _) if fits == 0 => Err(error),
            (None, Some(field)) if fits == 0 => {
                let nearest = nearest_names(&field, known);
                Err(StatisticError::NoFieldAnywhere { field, nearest })
            }
            _ => {
                let by_thread = matches!(spec.measure(), Measure::Latency { by: None, .. });
                let statistic = Arc::new(Statistic::new(spec, values.is_float)?);
                Ok(Self { statistic, cell: 0, kinds: Kinds::default(), by_thread, is_duration: values.is_duration })
            }
        }
    }

    /// The same statistic without events.
    #[must_use]
    pub fn empty(&self) -> Self {
        Self {
            statistic: Arc::new(self.statistic.empty()),
            cell: 0,
            kinds: Kinds::default(),
            by_thread: self.by_thread,
            is_duration: self.is_duration,
        }
    }

    /// Returns the same statistic without events, once for each of these threads. They count together: each returns the combined results.
    #[must_use]
    pub fn for_threads(&self, threads: usize) -> Vec<Self> {
        let empty = self.empty();
        let part = |cell| Self {
            statistic: Arc::clone(&empty.statistic),
            cell,
            kinds: Kinds::default(),
            by_thread: self.by_thread,
            is_duration: self.is_duration,
        };
        (0..threads).map(part).collect()
    }

    /// Returns whether its values are nanoseconds: a latency, a field of type `Duration`, or an integer whose name ends with `_ns`.
    pub fn is_duration(&self) -> bool {
        self.is_duration
    }

    /// Returns whether the results depend on the order of events. Counts and histograms do not, as long as there is room for all groups.
    pub fn needs_order(&self) -> bool {
        !matches!(self.statistic.spec().measure(), Measure::Count | Measure::Histogram { .. })
    }

    /// Counts an event, such as an [`Event`](tracepoint_reader::Event).
    #[inline]
    pub fn observe<'a>(&mut self, event: impl Into<EventView<'a>>) {
        let (event, statistic) = (event.into(), &self.statistic);
        let columns = self.kinds.get(event.class(), || {
            let columns = columns(statistic.spec(), &event.stream().class, event.class());
            columns.map(|(columns, _)| columns).unwrap_or_default()
        });
        let tid = if self.by_thread { event.tid().and_then(|tid| u32::try_from(tid).ok()) } else { None };
        let time = u64::try_from(event.time_ns()).unwrap_or(0);
        let moment = Moment::recorded(time, tid.unwrap_or(0)).counted_in(self.cell);
        for columns in columns {
            statistic.record(columns, moment, |index| event.value(index).map(text));
        }
    }

    /// Returns the results since the last call; pending operations of a latency are kept and may end later.
    pub fn take(&mut self) -> Snapshot {
        self.statistic.take()
    }

    /// The results so far.
    pub fn snapshot(&self) -> Snapshot {
        self.statistic.snapshot()
    }
}

/// Recorded texts may contain any bytes.
fn text(value: field::Value<'_>) -> field::Value<'_> {
    match value {
        field::Value::Path(bytes) => str::from_utf8(bytes).map_or(value, field::Value::Text),
        other => other,
    }
}
