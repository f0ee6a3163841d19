//! From a program over the network to a collector that publishes, and through a broker to another collector.

use crate::broker::{Broker, free_port, is_there};
use crate::collecting::metric;
use crate::kills::pause;
use crate::programs::{Collect, Record, tracectl};
use crate::seed::seed;
use crate::stored::{accounts, assert_once, assert_verified, events, streams, traces};
use crate::{is_traced, wait_for};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A collector at the edge, restarted on the same ports and with the same directory.
struct Edge<'a> {
    place: &'a Path,
    broker: String,
    ports: [u16; 2],
    options: Vec<&'a str>,
}

impl<'a> Edge<'a> {
    fn new(place: &'a Path, broker: String, options: &[&'a str]) -> Self {
        Self { place, broker, ports: [free_port(), free_port()], options: options.to_vec() }
    }

    fn start(&self) -> Collect {
        self.with(&["--publish", &self.broker])
    }

    fn with(&self, options: &[&str]) -> Collect {
        let [control, data] = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let ports = ["--control", &control, "--data", &data, "--live", "127.0.0.1:0"];
        Collect::with(self.place, "edge", &[options, &ports, &self.options].concat())
    }

    /// The option that makes a sender send here.
    fn to(&self) -> [String; 2] {
        ["--stream".to_owned(), format!("127.0.0.1:{}", self.ports[0])]
    }

    fn record(&self, test: &str, plan: &str, options: &[&str]) -> Record {
        Record::to(self.place, "record", &self.to(), (test, plan), options)
    }
}

/// A count of packets reported by a collector.
fn count(counts: &Value, name: &str) -> u64 {
    counts[name].as_u64().unwrap_or_else(|| panic!("{name}: {counts}"))
}

/// The file of this name in the directory of a session: in the trace's directory, or in the one above its chunks.
fn beside(output: &Path, name: &str) -> Option<PathBuf> {
    let trace = traces(output).pop()?;
    [trace.join(name), trace.parent()?.join(name)].into_iter().find(|path| path.exists())
}

/// Waits until the edge has published everything of its only trace, and the broker has delivered it.
fn wait_until_through(broker: &Broker, edge: &Path) {
    wait_for("the edge has published everything", || {
        let position = fs::read_to_string(beside(edge, ".published")?).ok()?;
        (position == "done\n" && beside(edge, ".publish").is_none()).then_some(())
    });
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
}

/// Asserts that edge and centre have the same account, and each event once.
fn assert_handed_on(place: &Path, [edge, centre]: [&Path; 2], each: u64, told: &str) {
    for output in [edge, centre] {
        assert_once(&[output], each, told);
        assert_eq!(accounts(&[output]), (each * 2, 0), "{told}");
    }
    assert_eq!(streams(edge), streams(centre), "{told}");
    assert_verified(place, &[edge, centre]);
}

#[test]
fn what_is_sent_over_tcp_and_udp_is_stored_at_the_edge_and_in_the_centre() {
    if is_traced() || !is_there() {
        return;
    }
    let test = "publishing::what_is_sent_over_tcp_and_udp_is_stored_at_the_edge_and_in_the_centre";
    let rotated: &[&str] = &["--rotate-size", "64K"];
    for (sender, options) in [(None, &[][..]), (Some("--stream-udp"), &[][..]), (None, rotated)] {
        let place = TempDir::new_in("/dev/shm").unwrap();
        let place = place.path();
        let broker = Broker::start(place);
        let options = [options, &["--metrics", "127.0.0.1:0"]].concat();
        let edge = Edge::new(place, broker.url(), &options);
        let (a, b) = (edge.start(), Collect::start(place, "centre", &broker.url(), &[]));
        let report = edge.record(test, "20000 20", &sender.into_iter().collect::<Vec<_>>()).finish();
        let told = format!("{sender:?} {options:?}");
        assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{told} {report}");
        wait_until_through(&broker, &a.output);
        let address = a.metrics();
        assert_eq!(metric(&address, "tracepoint_collector_publish_connected"), Some(1));
        assert_eq!(metric(&address, "tracepoint_collector_unpublished_packets"), Some(0));
        let published = metric(&address, "tracepoint_collector_published_packets_total");
        let outputs = [a.output.clone(), b.output.clone()];
        let chunks = traces(&outputs[0]).len();
        assert!(if options.contains(&"--rotate-size") { chunks > 2 } else { chunks == 1 }, "{told}: {chunks} chunks");
        let [at_edge, at_centre] = [a.end(), b.end()];
        assert_eq!(published, Some(count(&at_edge, "stored")), "{told}: {at_edge}");
        assert_eq!(count(&at_edge, "published"), count(&at_centre, "stored"), "{told}: {at_centre}");
        for name in ["missing", "late", "damaged", "unpublished", "unpublishable"] {
            assert_eq!(count(&at_centre, name), 0, "{told}: {name}: {at_centre}");
        }
        assert_handed_on(place, outputs.each_ref().map(PathBuf::as_path), 20_000, &told);
    }
}

