//! The CTF directory made from the reports of a client: the events that arrived, the losses where they happened, and an account that
//! balances.

use crate::udp::link::{Faults, Random};
use crate::udp::random_faults::random_faults;
use crate::udp::server::Plan;
use crate::udp::{simulation::Simulation, trace};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tracepoint_reader::account::Account;
use tracepoint_reader::udp::{
    AbsentEvents, Directory, DirectoryError, EventBatch, Layout, LossReport, Options, Report, SessionEnd,
};
use tracepoint_reader::{Item, LossKind, RecoverError, Trace, Value, verify};

const PLAN: Plan = Plan { trusted: true, offers: true, events: 1500, rate: 4, ends: true, grows: 0 };

/// Writes a whole session.
fn write(path: &Path, reports: &[Report]) -> u64 {
    write_beside(path, reports, AbsentEvents::default())
}

/// Writes a whole session of a trace with an absent part.
fn write_beside(path: &Path, reports: &[Report], not_here: AbsentEvents) -> u64 {
    let mut directory = Directory::create(path).unwrap();
    let mut written = 0;
    let mut account = None;
    for report in reports {
        match report {
            Report::SessionBegin(_) => directory.begin(),
            Report::Metadata(text) => directory.grow(text).unwrap(),
            Report::Batch(batch) => {
                written += directory.batch(batch, |damage| panic!("{damage}")).unwrap();
            }
            Report::Account(text) => account = Some(text),
            _ => {}
        }
    }
    directory.finish(account.map(Vec::as_slice), not_here).unwrap();
    written
}

/// The numbers of the events in a trace, and the number of missing events it reports.
fn read(path: &Path) -> (Vec<u64>, u64) {
    let (mut numbers, mut missing) = (Vec::new(), 0);
    for item in Trace::open(path).unwrap().items() {
        match item {
            Item::Event(event) => {
                numbers.push(event.fields.unwrap().get("n").and_then(Value::as_u64).unwrap());
            }
            Item::Loss(loss) => match loss.kind {
                LossKind::Packets { events, .. } => missing += events.unwrap(),
                kind => panic!("{kind:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    (numbers, missing)
}

#[test]
fn received_and_lost_events_balance() {
    let place = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let back = Faults { pauses: 0, ..random_faults(&mut random) };
        let mut simulation = Simulation::new(seed, Options::default(), PLAN, [Faults::default(), back]);
        assert_eq!(simulation.run(), SessionEnd::Ended, "seed {seed}: {back:?}");
        if simulation.reports.first() == Some(&Report::SessionBegin(Layout::Legacy)) {
            // The offers were lost or corrupted.
            continue;
        }
        tried += 1;
        let counts = simulation.client.counts();
        let legacy = simulation.reports.iter().find_map(|report| match report {
            Report::Lost(LossReport::BeforeOffer(count)) => Some(*count),
            _ => None,
        });
        let path = place.path().join(seed.to_string());
        assert_eq!(write(&path, &simulation.reports), counts.events);
        let (numbers, missing) = read(&path);
        assert!(numbers.is_sorted_by(|a, b| a < b), "each event once");
        assert_eq!(numbers.len() as u64, counts.events);
        // Events sent in the legacy layout are in no stream.
        assert_eq!(missing, counts.lost_events - legacy.unwrap_or(0), "seed {seed}: {back:?}");
        let account = Account::open(&path).unwrap();
        let lines = account.channels.iter().flat_map(|channel| &channel.streams);
        let network: u64 = lines.filter_map(|line| line.sink_lost.get("udp_network")).sum();
        assert_eq!(network, missing);
        let report = verify(&path).unwrap();
        assert!(report.passed(), "seed {seed}: {:?}", report.failures().collect::<Vec<_>>());
    }
    assert!(tried > 10);
}

#[test]
fn babeltrace2_reads_it_and_reports_the_losses() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    let back = Faults { loss: 200, reordering: 20, ..Faults::default() };
    let mut simulation = Simulation::new(3, Options::default(), PLAN, [Faults::default(), back]);
    assert_eq!(simulation.run(), SessionEnd::Ended);
    write(&path, &simulation.reports);
    let peer = Command::new("babeltrace2").arg(&path).output();
    let peer = peer.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    let warnings = String::from_utf8(peer.stderr).unwrap();
    assert!(peer.status.success(), "{warnings}");
    let events = String::from_utf8(peer.stdout).unwrap().lines().count();
    assert_eq!(events as u64, simulation.client.counts().events);
    assert!(warnings.contains("WARNING: Tracer discarded"), "{warnings}");
}

/// The losses by reason in the account.
fn lost(path: &Path) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for line in Account::open(path).unwrap().channels.into_iter().flat_map(|channel| channel.streams) {
        for (reason, events) in line.sink_lost {
            *sum.entry(reason).or_default() += events;
        }
    }
    sum
}

#[test]
fn events_sent_to_others_or_lost_by_the_server_are_not_network_losses() {
    let place = tempfile::tempdir().unwrap();
    let back = Faults { loss: 200, ..Faults::default() };
    let mut simulation = Simulation::new(3, Options::default(), PLAN, [Faults::default(), back]);
    assert_eq!(simulation.run(), SessionEnd::Ended);
    let counts = simulation.client.counts();
    let others = AbsentEvents { sent_elsewhere: 1, ..AbsentEvents::default() };
    let unsent = AbsentEvents { unsent: 1, ..AbsentEvents::default() };
    for (name, not_here, reason) in [
        ("none", AbsentEvents::default(), "udp_network"),
        ("others", others, "udp_not_here"),
        ("unsent", unsent, "udp_not_here"),
    ] {
        let path = place.path().join(name);
        write_beside(&path, &simulation.reports, not_here);
        assert_eq!(lost(&path), BTreeMap::from([(reason.to_owned(), counts.lost_events)]));
        assert!(verify(&path).unwrap().passed());
    }
}

#[test]
fn repeated_metadata_is_written_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    let mut directory = Directory::create(&path).unwrap();
    // The first session ends in the middle of it; the last one continues after the received part, in other pieces.
    let text = trace::METADATA.as_bytes();
    for pieces in [&[0, 100][..], &[0, 60, 100], &[0, 90, 110, text.len()]] {
        directory.begin();
        for piece in pieces.windows(2) {
            directory.grow(&text[piece[0]..piece[1]]).unwrap();
        }
    }
    directory.finish(None, AbsentEvents::default()).unwrap();
    assert_eq!(std::fs::read_to_string(path.join("metadata")).unwrap(), trace::METADATA);
}

