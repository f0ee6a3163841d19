//! A full or absent broker: events that do not fit are lost in the rings, and counted.

use crate::broker::{Broker, is_there};
use crate::programs::{Collect, Record, tracectl};
use crate::stored::{accounts, assert_verified, events};
use crate::{is_traced, wait_for};
use tempfile::TempDir;

/// Small rings and a small buffer.
const SMALL: &[&str] = &["--ring-size", "64K", "--overflow", "0", "--resend-buffer", "64K"];

#[test]
fn what_a_full_broker_does_not_take_is_lost_in_the_rings_and_counted() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    broker.create_stream(|config| config.max_messages = 100);
    let test = "overload::what_a_full_broker_does_not_take_is_lost_in_the_rings_and_counted";
    let record = Record::start(place, "record", &broker.url(), (test, "60000 50"), SMALL);
    let status = wait_for("the broker is full", || {
        let status = String::from_utf8(tracectl(place, &["status"]).stdout).unwrap();
        status.contains("the broker is full").then_some(status)
    });
    assert!(status.contains("start more collectors"), "{status}");
    wait_for("events are lost", || {
        let status = String::from_utf8(tracectl(place, &["status"]).stdout).unwrap();
        status.contains("lost").then_some(())
    });
    let collect = Collect::start(place, "a", &broker.url(), &[]);
    let report = record.finish();
    let [recorded, lost] = ["recorded", "lost"].map(|name| report[name].as_u64().unwrap());
    assert!(recorded + lost == 120_000 && lost > 0 && recorded > 0, "{report}");
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let output = collect.output.clone();
    collect.end();
    let stored = events(&[&output]);
    assert!(stored.values().all(|count| *count == 1), "an event is stored twice");
    assert_eq!((stored.len() as u64, accounts(&[&output])), (recorded, (recorded, 0)), "{report}");
    assert_verified(place, &[&output]);
}

#[test]
fn what_a_broker_does_not_get_until_the_end_is_lost_by_the_network() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let mut broker = Broker::start(place);
    let test = "overload::what_a_broker_does_not_get_until_the_end_is_lost_by_the_network";
    let record = Record::start(place, "record", &broker.url(), (test, "10000 200"), &[]);
    wait_for("packets are published", || {
        let status = String::from_utf8(tracectl(place, &["status"]).stdout).unwrap();
        status.contains("connected to broker one at").then_some(())
    });
    broker.kill();
    let report = record.end();
    let [recorded, lost] = ["recorded", "lost"].map(|name| report[name].as_u64().unwrap());
    assert!(recorded + lost == 20_000 && lost > 0, "{report}");
    assert_eq!(report["counters"]["lost"]["sink"].as_u64(), Some(lost), "{report}");
    broker.restart();
    // The broker has everything that it has acknowledged, although the end of the trace is missing there.
    let collect = Collect::start(place, "a", &broker.url(), &[]);
    let output = collect.output.clone();
    wait_for("what was acknowledged is stored", || (events(&[&output]).len() as u64 >= recorded).then_some(()));
    collect.end();
}
