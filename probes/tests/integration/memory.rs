//! Results read from the memory of a statistic by other readers.

use crate::{Random, seed};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::field::Value;
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{
    FieldKind, FormatError, Measure, Memory, Moment, Role, Snapshot, Statistic, StatisticError, StatisticSpec,
};

/// Words that the statistic and a reader share.
#[derive(Clone)]
struct Shared(Arc<[AtomicU64]>);

impl Shared {
    fn zero(words: usize) -> Self {
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Shared {
    fn copy(&self) -> Box<[AtomicU64]> {
        self.0.iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect()
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
        assert_eq!(Snapshot::read_shared(|| Ok::<_, Infallible>(memory.copy())), Ok(Ok(read.clone())), "copies of it");
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
    let (_, newer) = filled(spec.clone());
    for other in [b"TPSTAT1\0", b"TPSTAT3\0"] {
        newer.0[0].store(u64::from_le_bytes(*other), Ordering::Relaxed);
        assert_eq!(Snapshot::read(&newer), Err(FormatError), "of another version");
    }
}

#[test]
fn memory_that_somebody_has_damaged_is_read_without_harm() {
    let mut random = Random(seed::seed());
    let mut refused = 0;
    for spec in specs() {
        for _ in 0..60 {
            let (_, memory) = filled(spec.clone());
            for _ in 0..=random.next() % 4 {
                // Half of the changes affect the header and the table of groups.
                let range = if random.next().is_multiple_of(2) { 200 } else { memory.0.len() as u64 };
                let at = (random.next() % range.min(memory.0.len() as u64)) as usize;
                let value = [random.next(), u64::MAX, random.next() << 32, 1][random.next() as usize % 4];
                memory.0[at].store(value, Ordering::Relaxed);
            }
            match Snapshot::read(&memory) {
                Ok(mut snapshot) => snapshot.merge(snapshot.clone()).unwrap(),
                Err(_) => refused += 1,
            }
            // Read a truncated file, and a file whose header changes between two copies.
            let len = random.next() as usize % memory.0.len();
            let copies = || {
                Ok::<_, Infallible>(
                    memory.copy()[..len].iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect(),
                )
            };
            assert_eq!(Snapshot::read_shared(copies), Ok(Err(FormatError)));
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

/// A process writes while another one copies its memory: values incomplete in a copy are omitted.
#[test]
fn half_written_values_are_left_out() {
    let spec = StatisticSpec::new(Measure::Last { field: "name".to_owned(), count: 3 });
    let (statistic, memory) = filled(spec);
    let columns = statistic.spec().columns(Role::Observed, "x:a", &FIELDS).unwrap();
    let mut copied = 0;
    let copy = || {
        let copy = memory.copy();
        copied += 1;
        // Replace a value after each copy.
        let name = ["five", "six", "seven"][copied % 3];
        statistic.record(&columns, Moment::recorded(9_000_000_000, 1), |_| Some(Value::Text(name)));
        Ok::<_, Infallible>(copy)
    };
    let Ok(Ok(snapshot)) = Snapshot::read_shared(copy) else { panic!("it can be read") };
    let Results::Last { values } = snapshot.results else { panic!("{snapshot:?}") };
    assert_eq!((copied, values.len()), (3, 1), "two were replaced between the first copy and the last: {values:?}");

    let grouped = StatisticSpec::new(Measure::Count).by(["name"]).max_groups(7);
    let (statistic, memory) = filled(grouped);
    let columns = statistic.spec().columns(Role::Observed, "x:a", &FIELDS).unwrap();
    let copy = || {
        let copy = memory.copy();
        statistic.record(&columns, Moment::recorded(0, 1), |_| Some(Value::Text("new")));
        Ok::<_, Infallible>(copy)
    };
    let Ok(Ok(snapshot)) = Snapshot::read_shared(copy) else { panic!("it can be read") };
    let Results::Count(rows) = snapshot.results else { panic!("{snapshot:?}") };
    assert_eq!(rows.groups.len(), 4, "the new group is not in the first copy: {rows:?}");
}

/// A process is killed after it has raised the extremes, and before it has counted the value: percentiles stay within the extremes, and the extremes
/// stay within the buckets.
#[test]
fn a_value_that_is_half_added_is_left_out() {
    let spec = StatisticSpec::new(Measure::Histogram { field: "size".to_owned() });
    let (statistic, memory) = filled(spec);
    let Results::Histogram(before) = statistic.snapshot().results else { panic!("a histogram") };
    let columns = statistic.spec().columns(Role::Observed, "x:a", &FIELDS).unwrap();
    let copy = memory.copy();
    statistic.record(&columns, Moment::recorded(0, 1), |_| Some(Value::Unsigned(70_000)));
    let changed = |(at, word): &(usize, &AtomicU64)| word.load(Ordering::Relaxed) != copy[*at].load(Ordering::Relaxed);
    let (bucket, _) = memory.0.iter().enumerate().filter(changed).last().unwrap();
    memory.0[bucket].store(copy[bucket].load(Ordering::Relaxed), Ordering::Relaxed);
    let Ok(Ok(read)) = Snapshot::read_shared(|| Ok::<_, Infallible>(memory.copy())) else { panic!("it can be read") };
    let Results::Histogram(read) = read.results else { panic!("a histogram") };
    assert_eq!(read.all.unwrap().number(100.0), before.all.unwrap().number(100.0));
}
