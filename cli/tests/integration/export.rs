//! `tracectl export`: selection, messages, and handling of bad input. The contents of the files are tested in `export/tests`.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "till";

    span sale(id: u64) { id }
    item(id: u64, price: u32) { id, price }
    note(text: &str) { text }
}

/// Serialises the recordings: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// 10 sales of 5 items each, and one that has not ended.
fn trace() -> (TempDir, PathBuf) {
    record(Channel::discard(8 << 20), || {
        for id in 0..10 {
            let _sale = tracepoint::span!(sale(id));
            (0..5).for_each(|price| tracepoint::trace!(item(id, price)));
        }
        tracepoint::span!(sale(10))
    })
}

/// Records the events fired by `fire`; its return value is dropped after the recording.
fn record<T>(channel: Channel, fire: impl FnOnce() -> T) -> (TempDir, PathBuf) {
    record_with(Session::builder("till").events("till:*").channel(channel), fire)
}

/// Records only these events.
fn record_events(events: &str, fire: impl FnOnce()) -> (TempDir, PathBuf) {
    record_with(Session::builder("till").events(events).channel(Channel::discard(1 << 20)), fire)
}

fn record_with<T>(session: SessionBuilder, fire: impl FnOnce() -> T) -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("trace");
    let _alone = RECORDING.lock().unwrap();
    let sink = CtfSink::create(&directory).unwrap();
    let session = session.sink(sink).start().unwrap();
    let kept = fire();
    session.stop().unwrap();
    drop(kept);
    (place, directory)
}

fn run(arguments: &[&str], directory: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).arg("export").args(arguments).arg(directory).output();
    let output = output.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Exports to a new file, which is then removed, and returns the summary and the notes.
fn exported(format: &str, arguments: &[&str], place: &Path, directory: &Path) -> (Value, String) {
    let out = place.join("out");
    let all = [&[format, out.to_str().unwrap(), "--json"], arguments].concat();
    let (code, stdout, stderr) = run(&all, directory);
    assert_eq!(code, Some(0), "{all:?}: {stderr}");
    fs::remove_file(out).unwrap();
    (serde_json::from_str(&stdout).unwrap(), stderr)
}

/// Formats with spans.
const WITH_SPANS: [&str; 5] = ["--perfetto", "--chrome", "--otlp", "--otlp-protobuf", "--folded"];

#[test]
fn the_same_events_are_selected_for_every_format() {
    let (place, directory) = trace();
    for format in [&WITH_SPANS[..], &["--csv"]].concat() {
        let count = |arguments: &[&str]| exported(format, arguments, place.path(), &directory).0["events"].as_u64();
        assert_eq!(count(&[]), Some(71), "{format}");
        // OTLP contains only the events of spans.
        if !format.starts_with("--otlp") {
            assert_eq!(count(&["-e", "till:item", "--filter", "price > 2"]), Some(20));
        }
        assert_eq!(count(&["-e", "!till:item"]), Some(21));
        let early = count(&["--until", "+0ns"]).unwrap();
        assert!(early <= 1 && count(&["--since", "+0ns"]) == Some(71), "{early}");
    }
    for format in WITH_SPANS {
        let (all, notes) = exported(format, &[], place.path(), &directory);
        assert_eq!(notes, "");
        let keys = ["spans_closed", "spans_open", "spans_without_begin", "others", "lost_events", "damage"];
        assert_eq!(keys.map(|key| all[key].as_u64().unwrap()), [10, 1, 0, 50, 0, 0]);
        let (ends, _) = exported(format, &["-e", "till:sale_end"], place.path(), &directory);
        assert_eq!(keys.map(|key| ends[key].as_u64().unwrap()), [0, 0, 10, 0, 0, 0]);
    }
}

#[test]
fn it_says_what_was_exported_and_writes_to_the_standard_output() {
    let (place, directory) = trace();
    let out = place.path().join("out.json");
    let (code, stdout, stderr) = run(&["--chrome", out.to_str().unwrap()], &directory);
    let expected = format!("{}: 71 events, 11 spans, 1 of them still open at the end\n", out.display());
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), expected.as_str(), ""));
    let (code, stdout, stderr) = run(&["--csv", "-", "--fields", "price", "-e", "till:item"], &directory);
    assert_eq!((code, stderr.as_str(), stdout.lines().count()), (Some(0), "-: 50 events\n", 51));
    assert!(
        stdout.starts_with("type,time_ns,host,program,pid,tid,thread,event,level,lost_events,lost_packets,price\n")
    );
}

