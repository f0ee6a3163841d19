//! `tracectl stat` and `hist` over traces with known events.

mod metrics;

use crate::hand::{self, Packet};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;
use tracepoint_reader::text::is_control;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "web";

    asked(id: u64) { id: u64 = id }
    answered(id: u64, route: &str, size: u32, ratio: f64) { id: u64 = id, route: str = route, size: u32 = size, ratio: f64 = ratio }
    idle(n: i32) { n: i32 = n }
    stored(took: Duration, late: Option<Duration>) { took: Duration = took, late: Option<Duration> = late, size: u64 = 7_000_000 }
    opened(file: &Path, n: u64) { file: path = file, n: u64 = n }
    typed_unsigned(v: u64) { v: u64 = v, n: u64 = 1 }
    typed_signed(v: i64) { v: i64 = v, n: u64 = 1 }
    typed_float(v: f64) { v: f64 = v, n: u64 = 1 }
    typed_bool(v: bool) { v: bool = v, n: u64 = 1 }
    typed_text(v: &str) { v: str = v, n: u64 = 1 }
    typed_list(v: &[u8]) { v: [u8] = v, n: u64 = 1 }
}

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Records the events fired by `fire`.
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
    let by = ["--by", "route,size", "--filter", "size == 4 || size == 5"];
    let (_, out, _) = run(&[&["stat", "--csv"], &by[..]].concat(), &directory);
    let mut lines: Vec<_> = out.lines().map(|line| line.rsplit_once(',').unwrap().0).collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, ["\"route\",\"size\",count", "\"/\",\"5\",1", "\"/é\",\"4\",1"]);
    let both = json_of(&[&["stat", "--json"], &by[..]].concat(), &directory);
    let mut keys: Vec<_> = both["events"].as_array().unwrap().iter().map(|line| line["keys"].to_string()).collect();
    keys.sort_unstable();
    assert_eq!((&both["by"], keys), (&json!(["route", "size"]), vec!["[\"/\",5]".to_owned(), "[\"/é\",4]".to_owned()]));
    let (_, out, _) = run(&["stat"], &directory);
    assert!(out.starts_with("EVENT") && out.lines().count() == 4, "{out}");
}

/// The values of the first column of comma-separated values.
fn first_column(csv: &str) -> Vec<&str> {
    csv.lines().skip(1).map(|line| line.split(',').next().unwrap().trim_matches('"')).collect()
}

#[test]
fn groups_of_texts_and_other_bytes_are_in_one_order() {
    let names = |n: u64| {
        let name = format!("/data/{n:02}").into_bytes();
        PathBuf::from(OsString::from_vec(if n.is_multiple_of(3) { [name, vec![0xE9]].concat() } else { name }))
    };
    let (_place, directory) = trace(|| (0..45).for_each(|n| tracepoint::trace!(opened(&names(n), n))));
    let expected: Vec<_> = (0..45).map(|n| format!("/data/{n:02}{}", if n % 3 == 0 { "\\xe9" } else { "" })).collect();
    let (code, out, err) = run(&["stat", "--by", "file", "--csv"], &directory);
    assert_eq!((code, err.as_str(), first_column(&out)), (Some(0), "", expected.iter().map(String::as_str).collect()));
    let (code, out, err) = run(&["hist", "n", "--by", "file"], &directory);
    let groups: Vec<_> = out.lines().skip(2).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!((code, err.as_str(), groups), (Some(0), "", expected.iter().map(String::as_str).collect()));
}

#[test]
fn a_field_may_have_another_type_in_another_event() {
    let (_place, directory) = trace(|| {
        for _ in 0..3 {
            for v in [0, 1, u64::MAX, 4_607_182_418_800_017_408] {
                tracepoint::trace!(typed_unsigned(v));
            }
            for v in [-1, 1, i64::MIN] {
                tracepoint::trace!(typed_signed(v));
            }
            for v in [-0.0, 0.0, 0.5, 1.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                tracepoint::trace!(typed_float(v));
            }
            for v in [true, false] {
                tracepoint::trace!(typed_bool(v));
            }
            for v in ["1", "true", ""] {
                tracepoint::trace!(typed_text(v));
            }
            tracepoint::trace!(typed_list(&[1]));
        }
    });
    let (code, out, err) = run(&["stat", "--by", "v", "--csv"], &directory);
    // The most frequent value is the integer 1, of two events. Bytes that are UTF-8 are shown as text.
    let expected = [
        "1",
        "NaN",
        "-inf",
        "-9223372036854775808",
        "-1",
        "0",
        "-0",
        "0",
        "0.5",
        "1",
        "4607182418800017408",
        "18446744073709551615",
        "inf",
        "NaN",
        "false",
        "true",
        "",
        "\\u{1}",
        "1",
        "true",
    ];
    assert_eq!((code, err.as_str(), first_column(&out)), (Some(0), "", expected.to_vec()));
    for by in ["v", "v,n", "n,v"] {
        assert_eq!(run(&["hist", "n", "--by", by], &directory).0, Some(0), "{by}");
        let (_, metrics, _) = run(&["stat", "--by", by, "--prometheus"], &directory);
        let samples: Vec<_> = crate::prometheus::parsed(&metrics)
            .into_iter()
            .map(|(name, labels, _)| (name, labels.to_string()))
            .collect();
        assert!(
            samples.iter().enumerate().all(|(at, one)| !samples[..at].contains(one)),
            "one sample of a name: {samples:?}"
        );
    }
}

