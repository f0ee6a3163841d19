//! Impossible requests are refused before anything is recorded, with advice.

use crate::broker::{Broker, free_port, is_there};
use crate::is_traced;
use crate::programs::{Record, tracectl};
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use tempfile::TempDir;

#[test]
fn a_broker_that_is_not_there_and_one_without_jetstream_are_told() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let url = format!("nats://127.0.0.1:{}", free_port());
    let test = "refused::a_broker_that_is_not_there_and_one_without_jetstream_are_told";
    let mut record = Record::start(place, "record", &url, (test, "100 0"), &[]);
    assert_eq!(record.program.wait("it is refused").code(), Some(6));
    let told = record.said();
    assert!(told.contains(&url) && told.contains("start `nats-server -js` there"), "{told}");
    for (wrong, why) in [("vm:4222", "expected nats://HOST"), ("nats://vm?replicas=7", "a number from 1 to 5")] {
        let refused = tracectl(place, &["record", "-e", "x", "--nats", wrong]);
        let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && errors.contains(why), "{errors}");
    }
}

type Change = fn(&mut Config);

#[test]
fn a_stream_that_drops_what_it_has_is_refused() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let test = "refused::a_stream_that_drops_what_it_has_is_refused";
    let changes: [(Change, &str); 2] = [
        (|config| config.max_bytes = 1 << 20, "bound it by `max_msgs`"),
        (|config| (config.max_messages, config.discard) = (10, DiscardPolicy::Old), "set its `discard` to `new`"),
    ];
    for (number, (change, mend)) in changes.into_iter().enumerate() {
        let broker = Broker::start(&place.join(number.to_string()));
        broker.create_stream(change);
        let mut record = Record::start(place, "record", &broker.url(), (test, "100 0"), &[]);
        assert_eq!(record.program.wait("it is refused").code(), Some(6));
        let told = record.said();
        assert!(told.contains("the stream `TRACEPOINT`") && told.contains(mend), "{told}");
    }
}

#[test]
fn packets_that_the_broker_does_not_take_are_refused_at_the_start() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::with(place, "max_payload: 32768");
    let test = "refused::packets_that_the_broker_does_not_take_are_refused_at_the_start";
    let options = ["--add-channel", "own:ring-size=1M,packets=8", "--channel", "own"];
    let mut record = Record::start(place, "record", &broker.url(), (test, "100 0"), &options);
    assert_eq!(record.program.wait("it is refused").code(), Some(6));
    let told = record.said();
    for part in ["131072 bytes", "at most 32768", "`max_payload` of the server to at least 135168", "`packets`"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let options = ["--ring-size", "64K"];
    let report = Record::start(place, "record", &broker.url(), (test, "100 0"), &options).finish();
    assert_eq!(report["recorded"].as_u64(), Some(200), "{report}");
}
