//! Results that are read from the memory of a statistic, by whoever has it.

use crate::{Random, seed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::field::Value;
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{FieldKind, Measure, Memory, Moment, Role, Snapshot, Statistic, StatisticError, StatisticSpec};

/// Words that the statistic and a reader share.
#[derive(Clone)]
struct Shared(Arc<[AtomicU64]>);

impl Shared {
    fn zero(words: usize) -> Self {
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Memory for Shared {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

const FIELDS: [(&str, FieldKind); 2] = [("size", FieldKind::Integer), ("name", FieldKind::Other)];

fn specs() -> Vec<StatisticSpec> {
    let text = |text: &str| text.to_owned();
    let latency = |by| Measure::Latency { begin: text("x:a"), end: text("x:b"), by };
    vec![
        StatisticSpec::new(Measure::Count),
        StatisticSpec::new(Measure::Count).by(["name", "size"]).max_groups(7),
        StatisticSpec::new(Measure::Histogram { field: text("size") }),
        StatisticSpec::new(Measure::Histogram { field: text("size") }).by(["name"]).max_groups(3),
        StatisticSpec::new(latency(Some(text("size")))).by(["name"]).max_groups(3),
        StatisticSpec::new(latency(None)),
        StatisticSpec::new(Measure::Rate),
        StatisticSpec::new(Measure::Last { field: text("name"), count: 3 }),
        StatisticSpec::new(Measure::Top { field: text("name"), count: 3 }),
    ]
}

/// A statistic over 1,000 events, and its memory.
fn filled(spec: StatisticSpec) -> (Statistic, Shared) {
    let memory = Shared::zero(Statistic::words_for(&spec, false).unwrap());
    let statistic = Statistic::in_memory(spec, false, Box::new(memory.clone())).unwrap();
    for n in 0..1000_u64 {
        let event = if n % 2 == 0 { "x:a" } else { "x:b" };
        for role in statistic.spec().roles(event) {
            let columns = statistic.spec().columns(role, event, &FIELDS).unwrap();
            let name = ["one", "two", "three", "four"][(n / 2 % 4) as usize];
            let get = |index| Some(if index == 0 { Value::Unsigned(n / 2) } else { Value::Text(name) });
            statistic.record(&columns, Moment::recorded(5_000_000_000 + n, 1), get);
        }
    }
    (statistic, memory)
}

#[test]
fn a_reader_sees_what_the_statistic_says() {
    for spec in specs() {
        let (statistic, memory) = filled(spec.clone());
        let read = Snapshot::read(&memory).unwrap();
        assert_eq!(read, statistic.snapshot());
        assert_eq!(read.statistic, spec.to_string());
        let json = serde_json::to_value(&read).unwrap();
        assert_eq!(json["statistic"], spec.to_string(), "{json}");
        assert!(json["kind"].is_string(), "{json}");
    }
}

#[test]
fn results_of_processes_are_added() {
    for spec in specs() {
        let (one, two) = (filled(spec.clone()).0.snapshot(), filled(spec).0.snapshot());
        let mut sum = one.clone();
        sum.merge(two).unwrap();
        match (&one.results, &sum.results) {
            (Results::Count(one), Results::Count(sum)) => {
                assert_eq!(sum.values().sum::<u64>(), 2 * one.values().sum::<u64>());
                assert_eq!(sum.groups.len(), one.groups.len());
            }
            (Results::Histogram(one), Results::Histogram(sum))
            | (Results::Latency { durations: one, .. }, Results::Latency { durations: sum, .. }) => {
                let count = |rows: &tracepoint_probes::snapshot::Rows<tracepoint_probes::snapshot::Distribution>| {
                    rows.values().map(tracepoint_probes::snapshot::Distribution::count).sum::<u64>()
                };
                assert_eq!(count(sum), 2 * count(one));
            }
            (Results::Rate(one), Results::Rate(sum)) => assert_eq!(sum.seconds, [(5, 2 * one.seconds[0].1)]),
            (Results::Last { values: one }, Results::Last { values: sum }) => assert_eq!(one.len(), sum.len()),
            (Results::Top { values: one }, Results::Top { values: sum }) => {
                assert_eq!((sum[0].count, sum[0].error), (2 * one[0].count, 0));
            }
            other => panic!("{other:?}"),
        }
    }
    let mut count = filled(specs().remove(0)).0.snapshot();
    assert!(count.merge(filled(specs().remove(2)).0.snapshot()).is_err(), "another statistic");
}

#[test]
fn memory_is_checked() {
    let spec = StatisticSpec::new(Measure::Count);
    let words = Statistic::words_for(&spec, false).unwrap();
    let made = |memory: Shared| Statistic::in_memory(spec.clone(), false, Box::new(memory)).map(drop);
    assert_eq!(made(Shared::zero(words - 1)), Err(StatisticError::Memory));
    let memory = Shared::zero(words);
    assert_eq!(made(memory.clone()), Ok(()));
    assert_eq!(made(memory), Err(StatisticError::Memory), "in use");
    assert!(Snapshot::read(&Shared::zero(0)).is_err());
    assert!(Snapshot::read(&Shared::zero(words)).is_err());
}

#[test]
fn memory_that_somebody_has_damaged_is_read_without_harm() {
    let mut random = Random(seed::seed());
    let mut refused = 0;
    for spec in specs() {
        for _ in 0..60 {
            let (_, memory) = filled(spec.clone());
            for _ in 0..=random.next() % 4 {
                // Half of the changes are in the header and the table of groups.
                let range = if random.next().is_multiple_of(2) { 200 } else { memory.0.len() as u64 };
                let at = (random.next() % range.min(memory.0.len() as u64)) as usize;
                let value = [random.next(), u64::MAX, random.next() << 32, 1][random.next() as usize % 4];
                memory.0[at].store(value, Ordering::Relaxed);
            }
            match Snapshot::read(&memory) {
                Ok(mut snapshot) => snapshot.merge(snapshot.clone()).unwrap(),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_begin_needs_no_group() {
    let spec = StatisticSpec::new(Measure::Latency {
        begin: "x:a".to_owned(),
        end: "x:b".to_owned(),
        by: Some("size".to_owned()),
    })
    .by(["name"]);
    assert!(spec.columns(Role::Begin, "x:a", &FIELDS[..1]).is_ok());
    let error = spec.columns(Role::Observed, "x:b", &FIELDS[..1]).unwrap_err();
    assert_eq!(error.to_string(), "x:b has no field `name`; its fields: size");
}