/// Texts that would control a terminal or a spreadsheet.
const HOSTILE: [&str; 4] = ["\u{1b}[2J\u{9b}31m\u{7f}\r\u{202e}", "=1+1", "@x", "\t=1"];

#[test]
fn control_characters_of_a_trace_reach_no_terminal() {
    let (_place, directory) = trace(|| HOSTILE.iter().for_each(|v| tracepoint::trace!(typed_text(v))));
    for command in [
        "stat --by v",
        "stat --by v --json",
        "stat --by v --csv",
        "stat --by v --prometheus",
        "hist n --by v",
        "hist n --by v --json",
        "hist n --by v --prometheus",
        "view",
        "view --json",
        "view --style babeltrace",
        "export --chrome -",
    ] {
        let (code, out, err) = run(&command.split(' ').collect::<Vec<_>>(), &directory);
        let found: Vec<_> = out.chars().filter(|c| is_control(*c) && !matches!(c, '\n' | '\t')).collect();
        assert!(code == Some(0) && found.is_empty() && out.contains("[2J"), "{command}: {found:?}, {err}");
    }
    let json = json_of(&["stat", "--by", "v", "--json"], &directory);
    let names: Vec<_> = json["events"].as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert!(names.contains(&HOSTILE[0]), "readers of JSON undo the escapes: {names:?}");
}

#[test]
fn formulas_in_cells_are_guarded_on_request() {
    let (_place, directory) = trace(|| {
        for v in HOSTILE {
            tracepoint::trace!(typed_text(v));
        }
        tracepoint::trace!(typed_signed(-5));
    });
    let cells = |arguments: &[&str]| {
        let (code, out, err) = run(arguments, &directory);
        assert_eq!((code, err.lines().count()), (Some(0), usize::from(arguments[0] == "export")), "{err}");
        ["=1+1", "@x", "\t=1", "-5"].map(|cell| {
            let guarded = format!("'{cell}");
            (out.contains(&guarded), out.contains(cell))
        })
    };
    for arguments in [&["stat", "--by", "v", "--csv"][..], &["export", "--csv", "-"]] {
        assert_eq!(cells(arguments), [(false, true); 4]);
        let guarded = [(true, true), (true, true), (true, true), (false, true)];
        assert_eq!(cells(&[arguments, &["--guard-formulas"]].concat()), guarded, "numbers stay numbers");
    }
}

#[test]
fn durations_have_units() {
    let (_place, directory) = trace(|| {
        for ms in 1..=100 {
            let took = Duration::from_micros(ms * 1000 + 637);
            tracepoint::trace!(stored(took, (ms == 1).then_some(took)));
        }
    });
    let (_, out, _) = run(&["view"], &directory);
    assert!(out.lines().next().unwrap().ends_with(" took=1.637ms late=1.637ms size=7000000"), "{out}");
    assert!(out.lines().last().unwrap().ends_with(" took=100.637ms late=none size=7000000"), "{out}");
    for (filter, count) in [("took > 30ms", 71), ("took <= 0.030637s", 30), ("late < 2ms", 1), ("size == 7ms", 100)] {
        assert_eq!(run(&["view", "--filter", filter], &directory).1.lines().count(), count, "{filter}");
    }
    let (_, json, _) = run(&["view", "--json", "--head", "1"], &directory);
    let event: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&event["fields"]["took"], &event["fields"]["late"]), (&json!(1_637_000), &json!(1_637_000)));

    let (code, of_took, err) = run(&["hist", "took"], &directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let numbers = of_took.lines().nth(1).unwrap();
    assert!(numbers.contains(", p50 5") && numbers.matches("ms").count() >= 6, "{of_took}");
    // Without a field each field is shown, and a field after the trace is recognised.
    let (code, all, err) = run(&["hist", "-e", "web:stored"], &directory);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(all.starts_with(&of_took) && all.contains("\nhist(late)\n"), "{all}");
    let (_, of_size) = all.split_once("hist(size)\n").unwrap();
    assert!(!of_size.contains("ms"), "{of_size}");
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).arg("hist").arg(&directory).arg("took").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), of_took);
    let (code, _, err) = run(&["hist", "-e", "web:stored", "--prometheus"], &directory);
    assert!(code == Some(2) && err.contains("3 fields"), "{err}");
}

