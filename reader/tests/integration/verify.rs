//! The account balances, and every wrong number is found.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::hand::{PREAMBLE, Packet, UUID, assert_same, stream, trace};
use serde_json::Value;
use tempfile::TempDir;
use tracepoint_reader::account::{Account, ChannelAccount, EventAccount, Policy, StreamAccount};
use tracepoint_reader::verify;

fn event(id: u64, name: &str, [fired, recorded, filtered, suppressed]: [u64; 4], lost: &[(&str, u64)]) -> EventAccount {
    let mut event = EventAccount::default();
    event.id = id;
    event.name = name.into();
    event.fired = fired;
    event.recorded = recorded;
    event.filtered = filtered;
    event.suppressed = suppressed;
    event.lost = lost.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
    event
}

/// recorded, packets, written, overwritten, sink, discarded
fn ring(instance: u64, file: &str, numbers: [u64; 6]) -> StreamAccount {
    let mut stream = StreamAccount::default();
    stream.instance = instance;
    stream.file = file.into();
    [stream.recorded, stream.packets, stream.written, stream.overwritten, stream.sink, stream.discarded] = numbers;
    stream
}

fn channel(
    id: u64,
    name: &str,
    policy: Policy,
    events: Vec<EventAccount>,
    streams: Vec<StreamAccount>,
) -> ChannelAccount {
    let mut channel = ChannelAccount::default();
    channel.id = id;
    channel.name = name.into();
    channel.policy = policy;
    channel.events = events;
    channel.streams = streams;
    channel
}

/// Two channels: one that discards, one that overwrites.
fn good() -> TempDir {
    let mut metadata = format!("{PREAMBLE}{}{}", stream(0), stream(1));
    for (name, id, stream) in [("p:a", 0, 0), ("p:b", 1, 0), ("p:c", 0, 1)] {
        writeln!(
            metadata,
            "event {{ name = \"{name}\"; id = {id}; stream_id = {stream}; fields := struct {{ u8 x; }}; }};"
        )
        .unwrap();
    }
    let first = Packet::of(&[(0, 1000, &[1]), (1, 1001, &[2])]);
    let second = Packet { number: 1, discarded: 2, before: 2, ..Packet::of(&[(0, 2000, &[3]), (0, 2001, &[4])]) };
    let other = Packet { instance: 1, discarded: 1, ..Packet::of(&[(1, 1500, &[5])]) };
    let ring_1 = Packet { stream: 1, number: 2, before: 5, ..Packet::of(&[(0, 1700, &[6]), (0, 1800, &[7])]) };
    let ring_2 = Packet { stream: 1, number: 4, before: 9, ..Packet::of(&[(0, 2700, &[8])]) };
    let directory = trace(
        &metadata,
        &[
            ("channel0_0", &[first.bytes(), second.bytes()]),
            ("channel0_1", &[other.bytes()]),
            ("snap_0", &[ring_1.bytes(), ring_2.bytes()]),
        ],
    );
    let mut account = Account::new(UUID, "name", 4242);
    account.complete = true;
    account.channels = vec![
        channel(
            0,
            "channel0",
            Policy::Discard,
            vec![
                event(0, "p:a", [10, 3, 4, 1], &[("ring_full", 2), ("too_large", 0)]),
                event(1, "p:b", [3, 2, 0, 0], &[("a reason of tomorrow", 1)]),
            ],
            vec![
                ring(0, "channel0_0", [4, 2, 4, 0, 0, 2]),
                ring(1, "channel0_1", [1, 1, 1, 0, 0, 1]),
                ring(2, "", [0, 0, 0, 0, 0, 0]),
            ],
        ),
        channel(
            1,
            "snap",
            Policy::Overwrite,
            vec![event(0, "p:c", [10, 10, 0, 0], &[])],
            vec![ring(0, "snap_0", [10, 2, 3, 6, 1, 0])],
        ),
    ];
    fs::create_dir(directory.path().join(".account")).unwrap();
    fs::write(directory.path().join(".account/account.json"), account.to_json()).unwrap();
    directory
}

fn passes(directory: &Path) -> bool {
    verify(directory).is_ok_and(|report| report.passed())
}

#[test]
fn a_true_account_balances() {
    let directory = good();
    let report = verify(directory.path()).unwrap();
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}");
    for rule in 'A'..='Q' {
        assert!(report.checks.iter().any(|check| check.rule == rule), "rule {rule} was never applied");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["checks"].as_array().unwrap().len(), report.checks.len());
    // The account does not disturb viewers.
    assert_same(directory.path());
}

