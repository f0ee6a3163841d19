//! `tracectl stat` and `hist` over traces with known events.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;
use tracepoint_control::{Channel, Session, sinks::CtfSink};

tracepoint::define_trace! {
    provider = "web";

    asked(id: u64) { id: u64 = id }
    answered(id: u64, route: &str, size: u32, ratio: f64) { id: u64 = id, route: str = route, size: u32 = size, ratio: f64 = ratio }
    idle(n: i32) { n: i32 = n }
}

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Records what `fire` fires.
fn trace(fire: impl FnOnce()) -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let _alone = RECORDING.lock().unwrap();
    let sink = CtfSink::create(&directory).unwrap();
    let session =
        Session::builder("web").events("web:*").channel(Channel::discard(8 << 20)).sink(sink).start().unwrap();
    fire();
    session.stop().unwrap();
    (place, directory)
}

/// 1,000 requests for two routes, sizes 0 to 999; 10 that are never answered; 20 idle events.
fn requests() {
    for id in 0..1000_u32 {
        tracepoint::trace!(asked(id.into()));
        let route = if id % 4 == 0 { "/é" } else { "/" };
        tracepoint::trace!(answered(id.into(), route, id, f64::from(id) / 1000.0));
    }
    (5000..5010).for_each(|id| tracepoint::trace!(asked(id)));
    (-10..10).for_each(|n| tracepoint::trace!(idle(n)));
}

