//! Distributions against exact percentiles.

use crate::{Random, in_threads, seed};
use std::sync::Mutex;
use tracepoint_probes::snapshot::Distribution;
use tracepoint_probes::{GroupKey, Histogram, StatisticError};

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
    }
    assert_eq!(distribution.min(), distribution.percentile(0.0));
    assert_eq!(distribution.max(), distribution.percentile(100.0));
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!((distribution.mean().unwrap() - mean).abs() <= mean / 64.0);
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

/// The bins of `now` and of what was added to `before` hold each value once, and their bounds have no gap.
fn check_bins(before: &Distribution, now: &Distribution) {
    let added = now.since(before);
    assert_eq!(added.count(), now.count() - before.count());
    let mut both = before.clone();
    both.merge(added);
    assert_eq!(&both, now);
    for most in [1, 7, 24, 10_000] {
        let bins = now.bins(most);
        assert!((1..=most).contains(&bins.len()));
        assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from));
        for bin in &bins {
            let inside = now.buckets().filter(|bucket| bin.from <= bucket.from && bucket.to <= bin.to);
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