#[test]
fn events_outside_the_times_are_left_out() {
    let (_place, directory) = trace(requests);
    let (_, out, _) = run(&["view", "--json", "-e", "web:answered"], &directory);
    let times: Vec<i64> =
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["time_ns"].as_i64().unwrap()).collect();
    let (since, until) = (times[300], times[700]);
    let expected = times.iter().filter(|time| (since..=until).contains(*time)).count();
    let (since, until) = (since.to_string(), until.to_string());
    let between = ["--since", &since, "--until", &until, "--json", "-e", "web:answered"];
    assert_eq!(json_of(&[&["stat"], &between[..]].concat(), &directory)["count"], json!(expected));
    for statistic in ["size", "latency(web:asked, web:answered by id)"] {
        let all = &json_of(&[&["hist", statistic], &between[..5]].concat(), &directory)["all"]["count"];
        let count = all.as_u64().unwrap();
        // The request of the first answer may be earlier.
        assert!(
            count == expected as u64 || (statistic != "size" && count + 1 == expected as u64),
            "{statistic}: {count}"
        );
    }
    let (code, _, err) = run(&["stat", "--since", "+5s", "--until", "+1s", "web:*"], Path::new("web:idle"));
    assert!(code == Some(2) && err.contains("are for recorded traces"), "{code:?} {err}");
}

#[test]
fn a_field_is_distributed() {
    let (_place, directory) = trace(requests);
    let hist = json_of(&["hist", "size", "--json"], &directory);
    assert_eq!((&hist["statistic"], &hist["all"]["count"]), (&json!("hist(size)"), &json!(1000)));
    let exact = json!({ "min": 0, "mean": 499.5, "p50": 499, "p90": 899, "p99": 989, "max": 999, "sum": 499_500 });
    for (name, value) in exact.as_object().unwrap() {
        assert_eq!(&hist["all"][name], value, "{name}");
    }
    let (code, out, _) = run(&["hist", "size"], &directory);
    let figures = "  count 1000, min 0, mean 499.5, p50 499, p90 899, p99 989, ";
    assert!(code == Some(0) && out.starts_with(&format!("hist(size)\n{figures}")), "{out}");
    let bars: Vec<_> = out.lines().skip(2).collect();
    assert!((10..=24).contains(&bars.len()) && bars.iter().any(|bar| bar.ends_with('█')), "{out}");

    let (_, one, _) = run(&["hist", "ratio", "--filter", "size == 123"], &directory);
    let figures = "  count 1, min 0.123, mean 0.123, p50 0.123, p90 0.123, p99 0.123, p99.9 0.123, max 0.123\n";
    assert!(one.contains(figures), "{one}");
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
        (
            &["hist", "latency(web:asked, web:answerd)"],
            3,
            "no selected event is called `web:answerd`; did you mean web:",
        ),
        (&["hist", "latency(no:a, no:b)", "--prometheus"], 3, "no selected event is called `no:a`"),
        (&["stat", "--level", "==emerg"], 3, "no selected event of the trace has a level `==emerg`; there are: "),
        (&["stat", "--by", "a,b,c"], 3, "at most two fields"),
    ] {
        let (found, out, err) = run(arguments, &directory);
        assert!(found == Some(code) && err.contains(message) && out.is_empty(), "{arguments:?} {found:?}: {err}");
    }
    let (code, _, err) = run(&["stat"], Path::new("/nonexistent"));
    assert!(code == Some(3) && err.contains("/nonexistent"), "{err}");
}

