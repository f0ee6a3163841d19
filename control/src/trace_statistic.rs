//! Statistics over recorded events: the same as those over the events of a running program.

use crate::filter::FieldKind;
use crate::nearest::nearest_names;
use crate::trace_filter::{condition_fields, value_of};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tracepoint_core::field;
use tracepoint_probes as probes;
use tracepoint_probes::{Columns, Measure, Moment, Role, Snapshot, Statistic, StatisticError, StatisticSpec};
use tracepoint_reader::Event;
use tracepoint_reader::metadata::{EventClass, Metadata, StreamClass};

/// How many kinds of events are remembered at most.
const KINDS: usize = 1 << 14;

/// A statistic over the events of traces, given in the order of their times.
///
/// Events that lack one of its fields are left out. The fields may also be members of the contexts of an event, and of the context of its
/// packet, such as `tid`.
#[derive(Debug)]
pub struct TraceStatistic {
    statistic: Statistic,
    /// What it uses of each kind of event, by the address of the kind, which is kept alive.
    kinds: HashMap<usize, (Arc<EventClass>, Vec<Columns>)>,
    /// Whether the thread of an event matters.
    by_thread: bool,
}

fn kind_of(kind: &FieldKind<'_>) -> probes::FieldKind {
    match kind {
        FieldKind::Integer { .. } | FieldKind::Enum(_) => probes::FieldKind::Integer,
        FieldKind::Float | FieldKind::Any => probes::FieldKind::Float,
        FieldKind::Other => probes::FieldKind::List,
        _ => probes::FieldKind::Other,
    }
}

/// What the statistic uses of a kind of event, for each part that the event has in it.
fn columns(
    spec: &StatisticSpec,
    stream: &StreamClass,
    class: &EventClass,
) -> Result<(Vec<Columns>, bool), StatisticError> {
    let fields = condition_fields(stream, class);
    let fields: Vec<_> = fields.iter().map(|field| (field.name, kind_of(&field.kind))).collect();
    let columns: Result<Vec<_>, _> =
        spec.roles(&class.name).into_iter().map(|role: Role| spec.columns(role, &class.name, &fields)).collect();
    Ok((columns?, spec.is_float(&fields)))
}

impl TraceStatistic {
    /// A statistic over the events of these traces.
    ///
    /// # Errors
    ///
    /// If no event that `is_wanted` has the fields, or one of the events of a latency is missing.
    pub fn new<'a>(
        spec: StatisticSpec,
        traces: impl Iterator<Item = &'a Metadata>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, StatisticError> {
        // Whether it is one at all.
        Statistic::words_for(&spec, false)?;
        let (mut fits, mut is_float) = (0, false);
        let (mut missing, mut wrong, mut known) = (None, None, BTreeSet::new());
        for stream in traces.flat_map(Metadata::streams) {
            for class in stream.events.values().filter(|class| is_wanted(&class.name)) {
                match columns(&spec, stream, class) {
                    Ok((columns, float)) => {
                        fits += columns.len();
                        is_float |= float && !columns.is_empty();
                    }
                    Err(StatisticError::NoField { field, .. }) => {
                        known.extend(condition_fields(stream, class).iter().map(|field| field.name));
                        missing = Some(field);
                    }
                    Err(error) => wrong = Some(error),
                }
            }
        }
        match (wrong, missing) {
            (Some(error), _) if fits == 0 => Err(error),
            (None, Some(field)) if fits == 0 => {
                let nearest = nearest_names(&field, known);
                Err(StatisticError::NoFieldAnywhere { field, nearest })
            }
            _ => {
                let by_thread = matches!(spec.measure(), Measure::Latency { by: None, .. });
                Ok(Self { statistic: Statistic::new(spec, is_float)?, kinds: HashMap::new(), by_thread })
            }
        }
    }

    /// Takes an event.
    pub fn observe(&mut self, event: &Event) {
        let key = Arc::as_ptr(&event.class) as usize;
        if !self.kinds.contains_key(&key) {
            if self.kinds.len() >= KINDS {
                self.kinds.clear();
            }
            let columns = columns(self.statistic.spec(), &event.stream.class, &event.class);
            self.kinds.insert(key, (Arc::clone(&event.class), columns.map(|(columns, _)| columns).unwrap_or_default()));
        }
        let Some((_, columns)) = self.kinds.get(&key) else { return };
        let tid = if self.by_thread { event.origin().tid.and_then(|tid| u32::try_from(tid).ok()) } else { None };
        let moment = Moment::recorded(u64::try_from(event.time_ns).unwrap_or(0), tid.unwrap_or(0));
        for columns in columns {
            self.statistic.record(columns, moment, |index| value_of(event, index).map(text));
        }
    }

    /// The results so far.
    pub fn snapshot(&self) -> Snapshot {
        self.statistic.snapshot()
    }
}

/// Recorded texts are any bytes.
fn text(value: field::Value<'_>) -> field::Value<'_> {
    match value {
        field::Value::Path(bytes) => str::from_utf8(bytes).map_or(value, field::Value::Text),
        other => other,
    }
}
