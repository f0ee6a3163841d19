//! Tracepoints: counts over time, and distributions of their numeric fields.

use super::data::{Histogram, Kind};
use super::text::cut;
use crate::slices::Slices;
use crate::statistics::IDS;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{Measure, StatisticSpec};
use tracepoint_reader::metadata::EventClass;
use tracepoint_reader::metadata::types::Type;
use tracepoint_reader::{Event, Trace};
use tracepoint_session_spec::TraceStatistic;

/// Maximum number of tracepoints listed, and of histograms.
const MAX_LISTED: usize = 1000;
const MAX_HISTOGRAMS: usize = 256;
/// The number of slices of a history.
const HISTORY: usize = 64;

pub(super) struct Kinds<'t> {
    trace: &'t Trace,
    all: Vec<KindFields>,
    by_name: HashMap<String, usize>,
    /// The kind of each event class, by its address; the class is kept alive.
    by_class: HashMap<usize, (usize, Arc<EventClass>)>,
    /// The fields already seen of each kind, numeric or not: another process has the same ones.
    known_fields: HashSet<(usize, String)>,
    histograms: usize,
    further_fields: u64,
    slices: Slices,
}

struct KindFields {
    kind: Kind,
    fields: Vec<(String, TraceStatistic)>,
}

impl<'t> Kinds<'t> {
    pub(super) fn new(trace: &'t Trace, range: (i64, i64)) -> Self {
        Self {
            trace,
            all: Vec::new(),
            by_name: HashMap::new(),
            by_class: HashMap::new(),
            known_fields: HashSet::new(),
            histograms: 0,
            further_fields: 0,
            slices: Slices::new(range, HISTORY),
        }
    }

    /// Counts the event. Returns the number of its kind; kinds are numbered in the order of their first events.
    pub(super) fn add(&mut self, event: &Event) -> usize {
        let address = Arc::as_ptr(&event.class) as usize;
        let index = if let Some((index, _)) = self.by_class.get(&address) {
            *index
        } else {
            let index = self.index(&event.class);
            self.by_class.insert(address, (index, Arc::clone(&event.class)));
            index
        };
        let KindFields { kind, fields } = &mut self.all[index];
        kind.count += 1;
        kind.history[self.slices.index(event.time_ns)] += 1;
        for (_, statistic) in fields {
            statistic.observe(event);
        }
        index
    }

    /// Several classes can share a name: from several processes, or from several channels.
    fn index(&mut self, class: &EventClass) -> usize {
        let all = &mut self.all;
        let index = *self.by_name.entry(class.name.clone()).or_insert_with(|| {
            let kind = Kind { name: cut(&class.name), count: 0, history: vec![0; HISTORY] };
            all.push(KindFields { kind, fields: Vec::new() });
            all.len() - 1
        });
        for field in class.fields.iter().flat_map(|fields| &fields.fields) {
            let name = field.name();
            let is_new = self.known_fields.insert((index, name.to_owned()));
            if !is_new || IDS.contains(&name) || matches!(field.ty, Type::Enum(..)) {
                continue;
            }
            let spec = StatisticSpec::new(Measure::Histogram { field: name.to_owned() });
            let metadata = self.trace.metadata().map(|(_, metadata)| metadata);
            // Non-numeric fields are refused.
            let Ok(statistic) = TraceStatistic::new(spec, metadata, |event| event == class.name) else { continue };
            if self.histograms == MAX_HISTOGRAMS {
                self.further_fields += 1;
            } else {
                self.histograms += 1;
                self.all[index].fields.push((name.to_owned(), statistic));
            }
        }
        index
    }

    /// The most frequent kinds and the number of others; the histograms of fields with values and the number of fields without a histogram.
    pub(super) fn finish(mut self) -> (Vec<Kind>, u64, Vec<Histogram>, u64) {
        self.all.sort_by(|a, b| b.kind.count.cmp(&a.kind.count).then_with(|| a.kind.name.cmp(&b.kind.name)));
        let further = self.all.len().saturating_sub(MAX_LISTED) as u64;
        let mut histograms = Vec::new();
        for KindFields { kind, fields } in &self.all {
            for (field, statistic) in fields {
                if let Results::Histogram(rows) = statistic.snapshot().results
                    && let Some(all) = rows.all.filter(|all| all.count() > 0)
                {
                    histograms.push(Histogram::new(&kind.name, field, statistic.is_duration(), &all));
                }
            }
        }
        let kinds = self.all.into_iter().take(MAX_LISTED).map(|counted| counted.kind).collect();
        (kinds, further, histograms, self.further_fields)
    }
}
