//! Brokers and collectors are killed and restarted while a trace is recorded.

use crate::broker::{Broker, is_there};
use crate::programs::{Collect, Record};
use crate::seed::seed;
use crate::stored::{accounts, assert_once, assert_verified, traces};
use crate::{is_traced, wait_for};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// A pause of up to half a second.
pub(crate) fn pause(state: &mut u64) {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    sleep(Duration::from_millis(100 + (*state >> 33) % 400));
}

#[test]
fn a_collector_that_is_killed_goes_on_where_its_files_end() {
    if is_traced() || !is_there() {
        return;
    }
    let mut random = seed();
    let told = format!("TRACEPOINT_SEED={random}");
    eprintln!("{told}");
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let test = "kills::a_collector_that_is_killed_goes_on_where_its_files_end";
    let record = Record::start(place, "record", &broker.url(), (test, "20000 150"), &[]);
    // The lease is longer than the collector's absence.
    let start = || Collect::start(place, "a", &broker.url(), &["--lease", "60s"]);
    let mut collect = start();
    for _ in 0..6 {
        pause(&mut random);
        collect.program.0.kill().unwrap();
        collect.program.wait("it is killed");
        collect = start();
    }
    let report = record.finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{told}: {report}");
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let output = collect.output.clone();
    collect.end();
    assert_once(&[&output], 20_000, &told);
    assert_eq!((accounts(&[&output]), traces(&output).len()), ((40_000, 0), 1), "{told}");
    assert_verified(place, &[&output]);
}

#[test]
fn a_broker_that_is_killed_loses_and_repeats_nothing() {
    if is_traced() || !is_there() {
        return;
    }
    let mut random = seed();
    let told = format!("TRACEPOINT_SEED={random}");
    eprintln!("{told}");
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let mut broker = Broker::start(place);
    let collect = Collect::start(place, "a", &broker.url(), &["--lease", "60s"]);
    let test = "kills::a_broker_that_is_killed_loses_and_repeats_nothing";
    let rings = ["--add-channel", "own:ring-size=8M,packets=256", "--channel", "own"];
    let record = Record::start(place, "record", &broker.url(), (test, "20000 150"), &rings);
    for _ in 0..4 {
        pause(&mut random);
        broker.kill();
        pause(&mut random);
        broker.restart();
    }
    let report = record.finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{told}: {report}");
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let output = collect.output.clone();
    collect.end();
    assert_once(&[&output], 20_000, &told);
    assert_eq!(accounts(&[&output]), (40_000, 0), "{told}");
    assert_verified(place, &[&output]);
}
