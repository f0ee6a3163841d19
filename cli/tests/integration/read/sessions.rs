//! Sessions of `tracectl read`: output, messages, and exit codes.

use crate::read::link::Faults;
use crate::read::server::Plan;
use crate::read::serving::Serving;
use crate::read::{read, result_of};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const PLAN: Plan = Plan { trusted: true, offers: true, events: 300, rate: 1, ends: true, grows: 0 };
const NO_FAULTS: [Faults; 2] = [Faults::NONE; 2];
const BAD: [Faults; 2] =
    [Faults::NONE, Faults { loss: 200, duplicates: 50, reordering: 5, truncation: 20, corruption: 20, ..Faults::NONE }];

/// The lines of the legacy client for this many events, without those for the beginning and the end.
fn lines(events: u64) -> String {
    (0..events).fold(String::new(), |mut out, n| {
        let content = format!("test:numbered: {{ n = {n} }}");
        let _ = writeln!(out, "(1.{:06}): size={}, content={content}", n, content.len());
        out
    })
}

#[test]
fn both_layouts_print_the_lines_of_the_legacy_client() {
    for arguments in [&["--legacy"][..], &[]] {
        let server = Serving::start(1, PLAN, NO_FAULTS);
        let (code, out, err) = result_of(&read(server.port, arguments).output().unwrap());
        let expected =
            format!("Receive session begins.\nTrace begins.\n{}Trace ends.\nReceive session ends.\n", lines(300));
        assert_eq!(out, expected, "{arguments:?}");
        assert!(err.starts_with("300 events in ") && err.lines().count() == 1, "{err}");
        assert_eq!(code, Some(0));
        server.wait();
    }
}

#[test]
fn a_limit_stops_the_server() {
    for arguments in [&["--events-limit", "20", "--legacy"][..], &["--events-limit", "20"]] {
        let server = Serving::start(2, Plan { ends: false, ..PLAN }, NO_FAULTS);
        let (code, out, _) = result_of(&read(server.port, arguments).output().unwrap());
        let server = server.wait();
        assert!((20..300).contains(&server.sent), "{}", server.sent);
        assert!(out.starts_with("Client-server session is limited by 20 events.\nReceive session begins.\n"), "{out}");
        assert!(out.contains("\nSend STOP command to the server.\n"), "{out}");
        assert!(out.ends_with("\nReceive session ends.\n"), "{out}");
        assert_eq!(out.matches("content=").count() as u64, server.sent, "what was on its way is read too");
        assert_eq!(code, Some(0));
    }
}

fn number(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("{key} of {object}"))
}

#[test]
fn losses_are_printed_in_place_and_have_an_exit_code() {
    let server = Serving::start(3, PLAN, BAD);
    let (code, out, err) = result_of(&read(server.port, &["--json"]).output().unwrap());
    let server = server.end();
    let objects: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut next, mut before_offer) = (0, 0);
    let base = server.bases.last().unwrap().1;
    for object in &objects {
        match object["type"].as_str().unwrap() {
            "event" => {
                assert_eq!(number(&object["fields"], "n"), base + next);
                next += 1;
            }
            "loss" if object["kind"] == "events" => next += number(object, "events"),
            "loss" if object["kind"] == "before_offer" => before_offer += number(object, "events"),
            _ => {}
        }
    }
    assert_eq!((next + before_offer, server.sent), (300, 300));
    let end = objects.last().unwrap();
    assert_eq!((&end["type"], &end["ending"]), (&"end".into(), &"ended".into()));
    assert_eq!(number(end, "events") + number(end, "lost_events"), 300);
    assert!(number(end, "lost_events") > 0, "{end}");
    assert!(err.contains("some messages or events have not arrived"), "{err}");
    assert_eq!(code, Some(4));
}

#[test]
fn legacy_losses_are_counted_in_messages() {
    let faults = [Faults::NONE, Faults { corruption: 0, ..BAD[1] }];
    let server = Serving::start(4, PLAN, faults);
    let (code, out, err) = result_of(&read(server.port, &["--legacy", "--idle", "2"]).output().unwrap());
    server.end();
    assert!(out.contains("messages, the first with number "), "{out}");
    assert!(err.contains("messages lost on the way"), "{err}");
    assert_eq!(code, Some(4));
}

