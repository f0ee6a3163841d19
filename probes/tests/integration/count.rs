//! Counts, in total and by group.

use crate::in_threads;
use std::path::Path;
use tracepoint_probes::snapshot::{Results, Rows};
use tracepoint_probes::{Count, EventRate, GroupKey, Measure, RunningStatistic, StatisticSpec};

tracepoint::define_trace! {
    provider = "count";

    many(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
    pairs_of(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
    crowded(n: i64) { n: i64 = n }
    named(name: &str) { name: str = name }
    opened(file: &Path) { file: path = file }
    other(flag: bool, ratio: f64, bytes: &[u8]) { flag: bool = flag, ratio: f64 = ratio, bytes: [u8] = bytes }
    plain(n: u32) { n: u32 = n }
    nested(n: u32) { n: u32 = n }
    timed(n: u32) { n: u32 = n }
    bare(n: u32);
}

fn pairs(rows: &Rows<u64>) -> Vec<(GroupKey, u64)> {
    rows.groups.iter().map(|row| (row.keys[0].clone(), row.value)).collect()
}

fn of_limited(event: &str, field: &str, groups: usize) -> RunningStatistic {
    RunningStatistic::start(StatisticSpec::new(Measure::Count).by([field]).max_groups(groups), &[event])
        .expect("starts")
}

fn rows(running: &RunningStatistic) -> Rows<u64> {
    match running.snapshot().results {
        Results::Count(mut rows) => {
            rows.sort_by_rank(|count| *count);
            rows
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn concurrent_threads_lose_no_count() {
    const EVENTS: u64 = 50_000;
    let all = Count::of("count:many", &[]).unwrap();
    let by_value = of_limited("count:many", "n", 100);
    // All threads find the same new groups at the same time.
    in_threads(8, |thread| (0..EVENTS).for_each(|n| tracepoint::trace!(many(thread, n % 100))));
    assert_eq!(all.snapshot().all, Some(8 * EVENTS));
    let rows = rows(&by_value);
    assert_eq!((rows.events, rows.values().sum(), rows.overflow), (8 * EVENTS, 8 * EVENTS, None));
    assert_eq!(pairs(&rows), (0..100).map(|n| (GroupKey::Unsigned(n), 8 * EVENTS / 100)).collect::<Vec<_>>());
}

#[test]
fn threads_beyond_the_cells_share_one() {
    let count = Count::of("count:pairs_of", &["thread", "n"]).unwrap();
    in_threads(40, |thread| (0..1000).for_each(|n| tracepoint::trace!(pairs_of(thread % 4, n % 5))));
    let rows = count.snapshot();
    let mut expected = Vec::new();
    for thread in 0..4 {
        expected.extend((0..5).map(|n| (vec![GroupKey::Unsigned(thread), GroupKey::Unsigned(n)], 2000)));
    }
    assert_eq!(rows.groups.iter().map(|row| (row.keys.clone(), row.value)).collect::<Vec<_>>(), expected);
}

#[test]
fn values_beyond_the_table_are_counted_as_overflow() {
    let count = of_limited("count:crowded", "n", 10);
    // 1 to 10 come first and get the groups; all other values are equally frequent.
    (0..3).for_each(|_| (1..=1000).for_each(|n| tracepoint::trace!(crowded(n))));
    let rows = rows(&count);
    assert_eq!(pairs(&rows), (1..=10).map(|n| (GroupKey::Signed(n), 3)).collect::<Vec<_>>());
    assert_eq!((rows.events, rows.overflow, rows.ungrouped), (3000, Some(2970), None));
}

#[test]
fn texts_with_equal_prefixes_are_distinct_groups() {
    let long = "é".repeat(100);
    let (one, two) = (format!("x{long}1"), format!("x{long}2"));
    let count = Count::of("count:named", &["name"]).unwrap();
    for name in ["", "a", one.as_str(), two.as_str(), "a", one.as_str(), "a"] {
        tracepoint::trace!(named(name));
    }
    let text = |text: &str, whole| GroupKey::Text { text: text.to_owned(), whole };
    // Byte 64 is inside a character, which is dropped.
    let kept = format!("x{}", "é".repeat(31));
    let expected = [(text("a", true), 3), (text(&kept, false), 2), (text("", true), 1), (text(&kept, false), 1)];
    let rows = count.snapshot();
    assert_eq!(pairs(&rows), expected);
    assert_eq!(rows.groups[1].keys[0].to_string(), format!("{kept}…"));
}

#[cfg(unix)]
#[test]
fn paths_are_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let count = Count::of("count:opened", &["file"]).unwrap();
    tracepoint::trace!(opened(Path::new(std::ffi::OsStr::from_bytes(b"/a\xff\n"))));
    let rows = count.snapshot();
    assert_eq!(pairs(&rows), [(GroupKey::Path { bytes: b"/a\xff\n".to_vec(), whole: true }, 1)]);
    assert_eq!(rows.groups[0].keys[0].to_string(), r"/a\xff\n");
}

#[test]
fn every_single_value_is_grouped() {
    let [flag, ratio] = ["flag", "ratio"].map(|field| Count::of("count:other", &[field]).unwrap());
    for (set, value) in [(true, 0.5), (false, 0.0), (true, f64::NAN)] {
        tracepoint::trace!(other(set, value, &[1, 2]));
    }
    assert_eq!(pairs(&flag.snapshot()), [(GroupKey::Bool(true), 2), (GroupKey::Bool(false), 1)]);
    let ratios: Vec<_> = pairs(&ratio.snapshot()).into_iter().map(|(key, count)| (key.to_string(), count)).collect();
    assert_eq!(ratios, [("0".to_owned(), 1), ("0.5".to_owned(), 1), ("NaN".to_owned(), 1)]);
}

#[test]
fn what_cannot_be_computed_is_refused_with_the_reason() {
    let error = |event, by: &[&str]| Count::of(event, by).unwrap_err().to_string();
    assert_eq!(error("count:plain", &["m"]), "count:plain has no field `m`; its fields: n");
    assert_eq!(error("count:other", &["bytes"]), "the field `bytes` of count:other is not a single value");
    assert_eq!(error("count:plian", &[]), "no tracepoint is called `count:plian`; did you mean count:plain?");
    assert_eq!(error("count:bare", &[]), "count:bare has no fields: give it a field block in `define_trace!`");
    assert_eq!(
        error("count:other", &["flag", "ratio", "flag"]),
        "`count by flag, ratio, flag`: at most two fields can group events"
    );
    let rate = StatisticSpec::new(Measure::Rate).by(["n"]);
    assert_eq!(
        RunningStatistic::start(rate, &["count:plain"]).unwrap_err().to_string(),
        "`rate by n`: only count, hist and latency have groups"
    );
}

#[test]
fn nothing_is_counted_after_the_end() {
    let count = Count::of("count:plain", &[]).unwrap();
    (0..5).for_each(|n| tracepoint::trace!(plain(n)));
    assert_eq!(count.snapshot().all, Some(5));
    drop(count);
    assert!(!tracepoint::find("count:plain").unwrap().marker().unwrap().is_on());
}

#[test]
fn an_event_inside_an_event_is_counted() {
    let count = Count::of("count:nested", &["n"]).unwrap();
    let probe = register_trace_nested(|n| {
        if n < 3 {
            tracepoint::trace!(nested(n + 1));
        }
    })
    .unwrap();
    tracepoint::trace!(nested(0));
    drop(probe);
    assert_eq!(pairs(&count.snapshot()), (0..4).map(|n| (GroupKey::Unsigned(n), 1)).collect::<Vec<_>>());
}

#[test]
fn a_rate_has_every_event_in_its_second() {
    let rate = EventRate::of("count:timed").unwrap();
    in_threads(20, |_| (0..1000).for_each(|n| tracepoint::trace!(timed(n))));
    let rate = rate.snapshot();
    assert_eq!((rate.events, rate.seconds.iter().map(|(_, count)| count).sum()), (20_000, 20_000_u64));
    let last = rate.seconds.last().unwrap().0;
    let in_window = rate.seconds.iter().map(|(_, count)| count).sum::<u64>();
    assert!((rate.per_second((last + 1) * 1_000_000_000, 60) * 60.0 - in_window as f64).abs() < 0.5);
    assert_eq!(rate.per_second((last + 70) * 1_000_000_000, 60), 0.0, "long ago");
}
