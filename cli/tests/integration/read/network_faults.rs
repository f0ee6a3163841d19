//! A server and a client in separate processes, with a random network between them: events arrive unchanged and in order, and every
//! loss is reported. Runs over 100 networks, or `TRACEPOINT_UDP_SEEDS`.

use crate::read::link::Random;
use crate::read::network::network;
use crate::read::random_faults::random_faults;
use crate::read::recorded::serve;
use crate::read::{read, result_of};
use crate::seed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "gauge";

    /// Something was read.
    measured(thread: u32, n: u64, text: &str) { thread: u32 = thread, n: u64 = n, text: str = text }
}

const THREADS: u64 = 2;
/// The number of events of each thread.
const EVENTS: u64 = 2000;
/// Number of networks that run at a time: they are idle most of the time.
const AT_ONCE: u64 = 10;

/// The text of an event; its length differs from that of the neighbouring events.
fn text_of(n: u64) -> String {
    format!("reading {n} {}", "#".repeat((n % 40) as usize))
}

fn record(path: &Path) {
    let channel = Channel::discard(4 << 20).packets(256);
    let sink = CtfSink::create(path).unwrap();
    let session = Session::builder("gauge").events("gauge:*").channel(channel).sink(sink).start().unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || (0..EVENTS).for_each(|n| tracepoint::trace!(measured(thread as u32, n, &text_of(n)))));
        }
    });
    let summary = session.stop().unwrap();
    assert_eq!(summary.account().unwrap().channels[0].events[0].recorded, THREADS * EVENTS);
}

/// A server, killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output of a client.
struct Output {
    objects: Vec<Value>,
    end: Value,
    code: Option<i32>,
    /// Printed if a check fails.
    about: String,
}

impl Output {
    fn number(&self, key: &str) -> u64 {
        self.end[key].as_u64().unwrap_or_else(|| panic!("{}: no {key}", self.about))
    }

    fn has_ended(&self) -> bool {
        self.end["ending"] == "ended"
    }

    fn is_legacy(&self) -> bool {
        let begins = self.objects.iter().filter(|object| object["type"] == "session_begin");
        begins.clone().any(|begin| begin["layout"] == "legacy")
    }

    /// The sum of `unit` over losses of this kind.
    fn lost(&self, kind: &str, unit: &str) -> u64 {
        let lost = self.objects.iter().filter(|object| object["type"] == "loss" && object["kind"] == kind);
        lost.map(|loss| loss[unit].as_u64().unwrap()).sum()
    }
}

/// Reads the trace over one network.
fn read_over(seed: u64, trace: &Path) -> Output {
    let mut random = Random::new(seed);
    let faults = [random_faults(&mut random), random_faults(&mut random)];
    let legacy = seed.is_multiple_of(4);
    let (server, port) = serve(trace, &[]);
    let _server = Server(server);
    let port = network(([127, 0, 0, 1], port).into(), seed, faults);
    let layout: &[&str] = if legacy { &["--legacy"] } else { &[] };
    let output = read(port, &[&["--json", "--idle", "2"], layout].concat()).output().unwrap();
    let (code, out, err) = result_of(&output);
    let about = format!("seed {seed}: {faults:?}, {layout:?}: {err}");
    let mut objects: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = objects.pop().unwrap_or_default();
    Output { objects, end, code, about }
}

/// Batches: every event is correct, none arrives twice or out of order, and received and lost events add up to all events.
fn check_batches(output: &Output) {
    let (mut next, mut events) = (BTreeMap::new(), 0);
    for object in output.objects.iter().filter(|object| object["type"] == "event") {
        let fields = &object["fields"];
        let [thread, n] = ["thread", "n"].map(|name| fields[name].as_u64().unwrap());
        assert!(thread < THREADS && n < EVENTS && fields["text"] == text_of(n), "{}: {object}", output.about);
        let next = next.entry(thread).or_insert(0);
        assert!(n >= *next, "{}: event {n} of thread {thread} in the wrong place", output.about);
        *next = n + 1;
        events += 1;
    }
    let [arrived, lost, unsent] = ["events", "lost_events", "unsent_events"].map(|key| output.number(key));
    assert_eq!(arrived, events, "{}", output.about);
    assert_eq!(output.lost("events", "events") + output.lost("before_offer", "events"), lost, "{}", output.about);
    if output.has_ended() {
        assert_eq!(events + lost + unsent, THREADS * EVENTS, "{}", output.about);
    }
    assert!(events + lost + unsent <= THREADS * EVENTS, "{}", output.about);
    let is_whole = output.has_ended() && lost + unsent + output.number("lost_metadata") == 0;
    assert_eq!(output.code, Some(if is_whole { 0 } else { 4 }), "{}", output.about);
}

/// Legacy layout: every number between two events was reported as lost, or is that of one of the few marks.
fn check_legacy(output: &Output) {
    /// Each START that arrives late begins another session.
    const MARKS: u64 = 100;
    let (mut next, mut unexplained) = (None, 0);
    for object in &output.objects {
        let (first, count) = match object["type"].as_str() {
            Some("event") => (&object["seq"], 1),
            Some("loss") if object["kind"] == "messages" => (&object["first"], object["messages"].as_u64().unwrap()),
            _ => continue,
        };
        let first = first.as_u64().unwrap();
        if let Some(next) = next {
            assert!(first >= next, "{}: {object} in the wrong place", output.about);
            unexplained += first - next;
        }
        next = Some(first + count);
    }
    assert!(unexplained <= MARKS, "{}: {unexplained} messages are neither there nor lost", output.about);
    let events = output.objects.iter().filter(|object| object["type"] == "event").count() as u64;
    assert!(events == output.number("events") && events <= THREADS * EVENTS, "{}", output.about);
}

#[test]
fn over_any_network_received_and_lost_events_are_those_that_were_sent() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    record(&trace);
    let seeds = env::var("TRACEPOINT_UDP_SEEDS").map_or(100, |seeds| seeds.parse().expect("a number"));
    let campaign = seed::campaign(seeds);
    let (next, batches, ended) = (AtomicU64::new(campaign.start), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < campaign.end) {
                    let output = read_over(seed, &trace);
                    if output.code == Some(5) {
                        // No datagram of the server has arrived, so nothing is reported.
                        assert!(output.objects.iter().all(|object| object["type"] != "event"), "{}", output.about);
                        continue;
                    }
                    ended.fetch_add(u64::from(output.has_ended()), Ordering::Relaxed);
                    if output.is_legacy() {
                        check_legacy(&output);
                    } else {
                        batches.fetch_add(1, Ordering::Relaxed);
                        check_batches(&output);
                    }
                }
            });
        }
    });
    let (batches, ended) = (batches.into_inner(), ended.into_inner());
    let seeds = campaign.end - campaign.start;
    println!("{seeds} networks: {batches} sessions in batches, {ended} that ended in order");
    let most = batches > seeds / 2 && ended > seeds / 2;
    assert!(seeds == 1 || most, "{batches} sessions in batches, {ended} ended in order");
}