/// A peer has a stream with packets lost on the way: between others, or at the end.
#[test]
fn a_stream_that_lost_packets_on_the_way_balances() {
    for (lost, balances) in [([1, 2], true), ([0, 2], false), ([1, 1], false)] {
        let directory = good();
        let path = directory.path().join(tracepoint_reader::account::ACCOUNT_PATH);
        let mut account: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let file = directory.path().join("channel0_0");
        let bytes = fs::read(&file).unwrap();
        // The packets have the same size.
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let stream = &mut account["channels"][0]["streams"][0];
        assert_eq!((&stream["packets"], &stream["written"]), (&2.into(), &4.into()));
        let [packets, events] = lost;
        (stream["packets"], stream["sink_packets"]) = ((2 - packets).into(), packets.into());
        (stream["written"], stream["sink"]) = ((4 - events).into(), events.into());
        stream["sink_lost"] = serde_json::json!({ "network": events });
        fs::write(&path, account.to_string()).unwrap();
        assert_eq!(
            passes(directory.path()),
            balances,
            "{lost:?}: {:#?}",
            verify(directory.path()).unwrap().failures().collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_account_round_trips() {
    let directory = good();
    let account = Account::open(directory.path()).unwrap();
    assert_eq!(Account::parse(&account.to_json()).unwrap(), account);
    assert_eq!(account.channels[0].events[1].lost["a reason of tomorrow"], 1);
}

/// The positions of all numbers in a JSON text, except those under `notes`.
fn numbers(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(place.to_owned()),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                numbers(value, &format!("{place}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| *name != "notes") {
                numbers(value, &format!("{place}/{name}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_wrong_number_is_found() {
    let directory = good();
    let file = directory.path().join(".account/account.json");
    let account: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let mut places = Vec::new();
    numbers(&account, "", &mut places);
    assert!(places.len() > 40);
    for place in places {
        for step in [-1, 1] {
            let mut wrong = account.clone();
            let number = wrong.pointer_mut(&place).unwrap();
            let changed = number.as_i64().unwrap() + step;
            // A stream without a file leaves no evidence of its number.
            if changed < 0 || (place == "/channels/0/streams/2/instance" && step > 0) {
                continue;
            }
            *number = changed.into();
            fs::write(&file, wrong.to_string()).unwrap();
            assert!(!passes(directory.path()), "{place} changed to {changed} and still balances");
        }
    }
}

#[test]
fn wrong_packets_are_found() {
    let directory = good();
    let file = directory.path().join("channel0_0");
    let good = fs::read(&file).unwrap();
    let second = 96 + 18;
    let flips: &[(usize, u8)] = &[
        (0, 1),           // magic
        (4, 1),           // uuid
        (20, 1),          // stream
        (24, 1),          // instance
        (33, 0x80),       // timestamp_begin, after the events
        (41, 0xFF),       // timestamp_end, before the events
        (48, 8),          // content_size
        (56, 0x40),       // packet_size
        (64, 1),          // packet_seq_num, as in the second packet
        (72, 4),          // events_discarded goes back later
        (88, 1),          // events_before
        (96, 1),          // an event's id
        (second + 33, 4), // timestamp_begin, before the end of the first
        (second + 64, 1), // packet_seq_num, as in the first packet
        (second + 72, 1), // events_discarded
        (second + 88, 1), // events_before
        (second + 4, 1),  // uuid
    ];
    for (offset, bits) in flips {
        let mut wrong = good.clone();
        wrong[*offset] ^= bits;
        fs::write(&file, &wrong).unwrap();
        assert!(!passes(directory.path()), "byte {offset} changed and still balances");
    }
    for length in 0..good.len() {
        fs::write(&file, &good[..length]).unwrap();
        assert!(!passes(directory.path()), "cut to {length} bytes and still balances");
    }
    fs::remove_file(&file).unwrap();
    assert!(!passes(directory.path()), "removed and still balances");
}

#[test]
fn other_files_and_events_are_found() {
    let directory = good();
    let extra = Packet { instance: 7, ..Packet::of(&[(0, 1000, &[1])]) };
    fs::write(directory.path().join("extra"), extra.bytes()).unwrap();
    assert!(!passes(directory.path()));
    fs::remove_file(directory.path().join("extra")).unwrap();
    assert!(passes(directory.path()));

    let metadata = directory.path().join("metadata");
    let text = fs::read_to_string(&metadata).unwrap();
    fs::write(&metadata, text.clone() + "event { name = \"p:d\"; id = 9; stream_id = 0; };").unwrap();
    assert!(!passes(directory.path()));
    fs::write(&metadata, text.replace("0f1e2d3c", "0f1e2d3d")).unwrap();
    assert!(!passes(directory.path()));
}

#[test]
fn a_missing_or_unfinished_account_is_found() {
    let directory = good();
    let file = directory.path().join(".account/account.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"complete\": true", "\"complete\": false")).unwrap();
    let report = verify(directory.path()).unwrap();
    assert_eq!(report.failures().map(|check| check.rule).collect::<Vec<_>>(), ['A']);

    fs::remove_file(&file).unwrap();
    let report = verify(directory.path()).unwrap();
    let failures: Vec<_> = report.failures().collect();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].left.contains("the process ended before writing its account"));
    assert!(!report.has_no_account());

    let metadata = directory.path().join("metadata");
    let text = fs::read_to_string(&metadata).unwrap();
    let other = text.replacen("env {", "env { tracer_name = \"lttng-ust\";", 1);
    assert_ne!(text, other);
    fs::write(&metadata, other).unwrap();
    let report = verify(directory.path()).unwrap();
    let said = &report.failures().next().unwrap().left;
    assert!(report.has_no_account() && said.contains("another tracer (lttng-ust), which writes none"), "{said}");
}
