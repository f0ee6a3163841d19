//! Recorded traces: one pass counts all events; each inspected field needs another pass.

use super::source::{
    Detail, EventRow, FREQUENT, Focus, HISTORY, LAST, Overview, ProcessRow, Source, Values, lines, per_second,
};
use crate::failure::Failure;
use crate::message::counted;
use crate::open::open;
use crate::selection::EventSelection;
use crate::slices::Slices;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_probes::{Measure, StatisticSpec};
use tracepoint_reader::metadata::{EnvValue, EventClass};
use tracepoint_reader::{Event, Item, Trace};
use tracepoint_session_spec::TraceStatistic;

pub(super) struct TraceSource {
    paths: Vec<PathBuf>,
    selection: EventSelection,
    overview: Overview,
    /// The last events of each name.
    last: HashMap<String, VecDeque<Event>>,
}

struct Counts {
    class: Arc<EventClass>,
    count: u64,
    history: Vec<u64>,
    last: VecDeque<Event>,
}

impl TraceSource {
    /// Reads the traces once.
    pub(super) fn open(paths: &[PathBuf], selection: &EventSelection) -> Result<Self, Failure> {
        let trace = open(paths)?;
        let mut filter = selection.filter()?;
        filter.check(trace.metadata().map(|(_, metadata)| metadata))?;
        let slices = Slices::new(trace.range().unwrap_or_default(), HISTORY);
        // By the address of the kind, which is kept alive.
        let mut kinds: HashMap<usize, Counts> = HashMap::new();
        let mut processes: BTreeMap<String, u64> = BTreeMap::new();
        let mut process_names: HashMap<usize, String> = HashMap::new();
        let (mut range, mut missing, mut damaged) = (None, false, false);
        for item in trace.items() {
            match item {
                Item::Event(event) if filter.accepts(&event) => {
                    range = Some((range.map_or(event.time_ns, |(first, _)| first), event.time_ns));
                    let name = process_names.entry(Arc::as_ptr(&event.stream) as usize);
                    let name = name.or_insert_with(|| process_name(&event));
                    match processes.get_mut(name) {
                        Some(count) => *count += 1,
                        None => drop(processes.insert(name.clone(), 1)),
                    }
                    let counts = kinds.entry(Arc::as_ptr(&event.class) as usize).or_insert_with(|| Counts {
                        class: Arc::clone(&event.class),
                        count: 0,
                        history: vec![0; HISTORY],
                        last: VecDeque::with_capacity(LAST),
                    });
                    counts.count += 1;
                    counts.history[slices.index(event.time_ns)] += 1;
                    if counts.last.len() == LAST {
                        counts.last.pop_front();
                    }
                    counts.last.push_back(event);
                }
                Item::Damage(_) => damaged = true,
                Item::Loss(_) => missing = true,
                _ => {}
            }
        }
        let seconds =
            range.map_or(0.0, |(first, last): (i64, i64)| Duration::from_nanos(last.abs_diff(first)).as_secs_f64());
        let mut recorded = Self {
            paths: paths.to_vec(),
            selection: selection.clone(),
            overview: Overview::default(),
            last: HashMap::new(),
        };
        recorded.sum_up(kinds, seconds);
        let total: u64 = processes.values().sum();
        recorded.overview.processes = processes
            .into_iter()
            .map(|(name, count)| ProcessRow { name, per_second: per_second(count, seconds), is_alive: true })
            .collect();
        let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        recorded.overview.heading = format!("{}  {} in {seconds:.3}s", shown.join(" "), counted(total, "event"));
        recorded.overview.note = match (damaged, missing) {
            (true, _) => Some("the trace is damaged; `tracectl verify` says where".to_owned()),
            (false, true) => Some("events were lost; `tracectl view` shows where".to_owned()),
            (false, false) => None,
        };
        Ok(recorded)
    }

    /// Sums over kinds with the same name.
    fn sum_up(&mut self, kinds: HashMap<usize, Counts>, seconds: f64) {
        let mut rows: BTreeMap<String, EventRow> = BTreeMap::new();
        for Counts { class, count, history, last } in kinds.into_values() {
            let row = rows.entry(class.name.clone()).or_insert_with(|| EventRow {
                name: class.name.clone(),
                is_on: true,
                history: vec![0; HISTORY],
                ..EventRow::default()
            });
            row.count += count;
            row.history.iter_mut().zip(history).for_each(|(sum, count)| *sum += count);
            let fields =
                class.fields.iter().flat_map(|fields| fields.fields.iter()).map(|field| field.name().to_string());
            for field in fields {
                if !row.fields.contains(&field) {
                    row.fields.push(field);
                }
            }
            let all = self.last.entry(class.name.clone()).or_default();
            all.extend(last);
            all.make_contiguous().sort_by_key(|event| event.time_ns);
            all.drain(..all.len().saturating_sub(LAST));
        }
        self.overview.events = rows.into_values().collect();
        for row in &mut self.overview.events {
            row.per_second = per_second(row.count, seconds);
        }
    }

    /// The distribution of a number; of any other field the most frequent values.
    fn values(&self, event: &str, field: &str) -> Result<Values, Failure> {
        let trace = Trace::open_all(&self.paths)?;
        let field = field.to_owned();
        let numbers = StatisticSpec::new(Measure::Histogram { field: field.clone() });
        let texts = StatisticSpec::new(Measure::Top { field, count: FREQUENT });
        let statistic =
            |spec| TraceStatistic::new(spec, trace.metadata().map(|(_, metadata)| metadata), |class| class == event);
        let mut statistic =
            statistic(numbers).or_else(|_| statistic(texts)).map_err(|error| Failure::Refused(error.to_string()))?;
        let mut filter = self.selection.filter()?;
        for item in trace.items() {
            if let Item::Event(of) = item
                && of.class.name == event
                && filter.accepts(&of)
            {
                statistic.observe(&of);
            }
        }
        Ok(Values::of(statistic.snapshot().results, statistic.is_duration()))
    }
}

impl Source for TraceSource {
    fn interval(&self) -> Option<Duration> {
        None
    }

    fn overview(&mut self) -> Result<Overview, Failure> {
        Ok(self.overview.clone())
    }

    fn detail(&mut self, focus: &Focus) -> Result<Detail, Failure> {
        let last = lines(self.last.get(&focus.event).into_iter().flatten())?;
        let values = focus.field.as_ref().map(|field| self.values(&focus.event, field)).transpose()?;
        Ok(Detail { values: values.unwrap_or_default(), last, last_title: "last events" })
    }

    fn leave(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn switch(&mut self, _event: &str, _on: bool) -> Result<(), Failure> {
        Err(Failure::Refused(
            "a recorded trace has no switches; `tracectl top` without a path shows running processes".to_owned(),
        ))
    }
}

fn process_name(event: &Event) -> String {
    let metadata = &event.stream.metadata;
    match (metadata.env_value("vpid"), metadata.env_value("procname")) {
        (Some(EnvValue::Integer(pid)), Some(EnvValue::String(name))) => format!("{pid} {name}"),
        _ => "(one trace of several processes)".to_owned(),
    }
}
