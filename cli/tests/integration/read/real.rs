//! A session of a traced program, its UDP server, a bad network, and `tracectl read` in a process of its own.

use crate::read::link::Faults;
use crate::read::network::network;
use crate::read::{read, result_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::udp::{UdpOptions, UdpSink};
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "till";

    /// Something was sold.
    sold(thread: u32, n: u64) { thread: u32 = thread, n: u64 = n }
}

/// Serialises the tests: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());
/// The number of events of each of two threads.
const EVENTS: u64 = 20_000;

/// Records events of two threads while `tracectl read` receives them.
fn record_and_read(seed: u64, faults: Faults, options: UdpOptions, arguments: &[&str]) -> Output {
    let _alone = RECORDING.lock().unwrap();
    let options = options.address(([127, 0, 0, 1], 0).into()).linger(Duration::from_secs(20));
    let sink = UdpSink::bind(options).unwrap();
    let port = network(sink.address(), seed, [faults; 2]);
    let session =
        Session::builder("till").events("till:*").channel(Channel::discard(8 << 20)).sink(sink).start().unwrap();
    let child = read(port, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || (0..EVENTS).for_each(|n| tracepoint::trace!(sold(thread, n))));
        }
    });
    let reading = thread::spawn(move || child.wait_with_output().unwrap());
    session.stop().unwrap();
    reading.join().unwrap()
}

/// Checks the events that arrived; returns the numbers of events and of losses.
fn check(output: &Output) -> (u64, u64) {
    let (_, out, err) = result_of(output);
    let (mut next, mut events) = (BTreeMap::new(), 0);
    let mut end = Value::Null;
    for line in out.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        if object["type"] == "event" {
            let [thread, n] = ["thread", "n"].map(|name| object["fields"][name].as_u64().unwrap());
            let next = next.entry(thread).or_insert(0);
            assert!(n >= *next, "event {n} of thread {thread} in the wrong place");
            *next = n + 1;
            events += 1;
        }
        end = object;
    }
    assert_eq!((&end["type"], &end["ending"]), (&"end".into(), &"ended".into()), "{err}");
    assert_eq!(end["events"], events);
    (events, end["lost_events"].as_u64().unwrap() + end["unsent_events"].as_u64().unwrap())
}

#[test]
fn received_and_lost_events_are_those_that_were_recorded() {
    let bad = Faults { loss: 100, duplicates: 50, reordering: 20, truncation: 10, corruption: 10, ..Faults::NONE };
    for (seed, faults, trusted) in [(1, Faults::NONE, true), (2, bad, true), (3, bad, false)] {
        let options = UdpOptions::default().trust_loopback(trusted);
        let output = record_and_read(seed, faults, options, &["--json"]);
        let (events, lost) = check(&output);
        assert_eq!(events + lost, 2 * EVENTS);
        assert_eq!(output.status.code(), Some(if lost > 0 { 4 } else { 0 }));
    }
}

#[test]
fn the_account_of_a_received_directory_balances() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    let faults = Faults { loss: 50, reordering: 10, ..Faults::NONE };
    let output = record_and_read(4, faults, UdpOptions::default(), &["-o", path.to_str().unwrap()]);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let verify =
        Command::new(env!("CARGO_BIN_EXE_tracectl")).args(["verify", "--failures"]).arg(&path).output().unwrap();
    let (code, out, err) = result_of(&verify);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let peer = Command::new("babeltrace2").arg(&path).output();
    let peer = peer.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    assert!(peer.status.success(), "{}", String::from_utf8_lossy(&peer.stderr));
}