#[test]
fn an_edge_that_is_killed_goes_on_where_it_was() {
    if is_traced() || !is_there() {
        return;
    }
    let mut random = seed();
    let told = format!("TRACEPOINT_SEED={random}");
    eprintln!("{told}");
    for options in [&[][..], &["--rotate-size", "64K"]] {
        let place = TempDir::new_in("/dev/shm").unwrap();
        let place = place.path();
        let broker = Broker::start(place);
        let edge = Edge::new(place, broker.url(), options);
        let (mut a, b) = (edge.start(), Collect::start(place, "centre", &broker.url(), &[]));
        let rings = ["--add-channel", "own:ring-size=8M,packets=256", "--channel", "own"];
        let record = edge.record("publishing::an_edge_that_is_killed_goes_on_where_it_was", "20000 150", &rings);
        wait_for("packets are published", || (count_packets(&b.output) > 2).then_some(()));
        for round in 0..5 {
            pause(&mut random);
            a.program.0.kill().unwrap();
            a.program.wait("it is killed");
            // In one round, the edge only stores.
            a = if round == 2 { edge.with(&[]) } else { edge.start() };
        }
        let report = record.finish();
        assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{told}: {report}");
        wait_until_through(&broker, &a.output);
        let outputs = [a.output.clone(), b.output.clone()];
        a.end();
        let counts = b.end();
        assert_eq!((count(&counts, "missing"), count(&counts, "damaged")), (0, 0), "{told}: {counts}");
        assert_handed_on(place, outputs.each_ref().map(PathBuf::as_path), 20_000, &told);
    }
}

/// The packets in index files below a directory.
fn count_packets(directory: &Path) -> u64 {
    let files = traces(directory).into_iter().flat_map(|trace| fs::read_dir(trace.join("index")).into_iter().flatten());
    files.flatten().map(|entry| entry.metadata().map_or(0, |it| it.len().saturating_sub(16) / 72)).sum()
}

#[test]
fn a_broker_that_is_killed_gets_everything_when_it_is_back() {
    if is_traced() || !is_there() {
        return;
    }
    let mut random = seed();
    let told = format!("TRACEPOINT_SEED={random}");
    eprintln!("{told}");
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let mut broker = Broker::start(place);
    let edge = Edge::new(place, broker.url(), &[]);
    let (a, b) = (edge.start(), Collect::start(place, "centre", &broker.url(), &["--lease", "60s"]));
    let record = edge.record("publishing::a_broker_that_is_killed_gets_everything_when_it_is_back", "20000 150", &[]);
    for _ in 0..4 {
        pause(&mut random);
        broker.kill();
        pause(&mut random);
        broker.restart();
    }
    let report = record.finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{told}: {report}");
    wait_until_through(&broker, &a.output);
    let outputs = [a.output.clone(), b.output.clone()];
    assert!(a.said().contains(&format!("publishing to {} (server one)", edge.broker)), "{told}: {}", a.said());
    a.end();
    b.end();
    assert_handed_on(place, outputs.each_ref().map(PathBuf::as_path), 20_000, &told);
}

#[test]
fn what_an_absent_broker_does_not_get_is_told_and_the_next_collector_publishes_it() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let mut broker = Broker::start(place);
    broker.kill();
    let edge = Edge::new(place, broker.url(), &["--flush", "1s"]);
    let a = edge.start();
    let test = "publishing::what_an_absent_broker_does_not_get_is_told_and_the_next_collector_publishes_it";
    let report = edge.record(test, "20000 20", &[]).finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{report}");
    let output = a.output.clone();
    let (counts, said) = a.end_and_said();
    let stored = count(&counts, "stored");
    assert_eq!((count(&counts, "unpublished"), count(&counts, "published")), (stored, 0), "{counts}");
    assert!(said.contains(&format!("not published: {stored} packets")), "{said}");
    assert!(said.contains(&format!("cannot publish to {}: ", edge.broker)), "{said}");
    broker.restart();
    let (a, b) = (edge.start(), Collect::start(place, "centre", &broker.url(), &[]));
    wait_until_through(&broker, &output);
    let centre = b.output.clone();
    let counts = a.end();
    assert_eq!((count(&counts, "published"), count(&counts, "unpublished")), (stored, 0), "{counts}");
    b.end();
    assert_handed_on(place, [&output, &centre], 20_000, "a broker that comes late");
}

