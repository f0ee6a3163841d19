//! Distributions compared with exact percentiles.

use crate::{Random, in_threads, seed};
use std::sync::Mutex;
use tracepoint::field::Value;
use tracepoint_probes::snapshot::{Distribution, Number, Results};
use tracepoint_probes::{
    FieldKind, GroupKey, Histogram, Measure, Moment, Role, Statistic, StatisticError, StatisticSpec,
};

tracepoint::define_trace! {
    provider = "histogram";

    sized(route: &str, size: u64) { route: str = route, size: u64 = size }
    grouped(route: &str, size: u64) { route: str = route, size: u64 = size }
    signed(n: i32) { n: i32 = n }
    binned(size: u64, x: f64) { size: u64 = size, x: f64 = x }
    ratio(x: f64) { x: f64 = x, name: str = "x" }
}

/// Nearest rank.
fn exact(sorted: &[f64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank - 1]
}

fn compare(distribution: &Distribution, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    assert_eq!(distribution.count(), values.len() as u64);
    for percent in [0.0, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
        let (found, exact) = (distribution.percentile(percent).unwrap(), exact(&values, percent));
        assert!((found - exact).abs() <= exact / 64.0, "p{percent}: {found}, exactly {exact}");
        assert!(exact >= 1024.0 || exact.fract() != 0.0 || found == exact, "p{percent}: {found}, exactly {exact}");
    }
    assert_eq!([distribution.min(), distribution.percentile(0.0)], [values.first().copied(); 2]);
    assert_eq!([distribution.max(), distribution.percentile(100.0)], [values.last().copied(); 2]);
    // The order of floating-point additions differs.
    let sum = values.iter().sum::<f64>();
    assert!((distribution.sum() - sum).abs() <= sum * 1e-12, "{} {sum}", distribution.sum());
    assert_eq!(distribution.mean(), Some(distribution.sum() / values.len() as f64));
    assert_eq!(distribution.buckets().map(|bucket| bucket.count).sum::<u64>(), values.len() as u64);
}

#[test]
fn percentiles_are_within_the_stated_error() {
    let seed = seed::or(1);
    let all = Histogram::of("histogram:sized", "size", &[]).unwrap();
    let by_route = Histogram::of("histogram:sized", "size", &["route"]).unwrap();
    let fired = Mutex::new(Vec::new());
    in_threads(20, |thread| {
        let mut random = Random(seed + thread);
        let values: Vec<u64> = (0..2000).map(|_| random.next() << 20 >> (random.next() % 52)).collect();
        for value in &values {
            tracepoint::trace!(sized(if value % 2 == 0 { "even" } else { "odd" }, *value));
        }
        fired.lock().unwrap().extend(values);
    });
    let fired = fired.into_inner().unwrap();
    compare(&all.snapshot().all.unwrap(), fired.iter().map(|value| *value as f64).collect());
    let rows = by_route.snapshot();
    assert_eq!((rows.events, rows.groups.len()), (40_000, 2));
    for row in rows.groups {
        let is_even = row.keys[0] == GroupKey::Text { text: "even".to_owned(), whole: true };
        compare(&row.value, fired.iter().filter(|v| (*v % 2 == 0) == is_even).map(|v| *v as f64).collect());
    }
}

#[test]
fn values_that_have_no_bucket_are_counted() {
    let histogram = Histogram::of("histogram:signed", "n", &[]).unwrap();
    (-3..3).for_each(|n| tracepoint::trace!(signed(n)));
    let all = histogram.snapshot().all.unwrap();
    assert_eq!(
        all.buckets().map(|bucket| (bucket.from, bucket.count)).collect::<Vec<_>>(),
        [(0.0, 1), (1.0, 1), (2.0, 1)]
    );
}

#[test]
fn floating_point_numbers_have_buckets() {
    let histogram = Histogram::of("histogram:ratio", "x", &[]).unwrap();
    let mut random = Random(seed::or(2));
    let values: Vec<f64> =
        (0..5000).map(|_| 2_f64.powf(random.next() as f64 / f64::from(u32::MAX) * 100.0 - 50.0)).collect();
    for x in values.iter().chain(&[-1.0, f64::NAN]) {
        tracepoint::trace!(ratio(*x));
    }
    compare(&histogram.snapshot().all.unwrap(), values);
}

