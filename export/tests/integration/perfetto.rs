//! Perfetto's protobuf, decoded with the official descriptors.

use super::common::{self, Recorded, Times};
use super::decoder::decode;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use tracepoint_export::{Perfetto, Summary};

/// Exports, and decodes the file.
fn decoded(recorded: &Recorded, counters: &[&str]) -> (Summary, Option<Value>) {
    let path = recorded.place.path().join("out.pftrace");
    let counters = counters.iter().map(|name| (*name).to_owned()).collect();
    let summary = recorded.export(Perfetto::new(File::create(&path).unwrap()).counters(counters));
    (summary, decode("read_perfetto.py", &path))
}

fn list<'a>(decoded: &'a Value, key: &str) -> &'a [Value] {
    decoded[key].as_array().unwrap()
}

#[test]
fn slices_are_the_spans_and_instants_the_other_events() {
    let recorded = common::shop();
    let (summary, decoded) = decoded(&recorded, &["depth"]);
    assert_eq!(summary.events, recorded.counted());
    let Some(decoded) = decoded else { return };

    let slice = |slice: &Value| -> Times {
        (slice["name"].as_str().unwrap().to_owned(), slice["begin"].as_i64(), slice["end"].as_i64())
    };
    let mut slices: Vec<_> = list(&decoded, "slices").iter().map(slice).collect();
    slices.sort();
    assert_eq!(slices, recorded.spans());
    let mut instants: HashMap<String, u64> = HashMap::new();
    for instant in list(&decoded, "instants").iter().filter(|instant| instant["categories"] != json!(["tracepoint"])) {
        *instants.entry(instant["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(instants, recorded.others());
    let counters: Vec<_> = list(&decoded, "counters").iter().map(|counter| counter["value"].as_f64()).collect();
    assert_eq!(counters.iter().filter(|value| **value == Some(-3.0)).count(), 19);
    assert_eq!((counters.len(), &list(&decoded, "counters")[0]["track"]), (21, &json!("shop:step.depth")));

    // The summary in the trace counts all events, as many as the account.
    let carried = list(&decoded, "instants").iter().find(|instant| instant["name"] == "tracepoint export").unwrap();
    assert_eq!(carried["args"]["events"], json!(recorded.counted()));
    let first = recorded.events().next().unwrap();
    assert_eq!(list(&decoded, "clocks"), [json!([6, first.time_ns]), json!([1, first.time_ns])]);
    let step = list(&decoded, "instants").iter().find(|instant| instant["args"]["n"] == 1).unwrap();
    assert_eq!(step["categories"], json!(["shop"]));
    let args = json!({"n": 1, "depth": -3, "note": "inside, \"quoted\"\n", "data": "01ff", "on": true, "part": 0.5});
    assert_eq!(step["args"], args);
}

#[test]
fn slices_nest_on_their_threads_and_flow_between_them() {
    let recorded = common::shop();
    let (_, Some(decoded)) = decoded(&recorded, &[]) else { return };
    let slices = list(&decoded, "slices");
    let track = |slice: &Value| &decoded["tracks"][slice["track"].to_string()];
    let of = |field: &str, value: Value| slices.iter().find(|slice| slice["args"][field] == value).unwrap();
    let pid = json!(std::process::id());

    let request = of("id", json!(2));
    let queries: Vec<_> = slices.iter().filter(|slice| slice["within"] == request["args"]["span_id"]).collect();
    assert_eq!(queries.iter().map(|query| &query["name"]).collect::<Vec<_>>(), ["shop:query", "shop:query"]);
    assert!(queries.iter().all(|query| query["track"] == request["track"] && query["depth"] == 1));
    assert_eq!(request["args"]["outcome"], "ok");
    assert_eq!(track(request)["pid"], pid);
    assert_ne!(track(request)["tid"], json!(0));
    let process = &decoded["tracks"][track(request)["parent"].to_string()];
    assert!(process["pid"] == pid && process["process"].as_str().is_some_and(|name| !name.is_empty()), "{process}");

    let remote = of("text", json!("on another thread"));
    assert_ne!(track(remote)["tid"], track(request)["tid"]);
    assert_eq!(remote["from"], of("id", json!(100))["flows"]);
    assert_eq!(list(remote, "from").len(), 1);

    // Two overlapping spans have tracks of their own, and so has a future; its polls are on the thread's track.
    for path in ["/first", "/second"] {
        let track = track(of("path", json!(path)));
        assert_eq!((&track["name"], track["tid"].as_u64()), (&json!("shop:request"), Some(0)));
    }
    let job = slices.iter().find(|slice| slice["name"] == "shop:job").unwrap();
    assert_eq!((&track(job)["name"], track(job)["tid"].as_u64()), (&json!("shop:job"), Some(0)));
    let polls: Vec<_> = slices.iter().filter(|slice| slice["name"] == "shop:job_poll").collect();
    assert_eq!(polls.len(), 3);
    assert!(polls.iter().all(|poll| track(poll)["tid"] == track(request)["tid"] && poll["depth"] == 0));

    let open = of("path", json!("/open"));
    assert!(open["end"].is_null() && open["args"]["missing"].as_str().unwrap().contains("open at the end"), "{open}");
    assert_eq!(of("text", json!("in the open one"))["depth"], 1);
}

#[test]
fn lost_events_are_instants_with_their_number() {
    let recorded = common::lossy();
    let (summary, decoded) = decoded(&recorded, &[]);
    assert_eq!((summary.events, summary.lost_events), (1980, 20));
    let Some(decoded) = decoded else { return };
    let lost: Vec<_> = list(&decoded, "instants").iter().filter(|instant| instant["name"] == "lost events").collect();
    assert_eq!(lost.iter().filter_map(|lost| lost["args"]["events"].as_u64()).sum::<u64>(), summary.lost_events);
    assert_eq!(decoded["tracks"][lost[0]["track"].to_string()]["name"], "lost events");
}
