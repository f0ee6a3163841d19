//! Programs are recorded and streamed in datagrams, through a network that loses, repeats and reorders them, to a collector, which may be killed.
//! The stored events are those read by babeltrace2; they must balance with the account of the sender and with the events of the program.
//!
//! ```text
//!   record ── control: 127.0.0.1, TCP ──────────────────────────▶ collect
//!          ── data: 127.0.0.1, UDP ──▶ proxy ── 127.0.0.2, UDP ──▶
//! ```
//!
//! A sender sends datagrams to the host of the control connection and the port named by the collector. The proxy therefore has the same port, at
//! another address of the loopback interface.

use crate::link::{Faults, Random};
use crate::proxy::UdpProxy;
use crate::running::{ANY, Collect, Running, TRACECTL};
use crate::{TRACED, is_traced, seed, wait_for};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// Number of events of each of a program's two threads.
pub(crate) const EVENTS: u64 = 4000;

/// The events that a program fires.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Number of events of each of its two threads; followed by the pause after each, in microseconds.
    events: u64,
    pause: u64,
    rings: &'static str,
    sync_interval: &'static str,
}

/// Packets of 4 KiB.
const SMALL: Load = Load { events: EVENTS, pause: 50, rings: "own:ring-size=256K,packets=64", sync_interval: "100ms" };
/// Packets of 1 MiB, each of which takes 780 datagrams and holds 43,000 events. With a longer interval they become full.
const LARGE: Load = Load { events: 50_000, pause: 0, rings: "own:ring-size=16M,packets=16", sync_interval: "4s" };

/// A collector at these addresses, with an output directory of this name; returns its addresses for control and data.
fn collect(place: &Path, name: &str, at: [&str; 2], gap_time: &str) -> (Collect, [SocketAddr; 2]) {
    let collect = Collect::at(place, name, at, &["--gap-time", gap_time]);
    let addresses = ["control", "data"].map(|of| collect.address(of).parse().unwrap());
    (collect, addresses)
}

/// Ends it. Its exit code is 1 if data came late or not at all, which is allowed if datagrams are lost or changed; repeated data is not a failure.
fn end(collect: Collect, loses: bool) {
    let status = collect.end();
    assert!(status.success() || loses && status.code() == Some(1), "{status}");
}

/// Records a program, and streams it.
fn record(place: &Path, control: SocketAddr, test: &str, load: Load, options: &[&str]) -> Running {
    let Load { events, pause, rings, sync_interval } = load;
    let mut command = Command::new(TRACECTL);
    command.args(["record", "--json", "-e", "network:*", "--stream-udp", "--sync-interval", sync_interval]);
    command.args(["--add-channel", rings, "--channel", "own"]);
    command.args(["--stream", &control.to_string()]).args(options).arg("--");
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    command.env("TRACEPOINT_RUN_DIR", place.join("run")).env(TRACED, format!("{events} {pause}"));
    Running::start(&mut command, &place.join("record"))
}

/// Waits for the end of a recording.
pub(crate) fn finish(mut record: Running, place: &Path, told: &str) {
    let status = wait_for(|| record.0.try_wait().unwrap());
    assert!(status.success(), "{told}: {status}: {}", fs::read_to_string(place.join("record.errors")).unwrap());
}

/// The counts in the report of a recording: recorded events and lost events.
fn reported(place: &Path) -> [u64; 2] {
    let text = fs::read_to_string(place.join("record")).unwrap();
    let report: Value = serde_json::from_str(text.lines().last().expect(&text)).unwrap();
    ["recorded", "lost"].map(|name| report[name].as_u64().unwrap())
}

/// The only trace below a directory.
pub(crate) fn trace_below(directory: &Path) -> PathBuf {
    let mut found = directory.to_owned();
    while !found.join("metadata").exists() {
        let mut entries = fs::read_dir(&found).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        let only = entries.next().expect("a directory");
        let other = entries.next();
        assert!(other.is_none(), "more than one trace: {} and {other:?}", only.display());
        found = only;
    }
    found
}

/// The numbers of the events read by babeltrace2, by thread, in order.
pub(crate) fn stored(trace: &Path, told: &str) -> [Vec<u64>; 2] {
    let output = Command::new("babeltrace2").arg(trace).output().expect("babeltrace2 runs");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}: {messages}");
    assert!(messages.lines().all(|line| line.is_empty() || line.contains("discarded")), "{told}: {messages}");
    let mut threads = [Vec::new(), Vec::new()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let fields = line.rsplit_once("{ thread = ").and_then(|(_, fields)| fields.strip_suffix(" }")).expect(line);
        let (thread, n) = fields.split_once(", n = ").expect(line);
        threads[thread.parse::<usize>().expect(line)].push(n.parse().expect(line));
    }
    let rises = |numbers: &Vec<u64>| numbers.is_sorted_by(|a, b| a < b);
    assert!(threads.iter().all(rises), "{told}: each event once and in order");
    threads
}

/// Sums over all streams in an account.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) written: u64,
    pub(crate) network: u64,
    /// Lost for other reasons.
    pub(crate) other: u64,
}