#[test]
fn invalid_requests_are_refused_and_leave_no_file() {
    let (place, directory) = trace();
    let out = place.path().join("out");
    let name = out.to_str().unwrap();
    for (arguments, code, said) in [
        (&[][..], 2, "required"),
        (&["--csv", name, "--chrome", name], 2, "cannot be used with"),
        (&["--csv", "-", "--json"], 2, "name a file"),
        (&["--chrome", name, "--fields", "price"], 2, "cannot be used with"),
        (&["--csv", name, "--fields", "prise"], 3, "did you mean price"),
        (&["--chrome", name, "--counter", "prise"], 3, "did you mean price"),
        (&["--csv", name, "-e", "till:itm"], 3, "did you mean till:item"),
        (&["--csv", "/nonexistent/out"], 3, "cannot create /nonexistent/out"),
        (&["--csv", place.path().to_str().unwrap()], 3, "exists already"),
    ] {
        let (found, stdout, stderr) = run(arguments, &directory);
        assert!(found == Some(code) && stderr.contains(said) && stdout.is_empty(), "{arguments:?}: {found:?} {stderr}");
        assert!(!out.exists());
    }
    let (code, _, stderr) = run(&["--flame", name, "-e", "till:item"], &directory);
    assert!(code == Some(3) && stderr.contains("there is no span or call stack to draw") && !out.exists(), "{stderr}");
    assert!(!stderr.contains("room") && stderr.contains("`span!` or `#[traced]`"), "{stderr}");
    let (code, _, stderr) = run(&["--flame", name, "--stacks", "waits"], &directory);
    assert!(code == Some(3) && stderr.contains("there is no wait of a thread to draw") && !out.exists(), "{stderr}");
    let (code, stdout, stderr) = run(&["--folded", "-", "--stacks", "waits"], &directory);
    assert!(code == Some(0) && stdout.is_empty() && stderr.contains("`tracectl record --waits`"), "{stderr}");
    let (code, _, stderr) = run(&["--folded", name, "--stacks", "spans", "--span", "till:*"], &directory);
    assert!(code == Some(2) && stderr.contains("with `--stacks waits`") && !out.exists(), "{stderr}");
    let (code, _, stderr) = run(&["--folded", "-", "-e", "till:item"], &directory);
    assert!(code == Some(0) && stderr.contains("no span has ended among the selected events"), "{stderr}");
    let (code, _, stderr) = run(&["--folded", "-", "--stacks", "calls"], &directory);
    assert!(code == Some(0) && stderr.contains("tracectl record --context call_stack"), "{stderr}");
    let full = run(&["--csv", "/dev/full"], &directory);
    assert!(full.0 == Some(3) && full.2.contains("cannot write /dev/full") && full.2.contains("make room"), "{full:?}");
    // A leftover of an interrupted export.
    let partial = place.path().join("out.partial");
    fs::write(&partial, "").unwrap();
    let (code, _, stderr) = run(&["--csv", name], &directory);
    assert!(code == Some(3) && stderr.contains("out.partial exists already; remove it"), "{stderr}");
    fs::remove_file(partial).unwrap();
    assert_eq!((run(&["--csv", name], &directory).0, fs::read_dir(place.path()).unwrap().count()), (Some(0), 2));
}

#[test]
fn without_spans_and_call_stacks_it_says_what_to_record() {
    let (place, directory) = record_events("till:item", || tracepoint::trace!(item(1, 2)));
    let out = place.path().join("out");
    for format in ["--flame", "--folded"] {
        let (code, _, stderr) = run(&[format, out.to_str().unwrap()], &directory);
        assert!(
            code == Some(3) && !out.exists() && stderr.contains("there is no span or call stack to draw"),
            "{stderr}"
        );
        for what in ["`span!` or `#[traced]`", "force-frame-pointers=yes", "tracectl record --context call_stack"] {
            assert!(stderr.contains(what), "{stderr}");
        }
    }
}

#[test]
fn guessed_parents_are_counted() {
    let (place, directory) = record(Channel::discard(8 << 20), || {
        for id in 0..3 {
            let outer = tracepoint::span!(sale(id));
            drop(tracepoint::span!(sale(10 + id)));
            drop(tracepoint::span!(parent: &outer, sale(20 + id)));
        }
    });
    for (format, guessed) in [("--otlp", 3), ("--folded", 3), ("--chrome", 0), ("--perfetto", 0)] {
        let (summary, notes) = exported(format, &[], place.path(), &directory);
        assert_eq!(summary["guessed_parents"], json!(guessed), "{format}");
        assert_eq!(notes.contains("3 spans with no `parent_id` have a guessed parent"), guessed == 3, "{notes}");
    }
}