fn run(arguments: &[&str], directory: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(arguments).arg(directory).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json_of(arguments: &[&str], directory: &Path) -> Value {
    let (code, out, err) = run(arguments, directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    serde_json::from_str(&out).unwrap()
}

#[test]
fn events_are_counted_by_name_and_by_fields() {
    let (_place, directory) = trace(requests);
    let stat = json_of(&["stat", "--json"], &directory);
    let counts = |stat: &Value| -> Vec<(String, u64)> {
        let events = stat["events"].as_array().unwrap().iter();
        events.map(|line| (line["name"].as_str().unwrap().to_owned(), line["count"].as_u64().unwrap())).collect()
    };
    let named = |name: &str, count| (name.to_owned(), count);
    assert_eq!(counts(&stat), [named("web:asked", 1010), named("web:answered", 1000), named("web:idle", 20)]);
    assert_eq!((&stat["count"], &stat["lost"], &stat["lost_more"]), (&json!(2030), &json!(0), &json!(false)));
    let seconds = stat["seconds"].as_f64().unwrap();
    let rate = stat["events"][0]["per_second"].as_f64().unwrap();
    assert!(seconds > 0.0 && (rate - 1010.0 / seconds).abs() < 1.0, "{stat}");

    let by_route = json_of(&["stat", "--json", "--by", "route", "--filter", "size < 100"], &directory);
    assert_eq!(counts(&by_route), [named("/", 75), named("/é", 25)]);
    let few = json_of(&["stat", "--json", "--by", "id", "--groups", "3", "-e", "web:answered"], &directory);
    assert_eq!(counts(&few).last().unwrap(), &named("(further groups)", 997));

    let (code, out, _) = run(&["stat", "--csv", "-e", "!web:asked"], &directory);
    let lines: Vec<_> = out.lines().map(|line| line.rsplit_once(',').unwrap().0).collect();
    assert_eq!((code, lines), (Some(0), vec!["\"event\",count", "\"web:answered\",1000", "\"web:idle\",20"]));
    let (_, out, _) = run(&["stat"], &directory);
    assert!(out.starts_with("EVENT") && out.lines().count() == 4, "{out}");
}

#[test]
fn a_field_is_distributed() {
    let (_place, directory) = trace(requests);
    let hist = json_of(&["hist", "size", "--json"], &directory);
    assert_eq!((&hist["statistic"], &hist["all"]["count"]), (&json!("hist(size)"), &json!(1000)));
    for (name, exact) in [("p50", 499.0), ("p90", 899.0), ("p99", 989.0), ("max", 999.0), ("min", 0.0)] {
        let found = hist["all"][name].as_f64().unwrap();
        assert!((found - exact).abs() <= exact / 64.0, "{name}: {found}");
    }
    let (code, out, _) = run(&["hist", "size"], &directory);
    assert!(code == Some(0) && out.starts_with("hist(size)\n  count 1000, min 0, mean "), "{out}");
    let bars: Vec<_> = out.lines().skip(2).collect();
    assert!((10..=24).contains(&bars.len()) && bars.iter().any(|bar| bar.ends_with('█')), "{out}");

    let floats = json_of(&["hist", "ratio", "--by", "route", "--json"], &directory);
    let groups = floats["groups"].as_array().unwrap();
    let mut counts: Vec<_> =
        groups.iter().map(|row| (row["keys"][0].as_str().unwrap(), row["value"]["count"].clone())).collect();
    counts.sort_by_key(|(name, _)| *name);
    assert_eq!(counts, [("/", json!(750)), ("/é", json!(250))]);
    let (_, out, _) = run(&["hist", "n"], &directory);
    assert!(out.contains("10 without a value that has a place in it"), "{out}");
}

#[test]
fn the_time_between_two_events_is_distributed() {
    let (_place, directory) = trace(|| {
        requests();
        tracepoint::trace!(asked(7777));
        std::thread::sleep(Duration::from_millis(50));
        tracepoint::trace!(answered(7777, "/slow", 1, 0.5));
        tracepoint::trace!(answered(8888, "/unasked", 1, 0.5));
    });
    let latency = "latency(web:asked, web:answered by id)";
    let hist = json_of(&["hist", latency, "--by", "route", "--json"], &directory);
    assert_eq!(hist["statistic"], format!("{latency} by route"));
    let row = |name: &str| hist["groups"].as_array().unwrap().iter().find(|row| row["keys"][0] == name).unwrap();
    assert_eq!((&row("/")["value"]["count"], &row("/é")["value"]["count"]), (&json!(750), &json!(250)));
    let slow = row("/slow")["value"]["p50"].as_f64().unwrap();
    assert!((49e6..10e9).contains(&slow), "{slow}");
    let operations = json!({ "begun": 1011, "replaced": 0, "no_room": 0, "in_flight": 10, "unmatched": 1 });
    assert_eq!(hist["operations"], operations);
    let (_, out, _) = run(&["hist", latency], &directory);
    assert!(out.contains("  10 begun and not ended\n  1 ended and not begun\n"), "{out}");
    // Without a field, the thread is the key.
    let by_thread = json_of(&["hist", "latency(web:asked, web:answered)", "--json"], &directory);
    assert_eq!((&by_thread["all"]["count"], &by_thread["operations"]["replaced"]), (&json!(1001), &json!(10)));
}

#[test]
fn what_cannot_be_answered_is_told() {
    let (_place, directory) = trace(requests);
    for (arguments, code, message) in [
        (&["hist", "sise"][..], 3, "no selected event has a field `sise`; did you mean size?"),
        (&["hist", "route"], 3, "is not a number"),
        (&["hist", "size", "-e", "web:asked"], 3, "no selected event has a field `size`"),
        (&["hist", "sum(size)"], 2, "count, rate, hist"),
        (&["hist", "count"], 3, "no selected event has a field `count`"),
        (&["hist", "top(size)"], 2, "expected a field or a latency"),
        (&["stat", "-e", "web:askd"], 3, "no event of the trace matches `web:askd`"),
        (&["stat", "--by", "a,b,c"], 3, "at most two fields"),
    ] {
        let (found, out, err) = run(arguments, &directory);
        assert!(found == Some(code) && err.contains(message) && out.is_empty(), "{arguments:?} {found:?}: {err}");
    }
    let (code, _, err) = run(&["stat"], Path::new("/nonexistent"));
    assert!(code == Some(3) && err.contains("/nonexistent"), "{err}");
}
