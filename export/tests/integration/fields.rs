//! Fields with any name are exported. Only contexts that formats show elsewhere, and span ids in OTLP, are omitted.

use super::common::{Recorded, record, request, step, told};
use serde_json::{Value, json};
use tracepoint::{Channel, context::Context};
use tracepoint_export::{Chrome, Csv, Otlp, Perfetto};
use tracepoint_reader::Metadata;

/// An event inside a span whose fields have the names of contexts, of an array's length, and of span ids.
fn recorded() -> Recorded {
    let channel =
        Channel::discard(1 << 20).context(Context::Process).context(Context::ThreadName).context(Context::User);
    record(channel, || {
        let request = tracepoint::span!(request(1, "/told"));
        tracepoint::trace!(told(42, request.id().get()));
    })
}

fn names(fields: &Value) -> Vec<&str> {
    fields.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The names of the fields of `told`, and of the context without a column of its own.
const FIELDS: [&str; 8] = ["data", "duration_ns", "parent_id", "pid", "procname", "span_id", "user", "vtid"];

#[test]
fn a_field_may_have_the_name_of_a_context_or_of_an_id() {
    let recorded = recorded();
    let mut out = Vec::new();
    recorded.export(Chrome::new(&mut out).counters(vec!["pid".to_owned()]));
    let json: Value = serde_json::from_slice(&out).unwrap();
    let elements = json["traceEvents"].as_array().unwrap();
    let instant = elements.iter().find(|element| element["ph"] == "i").unwrap();
    assert_eq!(names(&instant["args"]), [&["_x_length"], &FIELDS[..]].concat());
    assert_eq!((&instant["args"]["pid"], &instant["args"]["procname"]), (&json!(42), &json!("told")));
    let counter = elements.iter().find(|element| element["ph"] == "C").unwrap();
    assert_eq!((&counter["name"], &counter["args"]["value"]), (&json!("shop:told.pid"), &json!(42.0)));
    let request = elements.iter().find(|element| element["ph"] == "X").unwrap();
    assert_eq!(names(&request["args"]), ["id", "outcome", "parent_id", "path", "span_id", "user"]);

    let metadata: Vec<&Metadata> = recorded.trace.metadata().map(|(_, metadata)| metadata).collect();
    let columns = Csv::<Vec<u8>>::fields_of(metadata.into_iter(), |name| name == "shop:told");
    let in_order = ["pid", "vtid", "procname", "span_id", "parent_id", "duration_ns", "_x_length", "data", "user"];
    assert_eq!(columns, in_order);
    let mut out = Vec::new();
    recorded.export(Csv::new(&mut out, columns));
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("type,time_ns,host,program,pid,") && text.contains(",field.pid,vtid,procname,"), "{text}");
    let last = text.lines().find(|line| line.contains("shop:told")).unwrap();
    assert!(last.contains(",42,42,told,") && last.ends_with(",42,42,42,0102,0"), "{text}");

    let mut out = Vec::new();
    recorded.export(Perfetto::new(&mut out));
    for name in ["_x_length", "vtid", "parent_id"] {
        assert!(out.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
}

#[test]
fn otlp_leaves_out_the_ids_of_spans_alone() {
    let recorded = recorded();
    let mut out = Vec::new();
    recorded.export(Otlp::json_lines(&mut out));
    let json: Value = serde_json::from_slice(&out).unwrap();
    let span = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    let keys = |of: &Value| -> Vec<String> {
        let mut keys: Vec<_> =
            of["attributes"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap().to_owned()).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(span), ["id", "outcome", "path", "thread.id", "thread.name", "user"]);
    assert_eq!(keys(&span["events"][0]), [&["_x_length"], &FIELDS[..]].concat());
}

#[test]
fn an_event_that_names_no_span_is_in_none() {
    let recorded = record(Channel::discard(1 << 20), || {
        let _request = tracepoint::span!(request(1, "/told"));
        tracepoint::trace!(told(42, 0));
        tracepoint::trace!(step(1, 0, "", &[], true, 0.0));
    });
    let mut out = Vec::new();
    let summary = recorded.export(Otlp::json_lines(&mut out));
    assert_eq!((summary.others, summary.outside), (2, 1));
    let json: Value = serde_json::from_slice(&out).unwrap();
    let events = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["events"];
    assert_eq!((events.as_array().unwrap().len(), &events[0]["name"]), (1, &json!("shop:step")));
}
