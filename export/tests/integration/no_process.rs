//! Events of a tracer that records neither process nor thread: no format invents ids of 0.

use super::common;
use super::decoder::decode;
use super::hand::{PREAMBLE, UUID};
use serde_json::{Value, json};
use std::fs::{self, File};
use tempfile::TempDir;
use tracepoint_export::{Chrome, Csv, FoldedStacks, Otlp, Perfetto};
use tracepoint_reader::{Item, Trace};

/// A span with an event inside.
fn trace() -> (TempDir, Vec<Item>) {
    let place = tempfile::tempdir().unwrap();
    let metadata = PREAMBLE.replace("vpid = 4242; procname = \"my proc\";", "");
    assert!(metadata.len() < PREAMBLE.len());
    let metadata = format!(
        "{metadata}
stream {{ id = 0;
  packet.context := struct {{ ts64 timestamp_begin; ts64 timestamp_end; u64 content_size; u64 packet_size; }};
  event.header := struct {{ u16 id; ts64 timestamp; }};
}};
event {{ name = \"hand:job_begin\"; id = 1; stream_id = 0; fields := struct {{ u64 span_id; u64 parent_id; }}; }};
event {{ name = \"hand:sample\"; id = 2; stream_id = 0; fields := struct {{ u64 n; u64 m; }}; }};
event {{ name = \"hand:job_end\"; id = 3; stream_id = 0; fields := struct {{ u64 span_id; u64 duration_ns; }}; }};
"
    );
    let events = [(1_u16, 10_u64, 7_u64, 0_u64), (2, 20, 5, 6), (3, 30, 7, 20)];
    let record = |(id, time, first, second): (u16, u64, u64, u64)| {
        [&id.to_le_bytes()[..], &time.to_le_bytes(), &first.to_le_bytes(), &second.to_le_bytes()].concat()
    };
    let records = events.map(record).concat();
    let header = [&0xC1FC_1FC1_u32.to_le_bytes()[..], &UUID, &0_u32.to_le_bytes(), &0_u64.to_le_bytes()].concat();
    let bits = (header.len() as u64 + 32 + records.len() as u64) * 8;
    let context = [10, 30, bits, bits].map(u64::to_le_bytes).concat();
    fs::write(place.path().join("metadata"), metadata).unwrap();
    fs::write(place.path().join("stream"), [header, context, records].concat()).unwrap();
    let items: Vec<_> = Trace::open(place.path()).unwrap().items().collect();
    assert_eq!(items.len(), 3, "{items:?}");
    (place, items)
}

#[test]
fn text_formats_leave_out_the_ids() {
    let (_place, items) = trace();
    let mut out = Vec::new();
    common::export(&items, Chrome::new(&mut out));
    let chrome: Value = serde_json::from_slice(&out).unwrap();
    let elements = chrome["traceEvents"].as_array().unwrap();
    assert_eq!(elements.len(), 2);
    assert!(elements.iter().all(|one| one.get("pid").is_none() && one.get("tid").is_none()), "{chrome}");
    assert_eq!(elements[0]["s"], "g", "no scope is smaller");

    let mut out = Vec::new();
    common::export(&items, Otlp::json_lines(&mut out));
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("hand:job") && !text.contains("process.pid") && !text.contains("thread.id"), "{text}");

    let mut out = Vec::new();
    common::export(&items, Csv::new(&mut out, vec!["n".to_owned()]));
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(",box,,,,,hand:sample,"), "{text}");

    let mut out = Vec::new();
    common::export(&items, FoldedStacks::of_spans(&mut out));
    assert_eq!(String::from_utf8(out).unwrap(), "[no process];hand:job 20\n");
}

#[test]
fn perfetto_has_a_track_that_is_no_process() {
    let (place, items) = trace();
    let path = place.path().join("out.pftrace");
    common::export(&items, Perfetto::new(File::create(&path).unwrap()));
    let Some(decoded) = decode("read_perfetto.py", &path) else { return };
    let tracks = decoded["tracks"].as_object().unwrap();
    let is = |track: &Value, what: &str| track[what] == json!(true);
    assert!(tracks.values().all(|track| !is(track, "is_process") && !is(track, "is_thread")), "{tracks:?}");
    let track = |one: &Value| tracks[&one["track"].to_string()]["name"].clone();
    assert_eq!((track(&decoded["slices"][0]), track(&decoded["instants"][0])), (json!("box"), json!("box")));
}
