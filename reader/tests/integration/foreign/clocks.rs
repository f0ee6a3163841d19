//! Traces without clocks, and times that are not mapped to a clock.

use crate::hand::{Packet, assert_same, one_event, ours, trace};
use std::path::Path;
use tracepoint_reader::{Item, Trace, json};

fn packets() -> [Vec<u8>; 2] {
    let second = Packet { number: 3, before: 9, ..Packet::of(&[(0, 9000, b"\x03")]) };
    [Packet::of(&[(0, 1000, b"\x01"), (0, 2500, b"\x02")]).bytes(), second.bytes()]
}

/// The project's own metadata, without its clock.
fn clockless() -> String {
    let lines = one_event("u8 a;").replace(" map = clock.mono.value;", "");
    lines.lines().filter(|line| !line.starts_with("clock")).fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn unmapped_times_are_of_the_only_clock() {
    let metadata = one_event("u8 a;").replace(" map = clock.mono.value;", "");
    let trace = trace(&metadata, &[("s", &packets())]);
    assert_same(trace.path());
    assert!(ours(trace.path()).contains("(+0.000001500)"));
}

#[test]
fn times_of_no_clock_count_nanoseconds() {
    let trace = trace(&clockless(), &[("s", &packets())]);
    assert_same(trace.path());
    assert_eq!(events(trace.path()), [Some(1000), Some(2500), Some(9000)]);
}

#[test]
fn times_within_variants_are_mapped() {
    let header = "enum : u16 { near = 0 ... 7, far = 8 } id;
        variant <id> { struct { ts48 timestamp; } near; struct { u64 id; ts48 timestamp; } far; } v;";
    let metadata = clockless().replace("u16 id; ts48 timestamp;", header);
    let trace = trace(&metadata, &[("s", &packets())]);
    assert_same(trace.path());
    assert_eq!(events(trace.path()), [Some(1000), Some(2500), Some(9000)]);
}

#[test]
fn a_stream_without_a_clock_has_no_times() {
    // With a clock that no time is mapped to, and without a clock.
    for metadata in [one_event("u8 a;").replace(" map = clock.mono.value;", ""), clockless()] {
        let trace = trace(&metadata.replace(" timestamp", " stamp"), &[("s", &packets())]);
        assert_same(trace.path());
        assert_eq!(events(trace.path()), [None; 3]);
        let mut text = Vec::new();
        let mut writer = tracepoint_reader::text::TextWriter::new(tracepoint_reader::text::TextOptions::default());
        Trace::open(trace.path()).unwrap().items().for_each(|item| writer.write_item(&mut text, &item).unwrap());
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\n[lost: 2 packets with 7 events, in "), "{text}");
    }
}

/// babeltrace2 refuses such metadata, because the clock of the times is ambiguous.
#[test]
fn unmapped_times_of_two_clocks_are_none() {
    let metadata = one_event("u8 a;").replace(" map = clock.mono.value;", "");
    let metadata = metadata.replace("clock {", "clock { name = \"other\"; freq = 1000; };\nclock {");
    let trace = trace(&metadata, &[("s", &packets())]);
    assert!(super::refused(trace.path()).contains("Cannot automatically map"));
    assert_eq!(events(trace.path()), [None; 3]);
}

/// The times of the events as JSON has them.
fn events(trace: &Path) -> Vec<Option<i64>> {
    let items = Trace::open(trace).unwrap().items();
    let events = items.filter(|item| matches!(item, Item::Event(_)));
    let object = |item| {
        let mut line = Vec::new();
        json::write_item(&mut line, &item).unwrap();
        serde_json::from_slice::<serde_json::Value>(&line).unwrap()
    };
    events.map(object).map(|event| event.get("time_ns").map(|time| time.as_i64().unwrap())).collect()
}