#[test]
fn a_directory_is_a_trace_with_its_losses() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    let server = Serving::start(5, PLAN, BAD);
    let (code, out, err) = result_of(&read(server.port, &["-o", path.to_str().unwrap()]).output().unwrap());
    server.end();
    assert_eq!((code, out.as_str()), (Some(4), ""), "{err}");
    let verb = |verb: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).arg(verb).arg(&path).output().unwrap();
        result_of(&output)
    };
    assert_eq!(verb("verify").0, Some(0));
    let (code, view, _) = verb("view");
    assert!(view.contains("[lost: "), "{view}");
    assert_eq!(code, Some(0));
    let peer = Command::new("babeltrace2").arg(&path).output();
    let peer = peer.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    let events = view.lines().filter(|line| line.contains("test:numbered")).count();
    assert_eq!(String::from_utf8(peer.stdout).unwrap().lines().count(), events);
    assert!(String::from_utf8(peer.stderr).unwrap().contains("WARNING: Tracer discarded"));
}

#[test]
fn a_dt_file_is_a_trace_with_its_losses() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace.dt");
    let server = Serving::start(5, PLAN, BAD);
    let (code, out, err) = result_of(&read(server.port, &["-o", path.to_str().unwrap()]).output().unwrap());
    server.end();
    assert_eq!((code, out.as_str()), (Some(4), ""), "{err}");
    let verb = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).args(arguments).arg(&path).output().unwrap();
        result_of(&output)
    };
    assert_eq!(verb(&["verify"]).0, Some(0));
    let (code, view, _) = verb(&["view", "--json"]);
    assert_eq!(code, Some(0));
    let (mut events, mut lost) = (0, 0);
    for line in view.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        match object["type"].as_str() {
            Some("loss") => lost += object["events"].as_u64().unwrap(),
            Some("event") => events += 1,
            // The server of this test sends no checksums.
            other => assert!(other == Some("unchecked") && object["packets"].as_u64() > Some(0), "{line}"),
        }
    }
    assert!(err.starts_with(&format!("{events} events in ")), "{events}: {err}");
    assert!(lost > 0 && events + lost == 300, "{events} came, and {lost} are reported as lost");
}

#[test]
fn an_empty_session_makes_no_output() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace.dt");
    let server = Serving::start(12, Plan { offers: false, ..PLAN }, NO_FAULTS);
    let (code, _, err) = result_of(&read(server.port, &["-o", path.to_str().unwrap()]).output().unwrap());
    server.end();
    assert!(code == Some(5) && err.contains("one by one"), "{err}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    fs::write(&path, "mine").unwrap();
    let (code, _, err) = result_of(&read(1, &["-o", path.to_str().unwrap()]).output().unwrap());
    assert!(code == Some(3) && err.contains("trace.dt"), "{err}");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

/// Reads up to the first event; returns its line.
fn first_event(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    while !line.contains("content=") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the end came before an event");
    }
    line
}

#[test]
fn a_signal_stops_the_server_and_receives_events_in_flight() {
    let server = Serving::start(6, Plan { ends: false, ..PLAN }, NO_FAULTS);
    let mut child = read(server.port, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = first_event(&mut out);
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    out.read_to_string(&mut line).unwrap();
    assert!(line.ends_with("\nReceive session ends.\n"), "{line}");
    assert!(line.contains("Send STOP command to the server."), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    server.wait();
}

#[test]
fn closing_the_output_ends_the_session() {
    let server = Serving::start(7, Plan { ends: false, events: 1 << 40, rate: 100, ..PLAN }, NO_FAULTS);
    let mut child = read(server.port, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    server.wait();
}

#[test]
fn a_server_that_dies_is_reported() {
    let server = Serving::start(9, Plan { ends: false, ..PLAN }, NO_FAULTS);
    let mut child = read(server.port, &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = first_event(&mut out);
    server.end();
    out.read_to_string(&mut line).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(err.contains("the server has gone away: losses at the end of the session are unknown"), "{err}");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}