#[test]
fn an_interrupted_export_leaves_no_file_of_that_name() {
    let (place, directory) = record(Channel::wait(8 << 20, Duration::from_secs(10)), || {
        (0..200_000).for_each(|id| tracepoint::trace!(item(id, 1)));
    });
    let [out, partial] = ["out", "out.partial"].map(|name| place.path().join(name));
    // It may end before the signal arrives.
    for _ in 0..20 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
        let mut export = command.arg("export").arg("--csv").arg(&out).arg(&directory).spawn().unwrap();
        while !partial.exists() && export.try_wait().unwrap().is_none() {}
        // SIGINT is ignored if a shell has started the tests in the background.
        let _ = kill_process(Pid::from_child(&export), Signal::TERM);
        let was_interrupted = export.wait().unwrap().code().is_none();
        assert_eq!((out.exists(), partial.exists()), (!was_interrupted, was_interrupted));
        if was_interrupted {
            return;
        }
        fs::remove_file(&out).unwrap();
    }
    panic!("there was no file `out.partial` before the end of any export");
}

#[test]
fn a_damaged_trace_is_exported_as_far_as_it_can_be_read() {
    let (place, directory) = trace();
    let is_stream = |path: &PathBuf| path.is_file() && !path.ends_with("metadata");
    let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let stream = entries.filter(is_stream).max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let file = OpenOptions::new().write(true).open(&stream).unwrap();
    file.set_len(file.metadata().unwrap().len() - 100).unwrap();
    for format in [&WITH_SPANS[..], &["--csv"]].concat() {
        let out = place.path().join("out");
        let (code, stdout, stderr) = run(&[format, out.to_str().unwrap(), "--json"], &directory);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("; not exported"), "{stderr}");
        let summary: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(summary["damage"], 1, "{format}");
        fs::remove_file(out).unwrap();
    }
}

#[test]
fn a_flame_graph_has_the_time_of_the_folded_stacks() {
    let (place, directory) = trace();
    let (code, folded, stderr) = run(&["--folded", "-"], &directory);
    assert_eq!((code, stderr.as_str()), (Some(0), "-: 71 events, 11 spans, 1 of them still open at the end\n"));
    let times = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
    let time: u64 =
        times.filter(|(stack, _)| stack.ends_with(";till:sale")).map(|(_, time)| time.parse::<u64>().unwrap()).sum();
    assert!(time > 0, "{folded}");
    let out = place.path().join("out.svg");
    assert_eq!(run(&["--flame", out.to_str().unwrap()], &directory).0, Some(0));
    let picture = fs::read_to_string(out).unwrap();
    // inferno groups digits by commas.
    assert!(picture.replace(',', "").contains(&format!("till:sale ({time} ns 100.00%)")), "{time}: {picture}");

    // Its channel has no call stacks.
    let (_, calls, _) = run(&["--folded", "-", "--stacks", "calls", "-e", "till:item"], &directory);
    assert_eq!(calls, "[no call stack] 50\n");
    // Without a span, OTLP would be empty.
    for (format, out) in [("--otlp", "-"), ("--otlp-protobuf", place.path().join("out.pb").to_str().unwrap())] {
        let (code, out, err) = run(&[format, out, "-e", "till:item"], &directory);
        assert!(code == Some(3) && out.is_empty() && err.contains("50 events in none"), "{code:?} {out} {err}");
    }
    assert!(!place.path().join("out.pb").exists());
}

/// The size of the trace that does not fit into memory, in MiB.
const SIZE: &str = "TRACEPOINT_EXPORT_MIB";

#[test]
fn a_trace_that_is_larger_than_memory_is_exported() {
    let size: u64 = std::env::var(SIZE).map_or(200, |size| size.parse().unwrap());
    let spans = size << 5;
    let text = "text ".repeat((32 << 10) / 5);
    let (_place, directory) = record(Channel::wait(8 << 20, Duration::from_secs(10)), || {
        for id in 0..spans {
            let _sale = tracepoint::span!(sale(id));
            tracepoint::trace!(note(&text));
        }
    });
    for format in [&WITH_SPANS[..], &["--csv"]].concat() {
        // In KiB: enough for programs and libraries, but less than the trace.
        let script = r#"ulimit -v 160000; exec "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_tracectl"), "export", "--json", format, "/dev/null"]);
        let output = command.arg(&directory).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{format}");
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&summary["events"], &summary["lost_events"]), (&json!(3 * spans), &json!(0)), "{format}");
    }
}
