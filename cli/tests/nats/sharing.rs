//! Collectors share traces, and take them over from each other.

use crate::broker::{Broker, is_there};
use crate::programs::{Collect, Record, tracectl};
use crate::stored::{accounts, assert_once, assert_verified, events, together, traces};
use crate::{is_traced, wait_for};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const LEASE: &[&str] = &["--lease", "2s"];
/// Number of events of each thread of a trace that changes its collector, followed by the pause after each: several seconds in total.
const EVENTS: u64 = 20_000;
const PLAN: &str = "20000 200";

#[test]
fn two_collectors_share_the_traces_of_many_programs() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let collectors = ["a", "b"].map(|name| Collect::start(place, name, &broker.url(), LEASE));
    let test = "sharing::two_collectors_share_the_traces_of_many_programs";
    let start = |n| Record::start(place, &format!("record{n}"), &broker.url(), (test, "4000 500"), &[]);
    let records: Vec<_> = (0..6).map(start).collect();
    for record in records {
        let report = record.finish();
        assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(8000), Some(0)), "{report}");
    }
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let outputs = collectors.map(|collect| {
        let output = collect.output.clone();
        collect.end();
        output
    });
    let shares = outputs.each_ref().map(|output| traces(output).len());
    assert!(shares[0] + shares[1] == 6 && shares[0] > 0 && shares[1] > 0, "{shares:?}");
    for trace in outputs.iter().flat_map(|output| traces(output)) {
        assert_once(&[&trace], 4000, "a trace");
    }
    assert_verified(place, &[&outputs[0], &outputs[1]]);
}

/// A trace that begins at the collector `a`, and continues at `b` after `change`, which may return a new `a`.
fn taken_over(test: &str, change: impl FnOnce(&Path, &str, Collect) -> Option<Collect>) -> (TempDir, [PathBuf; 2]) {
    let directory = TempDir::new_in("/dev/shm").unwrap();
    let place = directory.path();
    let broker = Broker::start(place);
    let a = Collect::start(place, "a", &broker.url(), LEASE);
    let record = Record::start(place, "record", &broker.url(), (test, PLAN), &[]);
    let output = a.output.clone();
    // Several seconds, during which it commits.
    wait_for("the first collector has events", || (events_of(&output) > 300).then_some(()));
    let b = Collect::start(place, "b", &broker.url(), LEASE);
    let a = change(place, &broker.url(), a);
    wait_for("the other collector has events", || (events_of(&b.output) > 2).then_some(()));
    let report = record.finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(EVENTS * 2), Some(0)), "{report}");
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let outputs = [output, b.output.clone()];
    b.end();
    let a = a.unwrap_or_else(|| Collect::start(place, "a", &broker.url(), LEASE));
    let first = outputs[0].clone();
    wait_for("what was collected first is settled", || (!has_lease(&first)).then_some(()));
    a.end();
    (directory, outputs)
}

/// The packets in index files below a directory.
fn events_of(directory: &Path) -> u64 {
    let sizes =
        traces(directory).into_iter().flat_map(|trace| std::fs::read_dir(trace.join("index")).into_iter().flatten());
    sizes.flatten().map(|entry| entry.metadata().map_or(0, |it| it.len().saturating_sub(16) / 72)).sum()
}

/// True if a trace is being collected below a directory.
fn has_lease(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    directory.join(".lease").exists() || entries.filter(|path| path.is_dir()).any(|path| has_lease(&path))
}

/// Asserts that each event is at one of the collectors, and that the chunks of both form one trace.
fn assert_shared(place: &Path, outputs: &[PathBuf; 2], told: &str) {
    let [a, b] = outputs;
    assert_once(&[a, b], EVENTS, told);
    for one in outputs {
        assert!(!events(&[one]).is_empty(), "{told}");
    }
    assert_eq!(accounts(&[a, b]), (EVENTS * 2, 0), "{told}");
    assert_verified(place, &[a, b]);
    let whole = place.join("whole");
    together(&[a, b], &whole);
    let verified = tracectl(place, &["verify", whole.to_str().unwrap()]);
    let [out, errors] = [&verified.stdout, &verified.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(verified.status.success(), "{told}: {out}{errors}");
}

#[test]
fn another_collector_takes_over_from_one_that_is_killed() {
    if is_traced() || !is_there() {
        return;
    }
    let test = "sharing::another_collector_takes_over_from_one_that_is_killed";
    let (place, outputs) = taken_over(test, |_, _, mut a| {
        a.program.0.kill().unwrap();
        a.program.wait("it is killed");
        None
    });
    assert_shared(place.path(), &outputs, "killed");
}

#[test]
fn a_collector_that_was_stopped_for_longer_than_its_lease_cuts_off_what_another_one_has() {
    if is_traced() || !is_there() {
        return;
    }
    let test = "sharing::a_collector_that_was_stopped_for_longer_than_its_lease_cuts_off_what_another_one_has";
    let (place, outputs) = taken_over(test, |place, _, a| {
        a.program.signal(Signal::STOP);
        let b = place.join("b");
        wait_for("the other collector has events", || (events_of(&b) > 2).then_some(()));
        a.program.signal(Signal::CONT);
        Some(a)
    });
    assert_shared(place.path(), &outputs, "stopped");
}

#[test]
fn a_collector_that_ends_hands_its_traces_over() {
    if is_traced() || !is_there() {
        return;
    }
    let test = "sharing::a_collector_that_ends_hands_its_traces_over";
    let (place, outputs) = taken_over(test, |_, _, a| {
        let counts = a.end();
        assert_eq!(counts["unwritten"].as_u64(), Some(0), "{counts}");
        None
    });
    assert_shared(place.path(), &outputs, "ended");
}

#[test]
fn a_directory_has_one_collector() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let _first = Collect::start(place, "a", &broker.url(), LEASE);
    let output = place.join("a");
    let second = tracectl(place, &["collect", "--nats", &broker.url(), "-o", output.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && errors.contains("another collector has this directory"), "{errors}");
}
