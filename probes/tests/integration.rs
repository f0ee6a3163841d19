//! Counts against numbers that are known.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::{Arc, Barrier};
use tracepoint::marker::{FieldView, Filter, Marker, Subscriber};
use tracepoint_probes::Count;
use tracepoint_probes::count::{Counts, GroupKey};

tracepoint::define_trace! {
    provider = "count";

    many(thread: u32, n: u64) { thread: u32 = thread, n: u64 = n }
    crowded(n: i64) { n: i64 = n }
    named(name: &str) { name: str = name }
    opened(file: &Path) { file: path = file }
    other(flag: bool, ratio: f64, bytes: &[u8]) { flag: bool = flag, ratio: f64 = ratio, bytes: [u8] = bytes }
    plain(n: u32) { n: u32 = n }
    filtered(n: u32) { n: u32 = n }
}

fn marker(name: &str) -> &'static Marker {
    tracepoint::find(&format!("count:{name}")).unwrap().marker().unwrap()
}

/// Counts what `fire` fires.
fn counted(name: &str, count: Count, fire: impl FnOnce()) -> Counts {
    let count = Arc::new(count);
    let subscription = marker(name).subscribe(Subscriber::aggregate(count.clone())).expect("switches");
    fire();
    drop(subscription);
    count.snapshot()
}

fn pairs(counts: &Counts) -> Vec<(GroupKey, u64)> {
    counts.groups.iter().map(|group| (group.key.clone(), group.count)).collect()
}

#[test]
fn concurrent_threads_lose_no_count() {
    const THREADS: u32 = 8;
    const EVENTS: u64 = 50_000;
    let fire = || {
        let barrier = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    // All threads come upon the same new groups at the same time.
                    (0..EVENTS).for_each(|n| tracepoint::trace!(many(thread, n % 100)));
                });
            }
        });
    };
    let counts = counted("many", Count::by("n", 99), fire);
    let all = u64::from(THREADS) * EVENTS;
    assert_eq!((counts.total, counts.accounted()), (all, all));
    assert_eq!((counts.overflow, counts.ungrouped), (0, 0), "exactly as many groups as there is room for");
    let expected: Vec<_> = (0..100).map(|n| (GroupKey::Unsigned(n), all / 100)).collect();
    assert_eq!(pairs(&counts), expected);
}

#[test]
fn values_beyond_the_table_are_counted_as_overflow() {
    let fire = || {
        // 1 to 10 come first and have the groups; every further value comes as often.
        (0..3).for_each(|_| (1..=1000).for_each(|n| tracepoint::trace!(crowded(n))));
    };
    let counts = counted("crowded", Count::by("n", 10), fire);
    assert_eq!(pairs(&counts), (1..=10).map(|n| (GroupKey::Signed(n), 3)).collect::<Vec<_>>());
    assert_eq!((counts.total, counts.overflow, counts.ungrouped), (3000, 2970, 0));
}

#[test]
fn texts_with_equal_prefixes_are_distinct_groups() {
    let long = "é".repeat(100);
    let (one, two) = (format!("x{long}1"), format!("x{long}2"));
    let fire = || {
        for name in ["", "a", one.as_str(), two.as_str(), "a", one.as_str(), "a"] {
            tracepoint::trace!(named(name));
        }
    };
    let counts = counted("named", Count::by("name", 8), fire);
    let text = |text: &str, whole| GroupKey::Text { text: text.to_owned(), whole };
    // 64 bytes end inside a character: it is left out.
    let kept = format!("x{}", "é".repeat(31));
    let expected = [(text("a", true), 3), (text(&kept, false), 2), (text("", true), 1), (text(&kept, false), 1)];
    assert_eq!(pairs(&counts), expected);
    assert_eq!(counts.groups[1].key.to_string(), format!("{kept}…"));
}

#[cfg(unix)]
#[test]
fn paths_are_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff\n"));
    let counts = counted("opened", Count::by("file", 8), || tracepoint::trace!(opened(path)));
    assert_eq!(pairs(&counts), [(GroupKey::Path { bytes: b"/a\xff\n".to_vec(), whole: true }, 1)]);
    assert_eq!(counts.groups[0].key.to_string(), r"/a\xff\n");
}

#[test]
fn every_kind_of_field_is_grouped_or_counted_as_ungrouped() {
    let [flag, ratio, bytes, missing] =
        ["flag", "ratio", "bytes", "missing"].map(|field| Arc::new(Count::by(field, 4)));
    let subscriptions: Vec<_> = [&flag, &ratio, &bytes, &missing]
        .map(|count| marker("other").subscribe(Subscriber::aggregate(count.clone())).expect("switches"))
        .into();
    for (set, value) in [(true, 0.5), (false, 0.0), (true, f64::NAN)] {
        tracepoint::trace!(other(set, value, &[1, 2]));
    }
    tracepoint::marker::Subscription::end_all(subscriptions);
    assert_eq!(pairs(&flag.snapshot()), [(GroupKey::Bool(true), 2), (GroupKey::Bool(false), 1)]);
    let ratios: Vec<_> = ratio.snapshot().groups.iter().map(|g| (g.key.to_string(), g.count)).collect();
    assert_eq!(ratios, [("0".to_owned(), 1), ("0.5".to_owned(), 1), ("NaN".to_owned(), 1)]);
    for count in [bytes, missing] {
        let counts = count.snapshot();
        assert_eq!((counts.total, counts.ungrouped, counts.groups.len()), (3, 3, 0));
    }
}

#[test]
fn a_count_without_a_field_has_no_groups() {
    let counts = counted("plain", Count::new(), || (0..5).for_each(|n| tracepoint::trace!(plain(n))));
    assert_eq!((counts.total, counts.groups.len(), counts.accounted()), (5, 0, 0));
}

#[test]
fn a_filter_decides_what_is_counted() {
    struct Even;
    impl Filter for Even {
        fn accept(&self, event: FieldView<'_>) -> bool {
            matches!(event.by_name("n"), Some(tracepoint::field::Value::Unsigned(n)) if n % 2 == 0)
        }
    }
    let count = Arc::new(Count::new());
    let subscription =
        marker("filtered").subscribe(Subscriber::aggregate(count.clone()).filter(Arc::new(Even))).expect("switches");
    (0..9).for_each(|n| tracepoint::trace!(filtered(n)));
    assert_eq!(count.snapshot().total, 5);
    drop(subscription);
    tracepoint::trace!(filtered(2));
    assert_eq!(count.snapshot().total, 5, "nothing is observed after the subscription");
}
