//! The last and the most frequent values.

use crate::{Random, in_threads, seed};
use std::collections::HashMap;
use std::sync::Mutex;
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{GroupKey, Last, Measure, RunningStatistic, Snapshot, StatisticSpec, Top};

tracepoint::define_trace! {
    provider = "kept";

    value(n: u64) { n: u64 = n }
    text(name: &str) { name: str = name }
    crossing(n: u64) { n: u64 = n }
    skewed(n: u64) { n: u64 = n }
    few(name: &str) { name: str = name }
}

#[test]
fn the_last_values_are_the_last() {
    let last = Last::of("kept:value", "n", 5).unwrap();
    assert!(last.snapshot().is_empty());
    (0..3).for_each(|n| tracepoint::trace!(value(n)));
    let numbers = || -> Vec<_> { last.snapshot().into_iter().map(|last| last.value).collect() };
    assert_eq!(numbers(), [0, 1, 2].map(GroupKey::Unsigned));
    (3..1000).for_each(|n| tracepoint::trace!(value(n)));
    assert_eq!(numbers(), [995, 996, 997, 998, 999].map(GroupKey::Unsigned));
    let texts = Last::of("kept:text", "name", 1).unwrap();
    tracepoint::trace!(text("one"));
    tracepoint::trace!(text("two"));
    assert_eq!(texts.snapshot()[0].value.to_string(), "two");
}

#[test]
fn the_last_values_of_many_threads_are_whole_and_in_order() {
    let last = Last::of("kept:crossing", "n", 64).unwrap();
    in_threads(24, |thread| {
        (0..5000).for_each(|n| tracepoint::trace!(crossing(thread << 32 | n)));
        for pair in last.snapshot().windows(2) {
            assert!(pair[0].time <= pair[1].time);
        }
    });
    let values = last.snapshot();
    assert_eq!(values.len(), 64);
    assert!(
        values.iter().all(|last| matches!(last.value, GroupKey::Unsigned(n) if n >> 32 < 24 && n & 0xFFFF_FFFF < 5000))
    );
}

#[test]
fn frequent_values_are_found_within_their_bounds() {
    let seed = seed::or(4);
    let measure = Measure::Top { field: "n".to_owned(), count: 10 };
    let top = RunningStatistic::start(StatisticSpec::new(measure), &["kept:skewed"]).unwrap();
    let fired = Mutex::new(HashMap::<u64, u64>::new());
    in_threads(4, |thread| {
        let mut random = Random(seed + thread);
        let mut own = HashMap::<u64, u64>::new();
        for _ in 0..50_000 {
            // A number near n occurs with a probability of about 1/n².
            let n = u64::from(u32::MAX) / (random.next() + 1);
            tracepoint::trace!(skewed(n));
            *own.entry(n).or_default() += 1;
        }
        let mut fired = fired.lock().unwrap();
        for (n, count) in own {
            *fired.entry(n).or_default() += count;
        }
    });
    let fired = fired.into_inner().unwrap();
    let Snapshot { results: Results::Top { values }, skipped, .. } = top.snapshot() else { panic!("not top") };
    assert_eq!(values.len(), 10);
    for value in &values {
        let GroupKey::Unsigned(n) = value.value else { panic!("{value:?}") };
        let exact = fired.get(&n).copied().unwrap_or(0);
        assert!(exact <= value.count + skipped && exact >= value.count - value.error, "{value:?}, exactly {exact}");
    }
    let mut expected: Vec<_> = fired.into_iter().collect();
    expected.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (n, count) in &expected[..5] {
        assert!(values.iter().any(|value| value.value == GroupKey::Unsigned(*n)), "{n}, {count} times, is missing");
    }
}

#[test]
fn few_values_are_counted_exactly() {
    let top = Top::of("kept:few", "name", 3).unwrap();
    for (name, times) in [("a", 5), ("b", 7), ("c", 1), ("d", 2)] {
        (0..times).for_each(|_| tracepoint::trace!(few(name)));
    }
    let values: Vec<_> = top.snapshot().into_iter().map(|v| (v.value.to_string(), v.count, v.error)).collect();
    assert_eq!(values, [("b".to_owned(), 7, 0), ("a".to_owned(), 5, 0), ("d".to_owned(), 2, 0)]);
}