#[test]
fn what_a_sender_loses_is_in_the_account_of_the_centre() {
    if is_traced() || !is_there() {
        return;
    }
    let test = "publishing::what_a_sender_loses_is_in_the_account_of_the_centre";
    for cap in [&[][..], &["--max-bandwidth", "200K/s"]] {
        let place = TempDir::new_in("/dev/shm").unwrap();
        let place = place.path();
        let broker = Broker::start(place);
        let edge = Edge::new(place, broker.url(), &[]);
        let (a, b) = (edge.start(), Collect::start(place, "centre", &broker.url(), &[]));
        let small = [&["--ring-size", "64K", "--overflow", "0", "--resend-buffer", "64K"], cap].concat();
        let record = edge.record(test, "60000 20", &small);
        wait_for("packets are published", || (count_packets(&b.output) > 2).then_some(()));
        a.program.signal(Signal::STOP);
        wait_for("events are lost", || {
            let status = String::from_utf8(tracectl(place, &["status"]).stdout).unwrap();
            status.contains("lost").then_some(())
        });
        a.program.signal(Signal::CONT);
        let report = record.finish();
        let [recorded, lost] = ["recorded", "lost"].map(|name| report[name].as_u64().unwrap());
        assert!(lost > 0 && recorded > 0 && recorded + lost == 120_000, "{report}");
        wait_until_through(&broker, &a.output);
        let outputs = [a.output.clone(), b.output.clone()];
        let [at_edge, counts] = [a.end(), b.end()];
        assert_eq!(count(&counts, "missing"), 0, "{cap:?}: {at_edge} {counts}");
        let [at_edge, at_centre] = outputs.each_ref().map(|output| streams(output));
        assert_eq!(at_edge, at_centre);
        let stored = events(&[&outputs[1]]);
        assert!(stored.values().all(|count| *count == 1), "an event is stored twice");
        let (written, _) = accounts(&[&outputs[1]]);
        assert_eq!((stored.len() as u64, written), (recorded, recorded), "{report}");
        if cap.is_empty() {
            assert_verified(place, &[&outputs[0], &outputs[1]]);
        }
    }
}

#[test]
fn what_is_removed_before_it_was_published_is_counted_at_the_edge_and_missing_in_the_centre() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let mut broker = Broker::start(place);
    broker.kill();
    let edge = Edge::new(place, broker.url(), &["--rotate-size", "64K", "--keep", "2"]);
    let a = edge.start();
    let test = "publishing::what_is_removed_before_it_was_published_is_counted_at_the_edge_and_missing_in_the_centre";
    let report = edge.record(test, "20000 20", &["--ring-size", "64K"]).finish();
    assert_eq!(report["recorded"].as_u64(), Some(40_000), "{report}");
    broker.restart();
    let b = Collect::start(place, "centre", &broker.url(), &[]);
    wait_until_through(&broker, &a.output);
    let outputs = [a.output.clone(), b.output.clone()];
    assert!(a.said().contains("were removed before they were published"), "{}", a.said());
    let [at_edge, at_centre] = [a.end(), b.end()];
    let removed = count(&at_edge, "unpublishable");
    assert!(removed > 0, "{at_edge}");
    assert_eq!(count(&at_edge, "published") + removed, count(&at_edge, "stored"), "{at_edge}");
    assert_eq!(count(&at_centre, "stored"), count(&at_edge, "published"), "{at_centre}");
    assert_eq!(count(&at_centre, "missing"), removed, "{at_centre}");
    let [at_edge, at_centre] = outputs.each_ref().map(|output| events(&[output]));
    assert!(!at_edge.is_empty() && at_edge == at_centre, "{} {}", at_edge.len(), at_centre.len());
}

#[test]
fn one_broker_for_both_ways_is_refused_and_a_stock_session_is_only_stored() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let output = place.join("both");
    let others = format!("nats://other:4222,nats://user:secret@127.0.0.1:{}", broker.url().rsplit_once(':').unwrap().1);
    let both = ["collect", "-o", output.to_str().unwrap(), "--nats", &others, "--publish", &broker.url()];
    let refused = tracectl(place, &both);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && errors.contains("leave out one of them"), "{errors}");

    let edge = Edge::new(place, broker.url(), &[]);
    let a = edge.start();
    let relay = ["--relay".to_owned(), format!("127.0.0.1:{}:{}", edge.ports[0], edge.ports[1])];
    let test = "publishing::one_broker_for_both_ways_is_refused_and_a_stock_session_is_only_stored";
    let report = Record::to(place, "record", &relay, (test, "500 0"), &[]).finish();
    assert_eq!(report["recorded"].as_u64(), Some(1000), "{report}");
    wait_for("it is told", || a.said().contains("is stored, and not published: it comes from LTTng").then_some(()));
    let output = a.output.clone();
    let counts = a.end();
    assert_eq!((count(&counts, "published"), count(&counts, "unpublished")), (0, 0), "{counts}");
    assert_once(&[&output], 500, "a stock session");
}