/// The distribution of values seen by a statistic over a field of arbitrary numbers, or of integers.
fn distribution(kind: FieldKind, values: &[Value<'_>]) -> Distribution {
    let spec = StatisticSpec::new(Measure::Histogram { field: "n".to_owned() });
    let columns = spec.columns(Role::Observed, "a:b", &[("n", kind)]).unwrap();
    let statistic = Statistic::new(spec, kind == FieldKind::Float).unwrap();
    for (index, value) in values.iter().enumerate() {
        // Use several cells, including the shared one.
        statistic.record(&columns, Moment::recorded(0, 0).counted_in(index % 20), |_| Some(*value));
    }
    match statistic.snapshot().results {
        Results::Histogram(rows) => rows.all.unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Minimum, median, maximum and sum in JSON.
fn figures(distribution: &Distribution) -> String {
    let json = serde_json::to_value(distribution).unwrap();
    ["min", "p50", "max", "sum"].map(|name| json[name].to_string()).join(" ")
}

#[test]
fn values_that_never_occurred_are_not_shown() {
    let all = |values: &[u64]| values.iter().map(|value| Value::Unsigned(*value)).collect::<Vec<_>>();
    let codes = all(&[200, 503, 200, 200, 404]);
    let ids = all(&[103_938, 144_868]);
    let integers: [(&[Value<'_>], &str); 8] = [
        (&all(&[200; 3]), "200 200 200 600"),
        (&all(&[503]), "503 503 503 503"),
        (&codes, "200 200 503 1507"),
        (&ids, "103938 103938 144868 248806"),
        (&all(&[70_001, 70_003, 70_005]), "70001 70003 70005 210009"),
        // More digits than a floating-point number can represent.
        (&all(&[9_007_199_254_740_993; 3]), "9007199254740993 9007199254740993 9007199254740993 27021597764222979"),
        (&all(&[0, u64::MAX]), "0 0 18446744073709551615 18446744073709551615"),
        (&[Value::Signed(-1), Value::Signed(300), Value::Float(1.5)], "300 300 300 300"),
    ];
    for (values, expected) in integers {
        assert_eq!(figures(&distribution(FieldKind::Integer, values)), expected, "{values:?}");
    }
    let any: [(&[Value<'_>], &str); 5] = [
        (&[Value::Unsigned(3)], "3 3 3 3"),
        (&codes, "200 200 503 1507"),
        (&all(&[9_007_199_254_740_993]), "9007199254740993 9007199254740993 9007199254740993 9007199254740993"),
        (&[Value::Float(0.3), Value::Float(200.0), Value::Unsigned(200), Value::Float(-0.0)], "0 0.3 200 400.3"),
        (&[Value::Float(0.1), Value::Float(f64::NAN), Value::Float(-0.1)], "0.1 0.1 0.1 0.1"),
    ];
    for (values, expected) in any {
        assert_eq!(figures(&distribution(FieldKind::Float, values)), expected, "{values:?}");
    }
    let whole = distribution(FieldKind::Integer, &all(&[u64::MAX; 3]));
    assert_eq!(whole.integer_sum(), Some(3 * u128::from(u64::MAX)));
    assert_eq!((whole.mean(), whole.number(50.0)), (whole.max(), Some(Number::Integer(u64::MAX))));
}

#[test]
fn parts_of_processes_have_the_extremes_and_the_sum_of_all() {
    let of = |values: &[f64]| {
        distribution(FieldKind::Float, &values.iter().map(|value| Value::Float(*value)).collect::<Vec<_>>())
    };
    let mut all = of(&[70_001.0, 0.25]);
    all.merge(of(&[90_001.0, 0.125, 3.0]));
    all.merge(Distribution::default());
    assert_eq!(figures(&all), "0.125 3 90001 160005.375");
    assert_eq!(all.count(), 5);
}

#[test]
fn a_text_has_no_histogram() {
    let error = Histogram::of("histogram:ratio", "name", &[]).unwrap_err();
    assert!(matches!(&error, StatisticError::FieldType { wanted: "a number", .. }), "{error}");
}

#[test]
fn groups_share_a_cell_where_each_thread_would_need_too_much() {
    let histogram = Histogram::of("histogram:grouped", "size", &["route"]).unwrap();
    in_threads(8, |thread| {
        (0..10_000).for_each(|size| tracepoint::trace!(grouped(["a", "b"][thread as usize % 2], size)));
    });
    let rows = histogram.snapshot();
    assert_eq!(rows.groups.iter().map(|row| row.value.count()).collect::<Vec<_>>(), [40_000, 40_000]);
}

/// Checks that the bins of `now`, and of the values added to `before`, contain each value once and have no gaps.
fn check_bins(before: &Distribution, now: &Distribution) {
    let added = now.since(before);
    assert_eq!(added.count(), now.count() - before.count());
    let mut both = before.clone();
    both.merge(added);
    // The difference of two sums of floating-point numbers is rounded.
    assert_eq!(both.buckets().collect::<Vec<_>>(), now.buckets().collect::<Vec<_>>());
    assert_eq!((both.number(0.0), both.number(100.0)), (now.number(0.0), now.number(100.0)));
    assert_eq!(both.integer_sum(), now.integer_sum());
    assert!((both.sum() - now.sum()).abs() <= now.sum() * 1e-9);
    for most in [1, 7, 24, 10_000] {
        let bins = now.bins(most);
        assert!((1..=most).contains(&bins.len()));
        assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from));
        let buckets: Vec<_> = now.buckets().collect();
        for bin in &bins {
            let inside = buckets.iter().filter(|bucket| bin.from <= bucket.from && bucket.to <= bin.to);
            assert_eq!(bin.count, inside.map(|bucket| bucket.count).sum::<u64>(), "{bin:?}");
        }
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), now.count());
    }
}

#[test]
fn bins_have_all_values_and_differences_those_added() {
    let histogram = Histogram::of("histogram:binned", "size", &[]).unwrap();
    let ratios = Histogram::of("histogram:binned", "x", &[]).unwrap();
    let mut random = Random(seed::or(3));
    assert!(histogram.snapshot().all.unwrap().bins(5).is_empty());
    let mut before = (Distribution::default(), Distribution::default());
    for _ in 0..20 {
        for _ in 0..=random.next() % 200 {
            let size = random.next() << 20 >> (random.next() % 60);
            tracepoint::trace!(binned(size, 1.0 / (size as f64 + 0.5)));
        }
        let now = (histogram.snapshot().all.unwrap(), ratios.snapshot().all.unwrap());
        check_bins(&before.0, &now.0);
        check_bins(&before.1, &now.1);
        before = now;
    }
}

/// Values added to a histogram that has small and large values already: the overall extremes give no information about them.
#[test]
fn differences_are_of_values_that_can_occur() {
    let added = |values: &[u64]| {
        let spec = StatisticSpec::new(Measure::Histogram { field: "size".to_owned() });
        let columns = spec.columns(Role::Observed, "a:b", &[("size", FieldKind::Integer)]).unwrap();
        let statistic = Statistic::new(spec, false).unwrap();
        let record = |value: &u64| {
            statistic.record(&columns, Moment::recorded(0, 0), |_| Some(Value::Unsigned(*value)));
        };
        let whole = || match statistic.snapshot().results {
            Results::Histogram(rows) => rows.all.unwrap(),
            other => panic!("{other:?}"),
        };
        [1, u64::MAX / 2].iter().for_each(record);
        let before = whole();
        values.iter().for_each(record);
        whole().since(&before)
    };
    let all = |values: &Distribution| [0.0, 50.0, 99.0, 100.0].map(|percent| values.percentile(percent).unwrap());
    // Equal values are exact, wherever in their bucket they are.
    for value in [1500, 5000, 5001, 103_938, 1_000_003] {
        let values = added(&[value; 7]);
        assert_eq!((all(&values), values.mean()), ([value as f64; 4], Some(value as f64)));
    }
    // The mean is exact, and the extremes are integers on both sides of it.
    let mut random = Random(seed::or(7));
    for _ in 0..200 {
        let values: Vec<_> =
            (0..=random.next() % 20).map(|_| 2000 + random.next() % (1 << (random.next() % 12))).collect();
        let found = added(&values);
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        let (min, max) = (found.min().unwrap(), found.max().unwrap());
        assert_eq!(found.mean(), Some(mean), "{values:?}");
        assert!(min <= mean && mean <= max && min.fract() == 0.0 && max.fract() == 0.0, "{min} {mean} {max}");
        assert!(all(&found).is_sorted(), "{found:?}");
        let exact = [values.iter().min().unwrap(), values.iter().max().unwrap()].map(|value| *value as f64);
        for (shown, exact) in [(min, exact[0]), (max, exact[1])] {
            assert!((shown - exact).abs() <= exact / 64.0, "{shown} for {exact} in {values:?}");
        }
    }
}