pub(crate) fn account(trace: &Path) -> Sums {
    let text = fs::read_to_string(trace.join(".account/account.json")).expect("an account");
    let account: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(account["complete"], true, "{text}");
    let mut sums = Sums::default();
    for channel in account["channels"].as_array().unwrap() {
        for event in channel["events"].as_array().unwrap() {
            sums.other += event["lost"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        }
        for stream in channel["streams"].as_array().unwrap() {
            let count = |value: &Value| value.as_u64().unwrap_or_default();
            let network = count(&stream["sink_lost"]["network"]);
            sums.written += count(&stream["written"]);
            sums.network += network;
            sums.other += count(&stream["sink"]) - network + count(&stream["overwritten"]);
        }
    }
    sums
}

/// Streams a program through a network with these faults; returns the outcome of its events.
fn sums(test: &str, load: Load, seed: u64, faults: Faults, gap_time: &str, options: &[&str]) -> Sums {
    let place = TempDir::new_in("/dev/shm").unwrap();
    let (collect, [control, data]) = collect(place.path(), "collect", [ANY, "127.0.0.2:0"], gap_time);
    let proxy = UdpProxy::start(SocketAddr::new(control.ip(), data.port()), data, seed, [faults, Faults::NONE]);
    let told = format!("TRACEPOINT_SEED={seed}, {faults:?}, {gap_time}, {options:?}");
    finish(record(place.path(), control, test, load, options), place.path(), &told);
    end(collect, faults.loss > 0 || faults.corruption > 0 || !options.is_empty());
    balance(place.path(), 2 * load.events, &told, &proxy, faults)
}

/// Checks that the trace, its account, and the report of the recording agree on the outcome of all events.
fn balance(place: &Path, events: u64, told: &str, proxy: &UdpProxy, faults: Faults) -> Sums {
    let trace = trace_below(&place.join("stored"));
    let threads = stored(&trace, told);
    let verified = Command::new(TRACECTL).args(["verify", "--failures"]).arg(&trace).output().unwrap();
    assert!(verified.status.success(), "{told}: {}", String::from_utf8_lossy(&verified.stdout));
    let sums = account(&trace);
    let told = format!("{told}: {sums:?}, {} datagrams, {} lost", proxy.received(), proxy.lost());
    println!("{told}");
    let delivered: u64 = threads.iter().map(|numbers| numbers.len() as u64).sum();
    assert_eq!(delivered, sums.written, "{told}");
    assert_eq!(sums.written + sums.network + sums.other, events, "{told}");
    assert_eq!(reported(place), [sums.written, sums.network + sums.other], "{told}");
    assert_eq!(read_as_lost(&trace), (sums.network + sums.other, false), "{told}");
    // At a loss rate of one percent, it is possible that none of 200 datagrams is lost.
    assert!(proxy.lost() > 0 || faults.loss < 50, "{told}: the network loses datagrams");
    sums
}

/// The number of lost events according to the readers of a trace, and true if more may be lost.
fn read_as_lost(trace: &Path) -> (u64, bool) {
    let output = Command::new(TRACECTL).args(["stat", "--json"]).arg(trace).output().unwrap();
    let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
    (counts["lost"].as_u64().unwrap(), counts["lost_more"].as_bool().unwrap())
}

/// The same with small packets; returns the number of events that are not stored.
fn lost(test: &str, seed: u64, faults: Faults, gap_time: &str, options: &[&str]) -> u64 {
    let sums = sums(test, SMALL, seed, faults, gap_time, options);
    sums.network + sums.other
}

#[test]
fn packets_of_many_datagrams_are_put_together() {
    if is_traced() {
        return;
    }
    let test = "datagrams::packets_of_many_datagrams_are_put_together";
    for seed in seed::campaign(1) {
        let faults = Faults { loss: 50, duplicates: 50, reordering: 20, ..Faults::NONE };
        let all = sums(test, LARGE, seed, faults, "30s", &[]);
        assert_eq!((all.network, all.other), (0, 0), "TRACEPOINT_SEED={seed}");
        // At the cap, a packet takes 2.6 s, which is longer than a gap lasts, and repetitions come between its datagrams. Only the cap causes
        // losses.
        let capped = sums(test, LARGE, seed, faults, "2s", &["--max-bandwidth", "400K/s"]);
        assert!(capped.network == 0 && capped.written > 0, "TRACEPOINT_SEED={seed}: {capped:?}");
    }
}

#[test]
fn packets_that_come_twice_are_counted_and_cost_nothing() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let (collect, [control, data]) = collect(place.path(), "collect", [ANY, "127.0.0.2:0"], "30s");
    let faults = Faults { duplicates: 1000, ..Faults::NONE };
    let proxy = UdpProxy::start(SocketAddr::new(control.ip(), data.port()), data, 1, [faults, Faults::NONE]);
    let test = "datagrams::packets_that_come_twice_are_counted_and_cost_nothing";
    finish(record(place.path(), control, test, SMALL, &[]), place.path(), "each datagram twice");
    end(collect, false);
    drop(proxy);
    let counts = fs::read_to_string(place.path().join("collect")).unwrap();
    let counts: Value = serde_json::from_str(counts.lines().last().unwrap()).unwrap();
    assert!(counts["counts"]["duplicates"].as_u64() > Some(0), "{counts}");
    let trace = trace_below(&place.path().join("stored"));
    assert_eq!(stored(&trace, "each datagram twice").map(|numbers| numbers.len() as u64), [EVENTS; 2]);
    let verified = Command::new(TRACECTL).args(["verify", "--failures"]).arg(&trace).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn what_bad_networks_lose_is_sent_again_or_counted() {
    if is_traced() {
        return;
    }
    let test = "datagrams::what_bad_networks_lose_is_sent_again_or_counted";
    for seed in seed::campaign(3) {
        let mut random = Random::new(seed);
        let mut faults = |loss| {
            let (duplicates, reordering) = (10 + random.below(100), 1 + random.below(30));
            Faults { loss, duplicates, reordering, ..Faults::NONE }
        };
        for loss in [0, 10, 50] {
            assert_eq!(lost(test, seed, faults(loss), "2s", &[]), 0, "TRACEPOINT_SEED={seed}: {loss} per mille");
        }
        // Given up before it was repeated often enough; and then never repeated.
        lost(test, seed, faults(300), "10ms", &[]);
        assert!(lost(test, seed, faults(100), "2s", &["--resend-buffer", "0"]) > 0, "TRACEPOINT_SEED={seed}");
    }
    for seed in seed::campaign(1) {
        // Each tenth datagram is altered in transit and has a matching checksum.
        let changed = Faults { corruption: 100, ..Faults::NONE };
        assert_eq!(lost(test, seed, changed, "2s", &[]), 0, "TRACEPOINT_SEED={seed}: changed");
        assert!(lost(test, seed, changed, "2s", &["--resend-buffer", "0"]) > 0, "TRACEPOINT_SEED={seed}: changed");
    }
}

/// The control connection persists: the collector reports at the end what it has stored.
#[test]
fn what_a_partition_keeps_from_the_collector_is_lost() {
    if is_traced() {
        return;
    }
    let test = "datagrams::what_a_partition_keeps_from_the_collector_is_lost";
    let place = TempDir::new_in("/dev/shm").unwrap();
    let (collect, [control, data]) = collect(place.path(), "collect", [ANY, "127.0.0.2:0"], "500ms");
    let front = SocketAddr::new(control.ip(), data.port());
    let proxy = UdpProxy::start(front, data, 1, [Faults::NONE; 2]);
    let load = Load { events: 1000, pause: 1000, ..SMALL };
    let record = record(place.path(), control, test, load, &[]);
    wait_for(|| (proxy.received() > 10).then_some(()));
    proxy.cut();
    finish(record, place.path(), "a partition");
    end(collect, true);
    let sums = balance(place.path(), 2 * load.events, "a partition", &proxy, Faults::NONE);
    assert!(sums.written > 0 && sums.network > 0 && sums.other == 0, "{sums:?}");
}

#[test]
fn a_killed_collector_loses_and_repeats_no_event() {
    if is_traced() {
        return;
    }
    let test = "datagrams::a_killed_collector_loses_and_repeats_no_event";
    for seed in seed::campaign(3) {
        let mut random = Random::new(seed);
        let place = TempDir::new_in("/dev/shm").unwrap();
        let (mut collector, [control, data]) = collect(place.path(), "collect", [ANY, "127.0.0.2:0"], "2s");
        let faults = Faults { loss: 30, duplicates: 30, reordering: 10, ..Faults::NONE };
        let front = SocketAddr::new(control.ip(), data.port());
        let _proxy = UdpProxy::start(front, data, seed, [faults, Faults::NONE]);
        let told = format!("TRACEPOINT_SEED={seed}");
        let load = Load { pause: 1000, ..SMALL };
        let mut record = record(place.path(), control, test, load, &[]);
        wait_for(|| fs::read_dir(place.path().join("stored")).is_ok_and(|mut it| it.next().is_some()).then_some(()));
        for kill in 1..=3 {
            sleep(Duration::from_millis(300 + random.below(700)));
            assert!(record.0.try_wait().unwrap().is_none(), "{told}: killed while it records");
            collector.program.0.kill().unwrap();
            collector.program.0.wait().unwrap();
            let addresses = [control, data].map(|address| address.to_string());
            let addresses = [&*addresses[0], &*addresses[1]];
            collector = collect(place.path(), &format!("collect{kill}"), addresses, "2s").0;
        }
        finish(record, place.path(), &told);
        end(collector, true);
        let trace = trace_below(&place.path().join("stored"));
        let threads = stored(&trace, &told);
        let sums = account(&trace);
        let each: Vec<u64> = (0..EVENTS).collect();
        assert!(threads.iter().all(|numbers| *numbers == each), "{told}: {sums:?}, {:?}", threads.map(|it| it.len()));
        assert_eq!((sums.written, sums.network, sums.other), (2 * EVENTS, 0, 0), "{told}");
    }
}