fn batch(packets: Vec<u8>) -> EventBatch {
    EventBatch { events_before: 0, events: 1, packets }
}

#[test]
fn contradictory_packets_are_dropped_and_reported() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    let mut directory = Directory::create(&path).unwrap();
    directory.grow(trace::METADATA.as_bytes()).unwrap();
    let mut damages = Vec::new();
    let mut take =
        |packets: Vec<u8>| directory.batch(&batch(packets), |damage| damages.push(damage.reason.clone())).unwrap();
    let packet = |number, before, events| {
        let mut out = Vec::new();
        trace::packet(&mut out, 0, number, before, 0, events);
        out
    };
    assert_eq!(take(packet(1, 0, 0..10)), 10);
    // Its number, its time and its count decrease; it belongs to another trace; it is truncated; its event is invalid.
    assert_eq!(take(packet(1, 10, 10..20)), 0);
    assert_eq!(take(packet(2, 10, 5..20)), 0);
    assert_eq!(take(packet(2, 5, 10..20)), 0);
    let mut foreign = packet(2, 10, 10..20);
    foreign[4] = 8;
    assert_eq!(take(foreign), 0);
    assert_eq!(take(packet(2, 10, 10..20)[..200].to_vec()), 0);
    let mut unknown = packet(2, 10, 10..20);
    unknown[96] = 9;
    assert_eq!(take(unknown), 0);
    assert_eq!(take(packet(2, 10, 10..20)), 10);
    assert_eq!(damages.len(), 6, "{damages:?}");
    directory.finish(None, AbsentEvents::default()).unwrap();
    assert_eq!(read(&path), ((0..20).collect(), 0));
}

#[test]
fn a_directory_that_is_not_empty_is_refused() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("mine"), "").unwrap();
    let error = Directory::create(place.path()).unwrap_err();
    assert!(
        matches!(&error, DirectoryError::Output(RecoverError::NotEmpty { found, .. }) if found == "mine"),
        "{error}"
    );
}

/// A server may have read a packet from a damaged disk: the checksum of the datagram is then correct.
#[test]
fn a_packet_that_was_damaged_before_it_was_sent_is_left_out_and_reported() {
    let mut packets = Vec::new();
    let mut ends = Vec::new();
    for (number, events) in [(0, 0..10), (1, 10..20), (2, 20..30)] {
        let begin = packets.len();
        trace::packet(&mut packets, 1, number, events.start, 0, events);
        tracepoint_reader::internal::seal(&mut packets[begin..]);
        ends.push(packets.len());
    }
    packets[ends[0] + 100] ^= 4;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("trace");
    let mut directory = Directory::create(&path).unwrap();
    directory.grow(trace::METADATA.as_bytes()).unwrap();
    let batch = EventBatch { events_before: 0, events: 30, packets };
    let mut damages = Vec::new();
    let written = directory.batch(&batch, |damage| damages.push((damage.offset, damage.to_string()))).unwrap();
    let [(offset, reason)] = damages.as_slice() else { panic!("{damages:?}") };
    assert!(*offset == ends[0] as u64 && reason.contains("have changed since it left its ring"), "{reason}");
    directory.finish(None, AbsentEvents::default()).unwrap();
    assert_eq!((written, read(&path)), (20, ((0..10).chain(20..30).collect(), 10)));
}
