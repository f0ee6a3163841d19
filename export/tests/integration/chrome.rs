//! Chrome's JSON, checked against its documented format: the phases, and the required members of each.

use super::common::{self, Times};
use serde_json::{Value, json};
use std::collections::HashMap;
use tracepoint::Channel;
use tracepoint_export::Chrome;
use tracepoint_reader::{Damage, Item};

fn exported() -> (common::Recorded, Value) {
    let recorded = common::shop();
    let mut out = Vec::new();
    let summary = recorded.export(Chrome::new(&mut out).counters(vec!["depth".to_owned()]));
    assert_eq!(summary.events, recorded.counted());
    (recorded, serde_json::from_slice(&out).unwrap())
}

fn elements(json: &Value) -> &[Value] {
    json["traceEvents"].as_array().unwrap()
}

#[test]
fn every_element_has_what_its_phase_needs() {
    let (recorded, json) = exported();
    let mut phases: HashMap<&str, u64> = HashMap::new();
    for element in elements(&json) {
        let has = |name: &str| !element[name].is_null();
        let phase = element["ph"].as_str().unwrap();
        *phases.entry(phase).or_default() += 1;
        assert!(has("name") && has("pid") && has("tid"), "{element}");
        let needed: &[&str] = match phase {
            "M" => &["args"],
            "X" => &["ts", "dur", "args", "cat"],
            "B" | "C" => &["ts", "args"],
            "i" => &["ts", "s", "args"],
            "b" | "e" => &["ts", "cat", "id2"],
            "s" | "f" => &["ts", "cat", "id", "bp"],
            other => panic!("no phase {other}"),
        };
        assert!(needed.iter().all(|name| has(name)), "{element}");
    }
    let others: u64 = recorded.others().values().sum();
    assert_eq!((phases["i"], phases["C"], phases["s"], phases["f"]), (others, 21, 1, 1));
    // The future, and two overlapping spans, are asynchronous; one span is open.
    assert_eq!((phases["b"], phases["e"], phases["B"]), (3, 3, 1));
    let spans = phases["X"] + phases["b"] + phases["B"];
    assert_eq!(2 * spans - 1 + others, recorded.counted());
    assert_eq!(json["otherData"]["events"], json!(recorded.counted()));
    assert_eq!(json["displayTimeUnit"], "ns");
}

#[test]
fn times_are_exact_and_slices_of_a_thread_nest() {
    let (recorded, json) = exported();
    let origin = json["otherData"]["origin_ns"].as_i64().unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "small")]
    let time = |us: &Value| us.as_f64().map(|us| origin + (us * 1000.0).round() as i64);
    let mut ends: HashMap<&Value, Option<i64>> = HashMap::new();
    for element in elements(&json).iter().filter(|element| element["ph"] == "e") {
        ends.insert(&element["id2"], time(&element["ts"]));
    }
    let span = |element: &Value| -> Option<Times> {
        let begin = time(&element["ts"]);
        let end = match element["ph"].as_str()? {
            "X" => begin.zip(time(&element["dur"])).map(|(begin, duration)| begin + duration - origin),
            "b" => ends[&element["id2"]],
            "B" => None,
            _ => return None,
        };
        Some((element["name"].as_str()?.to_owned(), begin, end))
    };
    let mut spans: Vec<_> = elements(&json).iter().filter_map(span).collect();
    spans.sort();
    assert_eq!(spans, recorded.spans());

    let on_thread: Vec<_> = elements(&json).iter().filter(|element| element["ph"] == "X").collect();
    let range = |element: &Value| (time(&element["ts"]).unwrap(), span(element).unwrap().2.unwrap());
    for (index, one) in on_thread.iter().enumerate() {
        for other in on_thread[index + 1..].iter().filter(|other| other["tid"] == one["tid"]) {
            let ((a, b), (c, d)) = (range(one), range(other));
            let apart = b <= c || d <= a;
            let within = (a <= c && d <= b) || (c <= a && b <= d);
            assert!(apart || within, "{one} {other}");
        }
    }
}

#[test]
fn damage_has_no_time_and_durations_are_not_differences_of_rounded_times() {
    let recorded = common::shop();
    let damage = Item::Damage(Damage::new("stream", 0, "cut off"));
    let items: Vec<_> = [damage].into_iter().chain(recorded.items.iter().cloned()).collect();
    let mut out = Vec::new();
    common::export(&items, Chrome::new(&mut out));
    let json: Value = serde_json::from_slice(&out).unwrap();
    let first = recorded.events().map(|event| event.time_ns).min();
    assert_eq!(json["otherData"]["origin_ns"].as_i64(), first);
    assert_eq!((&elements(&json)[0]["name"], &elements(&json)[0]["ts"]), (&json!("damage"), &json!(0.0)));

    let mut lengths: Vec<_> = elements(&json).iter().filter_map(|element| element["dur"].as_f64()).collect();
    let ends = recorded.events().filter(|event| event.name() == "shop:query_end");
    for length in ends.map(|event| common::number(event, "duration_ns")) {
        #[expect(clippy::cast_precision_loss, reason = "short")]
        let expected = length as f64 / 1000.0;
        let at = lengths.iter().position(|length| length.total_cmp(&expected).is_eq());
        lengths.swap_remove(at.unwrap_or_else(|| panic!("{expected} is not in {lengths:?}")));
    }
}

/// Nested spans on one thread, and an instant inside. The outer span ends last.
fn nested() -> common::Recorded {
    common::record(Channel::discard(1 << 20), || {
        let _outer = tracepoint::span!(common::request(1, "/outer"));
        let _inner = tracepoint::span!(common::query("inner"));
        tracepoint::trace!(common::step(1, 0, "", &[], true, 0.0));
    })
}

fn json_of(items: &[Item]) -> Value {
    let mut out = Vec::new();
    common::export(items, Chrome::new(&mut out));
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn no_time_is_negative() {
    let recorded = nested();
    let first = recorded.events().next().unwrap().time_ns;
    let json = json_of(&recorded.items);
    assert_eq!(json["otherData"]["origin_ns"].as_i64(), Some(first), "that of the outer span, which is written last");
    let times = |json: &Value| elements(json).iter().filter_map(|one| one["ts"].as_f64()).collect::<Vec<_>>();
    assert_eq!(times(&json).len(), 3);
    assert!(times(&json).iter().all(|time| *time >= 0.0), "{json}");

    // Both begins are before the first item.
    let json = json_of(&recorded.items[2..]);
    assert!(times(&json).len() == 5 && times(&json).iter().all(|time| *time >= 0.0), "{json}");
    let origin = json["otherData"]["origin_ns"].as_i64().unwrap();
    for event in recorded.events().take(2) {
        let begins = |one: &&Value| one["ph"] == "b" && one["args"]["span_id"] == common::number(event, "span_id");
        let begin = elements(&json).iter().find(begins).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "short")]
        let before = (origin - event.time_ns) as f64 / 1000.0;
        assert_eq!((&begin["ts"], &begin["args"]["before_us"]), (&json!(0.0), &json!(before)));
        assert!(begin["args"]["duration_ns"].as_u64().is_some(), "{begin}");
    }
}
