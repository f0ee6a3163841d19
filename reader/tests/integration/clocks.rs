//! Traces of hosts with different clocks, stored by a collector.

use crate::hand::{Packet, one_event};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tracepoint_reader::convert::{ConvertOptions, convert};
use tracepoint_reader::{Follow, Item, PollResult, Trace};

const OWN_OFFSET: i64 = 1_700_000_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// A trace of a host whose clock has this digit in its uuid, with events at these nanoseconds, and its alignment.
fn host(root: &Path, name: &str, clock: char, times: &[u64], alignment: &str) {
    let directory = root.join(name);
    fs::create_dir_all(directory.join(".account")).unwrap();
    let metadata = one_event("u32 n;").replace("11111111-2222", &format!("{clock}1111111-2222"));
    fs::write(directory.join("metadata"), metadata.replace("0f1e2d3c", &format!("0f1e2d3{clock}"))).unwrap();
    let records: Vec<_> = times.iter().map(|time| (0, *time, &[7, 0, 0, 0][..])).collect();
    fs::write(directory.join("channel0_0"), Packet::of(&records).bytes()).unwrap();
    if !alignment.is_empty() {
        fs::write(directory.join(".account/clock-alignment"), alignment).unwrap();
    }
}

/// The events in order: trace and nanoseconds since the offset in the metadata.
fn events(items: impl Iterator<Item = Item>) -> Vec<(String, i64)> {
    let events = items.filter_map(|item| match item {
        Item::Event(event) => {
            let trace = event.stream.file.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
            Some((trace, event.time_ns - OWN_OFFSET))
        }
        _ => None,
    });
    events.collect()
}

fn expected(events: &[(&str, i64)]) -> Vec<(String, i64)> {
    events.iter().map(|(trace, time)| ((*trace).to_owned(), *time)).collect()
}

#[test]
fn a_host_whose_clock_is_behind_is_merged_by_the_clock_of_the_collector() {
    let root = TempDir::new().unwrap();
    // The clock of the second host is 5 s behind; the first line is an earlier estimate, the last one was cut off by a kill.
    host(root.path(), "a", '2', &[100, 300], &format!("1000 {OWN_OFFSET} 20\n"));
    let behind = OWN_OFFSET + 5 * SECOND;
    let lines = format!("1000 {} 90000\n2000 {behind} 30\n3000 17", behind + 70_000);
    host(root.path(), "b", '3', &[200, 400], &lines);
    let trace = Trace::open(root.path()).unwrap();
    let s = 5 * SECOND;
    assert_eq!(events(trace.items()), expected(&[("a", 100), ("a", 300), ("b", s + 200), ("b", s + 400)]));
    let found = trace.alignments().map(|(_, alignment)| alignment.unwrap());
    let found: Vec<_> = found.map(|alignment| (alignment.offset, alignment.bound, alignment.correction)).collect();
    assert_eq!(found, [(OWN_OFFSET, 20, 0), (behind, 30, s)]);
    // Requested times are also on the collector's clock.
    assert_eq!(events(trace.items_since(OWN_OFFSET + s)), expected(&[("b", s + 200), ("b", s + 400)]));
    let mut follow = Follow::open(&[root.path().to_owned()], i64::MIN).unwrap();
    fs::write(root.path().join("a/.account/account.json"), "{}").unwrap();
    fs::write(root.path().join("b/.account/account.json"), "{}").unwrap();
    let followed = std::iter::from_fn(|| {
        loop {
            match follow.poll().unwrap() {
                PollResult::Item(item) => return Some(item),
                PollResult::Ended => return None,
                _ => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        }
    });
    assert_eq!(events(followed), events(trace.items()));
}

#[test]
fn processes_of_one_host_keep_their_order() {
    let root = TempDir::new().unwrap();
    // Each has its own estimate, and these differ by more than the distance between events.
    host(root.path(), "a", '2', &[100, 300], &format!("1000 {} 900\n", OWN_OFFSET + 700));
    host(root.path(), "b", '2', &[200], &format!("1000 {} 50\n", OWN_OFFSET + 10));
    host(root.path(), "c", '2', &[250], "");
    let trace = Trace::open_all(&["a", "b", "c"].map(|name| root.path().join(name))).unwrap();
    assert_eq!(events(trace.items()), expected(&[("a", 110), ("b", 210), ("c", 260), ("a", 310)]));
    assert!(trace.alignments().all(|(_, alignment)| alignment.is_some_and(|alignment| alignment.bound == 50)));
}

#[test]
fn a_dt_file_has_the_clock_of_the_collector() {
    let root = TempDir::new().unwrap();
    host(root.path(), "a", '2', &[100, 300], &format!("1000 {} 20\n", OWN_OFFSET - 5 * SECOND));
    let (directory, file) = (root.path().join("a"), root.path().join("a.dt"));
    let converted = convert(&directory, &file, ConvertOptions::default(), |_| {}).unwrap();
    assert_eq!((converted.packets, converted.damage), (1, vec![]));
    let times = |path: &Path| {
        let items = Trace::open(path).unwrap().items().collect::<Vec<_>>().into_iter();
        events(items).into_iter().map(|(_, time)| time).collect::<Vec<_>>()
    };
    assert_eq!(times(&directory), [100 - 5 * SECOND, 300 - 5 * SECOND]);
    assert_eq!(times(&file), times(&directory));
    // And the conversion of that file.
    convert(&file, &root.path().join("back"), ConvertOptions::default(), |_| {}).unwrap();
    assert_eq!(times(&root.path().join("back")), times(&directory));
}

#[test]
fn files_that_are_no_alignment_are_ignored() {
    for text in ["", "\n", "x y z\n", "1 2", "1\n", "1 99999999999999999999 3\n", "1 2 -3\n", &"9 ".repeat(5000)] {
        let root = TempDir::new().unwrap();
        host(root.path(), "a", '2', &[100], text);
        let trace = Trace::open(root.path()).unwrap();
        assert!(trace.alignments().all(|(_, alignment)| alignment.is_none()), "{text}");
        assert_eq!(events(trace.items()), expected(&[("a", 100)]));
    }
    let root = TempDir::new().unwrap();
    host(root.path(), "a", '2', &[100], &format!("1 {} 3\n", i64::MAX));
    let trace = Trace::open(root.path()).unwrap();
    assert_eq!(trace.items().count(), 1, "times beyond 64 bits are clamped");
}