#[test]
fn a_distribution_is_drawn_as_a_picture() {
    let (place, directory) = trace(|| {
        requests();
        tracepoint::trace!(answered(5000, "<script>&\u{1b}", 7, 0.5));
    });
    let picture = |name: &str, arguments: &[&str]| {
        let file = place.path().join(name);
        let arguments = [&["hist", "-o", file.to_str().unwrap()], arguments].concat();
        assert_eq!(run(&arguments, &directory), (Some(0), String::new(), String::new()));
        let text = std::fs::read_to_string(file).unwrap();
        well_formed(&text);
        text
    };
    let size = picture("size.svg", &["size"]);
    for part in [
        "<title>hist(size)</title>",
        ": 1001 values</text>",
        ">p50 ",
        ">p99.9 ",
        "prefers-color-scheme:dark",
        ">value</text>",
    ] {
        assert!(size.contains(part), "{part} is missing in {size}");
    }
    // Each value is counted in exactly one bar.
    let bars = |text: &str| text.matches("<rect class=\"bar\"").count();
    let counts: Vec<u64> = size
        .lines()
        .filter_map(|line| {
            line.strip_prefix("<rect class=\"bar\"")?.rsplit_once("): ")?.1.split('<').next()?.parse().ok()
        })
        .collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (bars(&size), 1001));

    let latency = "latency(web:asked, web:answered by id)";
    let groups = picture("latency.svg", &[latency, "--by", "route"]);
    for part in ["count of /<", "count of /é<", "count of &lt;script&gt;&amp;\u{fffd}<", ">duration<"] {
        assert!(groups.contains(part), "{part} is missing in {groups}");
    }
    let map = picture("map.svg", &[latency, "--heat-map"]);
    assert!(map.contains("<polyline") && bars(&map) > 8, "{map}");
    let (code, _, err) = run(&["hist", "size", "-o", "/nonexistent/x.svg"], &directory);
    assert!(code == Some(3) && err.contains("cannot write /nonexistent/x.svg"), "{err}");
}

/// Tags are closed in order, and characters not allowed in XML are absent.
fn well_formed(text: &str) {
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let name = tag.split(|c: char| c.is_whitespace() || "/>".contains(c)).next().unwrap();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(closed.split('>').next(), open.pop());
        } else if !tag.split('>').next().unwrap().ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_heat_map_has_each_value_in_its_slice_of_time() {
    let (_place, directory) = trace(|| {
        (0..100).for_each(|n| tracepoint::trace!(answered(n, "/", 8, 0.5)));
        std::thread::sleep(Duration::from_millis(200));
        (0..50).for_each(|n| tracepoint::trace!(answered(n, "/", 2000, 0.5)));
    });
    let map = json_of(&["hist", "size", "--heat-map", "--json"], &directory);
    let slices = map["slices"].as_array().unwrap();
    let count = |slices: &[Value]| slices.iter().map(|slice| slice["count"].as_u64().unwrap()).sum::<u64>();
    let late = slices.iter().position(|slice| slice["max"].as_f64().unwrap() > 8.0).unwrap();
    assert!(slices[..late].iter().all(|slice| slice["max"] == 8));
    assert!(slices[late..].iter().all(|slice| slice["min"] == 2000 && slice["max"] == 2000));
    assert_eq!((count(&slices[..late]), count(&slices[late..])), (100, 50));
    let begin = |slice: &Value| slice["begin_ns"].as_i64().unwrap();
    let apart = begin(&slices[late]) - begin(&slices[late - 1]);
    assert!(apart >= 200_000_000 - slices[0]["width_ns"].as_i64().unwrap(), "{apart}");

    let (code, out, _) = run(&["hist", "size", "--heat-map"], &directory);
    let rows: Vec<_> = out.lines().filter_map(|line| line.split_once(" │")).collect();
    let cells = |(_, cells): &(&str, &str)| cells.chars().filter(|cell| *cell != ' ').count();
    assert!(code == Some(0) && rows.len() > 8, "{out}");
    let last = rows.len() - 1;
    assert!(
        cells(&rows[0]) >= 1 && cells(&rows[last]) >= 1 && rows[1..last].iter().all(|row| cells(row) == 0),
        "{out}"
    );
    // The largest values are in the upper rows, and come last.
    assert!(rows[0].1.len() > rows[last].1.len() && out.contains("a column: "), "{out}");

    let (code, _, err) = run(&["hist", "hist(size) by route", "--heat-map"], &directory);
    assert!(code == Some(2) && err.contains("a heat map shows one distribution"), "{err}");
}

/// In damaged traces and those of other tracers, events may be outside the times of their packet, and times may decrease.
#[test]
fn a_heat_map_has_a_column_for_events_at_any_time() {
    let value = |n: u64| n.to_le_bytes();
    let records = [(0, 1000, &value(2)[..]), (0, 1500, &value(2)), (0, 1 << 47, &value(5)), (0, 1 << 46, &value(7))];
    let packet = Packet { end: 2000, ..Packet::of(&records) };
    let place = hand::trace(&hand::one_event("u64 n;"), &[("stream", &[packet.bytes()])]);
    for options in [&[][..], &["--json"], &["-o", "/dev/null"]] {
        let (code, out, err) = run(&[&["hist", "n", "--heat-map"], options].concat(), place.path());
        assert!(code == Some(0) || code == Some(1), "{code:?}, {out}, {err}");
    }
}
