//! Losses and damage appear where they happened, and do not affect the rest.

use std::fs;

use crate::hand::{PREAMBLE, Packet, UUID, one_event, stream, trace};
use tracepoint_reader::account::{Account, ChannelAccount, StreamAccount};
use tracepoint_reader::{Item, LossKind, Metadata, PacketDecoder, Packets, ReadError, Trace, json};

const EPOCH: i64 = 1_700_000_000_000_000_000;

/// A summary of the items: times of events, kinds of losses, damage.
fn outline(directory: &std::path::Path) -> Vec<String> {
    Trace::open(directory)
        .unwrap()
        .items()
        .map(|item| match item {
            Item::Event(event) => format!("event {}", event.time_ns - EPOCH),
            Item::Loss(loss) => {
                let kind = match loss.kind {
                    LossKind::Events(events) => format!("events {events:?}"),
                    LossKind::Packets { packets, events } => format!("packets {packets:?} with {events:?}"),
                    kind => format!("{kind:?}"),
                };
                format!("{kind} from {} to {}", loss.from_ns - EPOCH, loss.to_ns - EPOCH)
            }
            Item::Damage(damage) => format!("damage at {}: {}", damage.offset, damage.reason),
            _ => unreachable!(),
        })
        .collect()
}

#[test]
fn losses_are_reported_between_their_packets() {
    let one = |time: u64| Packet::of(&[(0, time, &[1])]);
    let packets = [
        Packet { number: 3, discarded: 2, before: 10, ..one(1000) }.bytes(),
        Packet { number: 6, discarded: 7, before: 15, end: 2100, ..one(2000) }.bytes(),
        Packet { number: 7, discarded: 6, before: 16, ..one(3000) }.bytes(),
    ];
    let directory = trace(&one_event("u8 a;"), &[("s_0", &packets)]);
    let expected = [
        "events None from 1000 to 1000",
        "event 1000",
        "packets Some(2) with Some(4) from 1000 to 2000",
        "events Some(5) from 1000 to 2100",
        "event 2000",
        "events None from 2100 to 3000",
        "event 3000",
    ];
    assert_eq!(outline(directory.path()), expected);
}

/// Writes an account with these streams of a channel.
fn put_account(directory: &std::path::Path, id: u64, streams: Vec<StreamAccount>) {
    let mut channel = ChannelAccount::default();
    (channel.id, channel.streams) = (id, streams);
    let mut account = Account::new(UUID, "s", 1);
    account.complete = true;
    account.channels.push(channel);
    let path = directory.join(".account");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("account.json"), account.to_json()).unwrap();
}

/// An account shows where a stream begins and ends.
#[test]
fn losses_before_the_first_and_behind_the_last_packet_are_reported() {
    let packet = Packet { number: 3, discarded: 2, before: 10, ..Packet::of(&[(0, 1000, &[1])]) };
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[packet.bytes()])]);
    let mut stream = StreamAccount::default();
    (stream.instance, stream.recorded, stream.sink_packets, stream.discarded) = (packet.instance, 31, 5, 4);
    put_account(directory.path(), packet.stream.into(), vec![stream]);
    let expected = [
        "packets Some(3) with Some(10) from 1000 to 1000",
        "events Some(2) from 1000 to 1000",
        "event 1000",
        "packets None with Some(20) from 1000 to 1000",
        "events Some(2) from 1000 to 1000",
    ];
    assert_eq!(outline(directory.path()), expected);
    crate::hand::assert_same(directory.path());
}

/// A stream whose packets were all lost has no file, or an empty one. Only the account shows its losses.
#[test]
fn the_losses_of_a_stream_without_packets_are_reported() {
    let packet = Packet { number: 0, ..Packet::of(&[(0, 1000, &[1])]) };
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[packet.bytes()]), ("s_1", &[])]);
    let of = |instance, recorded, sink, discarded, overwritten| {
        let mut stream = StreamAccount::default();
        (stream.instance, stream.recorded, stream.sink, stream.discarded) = (instance, recorded, sink, discarded);
        stream.overwritten = overwritten;
        stream
    };
    let present = of(packet.instance, 1, 0, 0, 0);
    let other = packet.instance + 1;
    put_account(
        directory.path(),
        packet.stream.into(),
        vec![present, of(other, 7, 4, 2, 3), of(other + 1, 0, 0, 0, 0)],
    );
    let expected = ["packets None with Some(4) from 1000 to 1000", "events Some(2) from 1000 to 1000"];
    let mut found = outline(directory.path());
    assert_eq!(
        found.iter().position(|item| item == "event 1000").map(|event| found.remove(event)).as_deref(),
        Some("event 1000")
    );
    assert_eq!(found, expected);
    crate::hand::assert_same(directory.path());
    let trace = Trace::open(directory.path()).unwrap();
    assert_eq!(trace.items_since(EPOCH + 1001).filter(|item| matches!(item, Item::Loss(_))).count(), 0);
    assert_eq!(trace.index().streams().len(), 1);
}

/// Only the events that the sink lost are losses: those that it wrote are damage. A stream that the account lists twice is counted once.
#[test]
fn a_stream_without_a_readable_packet_is_damaged_and_has_the_losses_of_its_sink() {
    let packet = Packet { number: 0, ..Packet::of(&[(0, 1000, &[1])]) };
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[packet.bytes()]), ("s_1", &[vec![1; 256]])]);
    let mut stream = StreamAccount::default();
    (stream.instance, stream.recorded, stream.written, stream.sink) = (packet.instance + 1, 7, 4, 3);
    put_account(directory.path(), packet.stream.into(), vec![stream.clone(), stream]);
    let found = outline(directory.path());
    let losses: Vec<_> = found.iter().filter(|item| !item.starts_with("damage") && *item != "event 1000").collect();
    assert_eq!(losses, ["packets None with Some(3) from 1000 to 1000"]);
    assert_eq!(found.len(), 3, "{found:?}");
}

/// A recovered trace lacks the packets that a collector has acknowledged; its account lists them as lost by the sink.
#[test]
fn a_stream_with_packets_in_another_directory_of_its_trace_is_not_missing() {
    let tree = tempfile::tempdir().unwrap();
    let packet = Packet { number: 0, ..Packet::of(&[(0, 1000, &[1])]) };
    let mut stream = StreamAccount::default();
    (stream.instance, stream.recorded, stream.sink) = (packet.instance, 1, 1);
    let recovered = trace(&one_event("u8 a;"), &[]);
    put_account(recovered.path(), packet.stream.into(), vec![stream]);
    fs::rename(recovered.keep(), tree.path().join("recovered")).unwrap();
    assert_eq!(outline(tree.path()).len(), 1, "alone");
    let collected = trace(&one_event("u8 a;"), &[("s_0", &[packet.bytes()])]);
    fs::rename(collected.keep(), tree.path().join("collected")).unwrap();
    assert_eq!(outline(tree.path()), ["event 1000"]);
    crate::hand::assert_same(tree.path());
}

/// The time grows with the number of streams, and not with its square.
#[test]
fn an_account_may_have_very_many_streams_without_packets() {
    const STREAMS: u64 = 100_000;
    let packet = Packet { number: 0, ..Packet::of(&[(0, 1000, &[1])]) };
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[packet.bytes()])]);
    let streams = (0..STREAMS).map(|instance| {
        let mut stream = StreamAccount::default();
        (stream.instance, stream.recorded, stream.sink) = (packet.instance + 1 + instance, 1, 1);
        stream
    });
    put_account(directory.path(), packet.stream.into(), streams.collect());
    let items = Trace::open(directory.path()).unwrap().items();
    assert_eq!(items.filter(|item| matches!(item, Item::Loss(_))).count() as u64, STREAMS);
}

/// The chunks of a rotated LTTng session, which are traces with the same UUID: their counters continue.
#[test]
fn discarded_events_are_lost_in_one_of_the_directories_of_a_stream() {
    let one = |number, time: u64, discarded| {
        Packet { number, discarded, end: time + 10, ..Packet::of(&[(0, time, &[1])]) }.bytes()
    };
    let tree = tempfile::tempdir().unwrap();
    let put = |name: &str, packets: &[Vec<u8>]| {
        let directory = trace(&one_event("u8 a;"), &[("s_0", packets)]);
        fs::rename(directory.keep(), tree.path().join(name)).unwrap();
    };
    put("begin-0", &[one(0, 1000, 0), one(1, 1100, 342)]);
    put("later-1", &[one(2, 2000, 342), one(3, 2100, 342)]);
    put("later-2", &[one(4, 3000, 350)]);
    let events = ["event 1000", "event 1100", "event 2000", "event 2100", "event 3000"];
    let (first, second) = ("events Some(342) from 1010 to 1110", "events Some(8) from 3000 to 3010");
    assert_eq!(outline(tree.path()), [events[0], first, events[1], events[2], events[3], second, events[4]]);
    let trace = Trace::open(tree.path()).unwrap();
    assert_eq!(trace.items_since(EPOCH + 2500).filter(|item| matches!(item, Item::Loss(_))).count(), 1);
    // Without the first one, the losses before the second are unknown; an overlapping copy of the second does not help.
    fs::remove_dir_all(tree.path().join("begin-0")).unwrap();
    put("copy-1", &[one(1, 1900, 342), one(2, 2000, 342), one(3, 2100, 342)]);
    fs::remove_dir_all(tree.path().join("later-2")).unwrap();
    let unknown = |time: u64| format!("events None from {time} to {}", time + 10);
    let expected =
        [&unknown(1900), "event 1900", "event 2000", &unknown(2000), "event 2000", "event 2100", "event 2100"];
    assert_eq!(outline(tree.path()), expected);
}

#[test]
fn a_packet_number_that_does_not_rise_is_reported_as_it_is() {
    let one = |number, time| Packet { number, before: number, ..Packet::of(&[(0, time, &[1])]) }.bytes();
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[one(5, 1000), one(3, 2000), one(3, 3000), one(4, 4000)])]);
    let kinds = |from: u64, previous: u64, number: u64| {
        format!("Renumbered {{ previous: {previous}, number: {number} }} from {from} to {}", from + 1000)
    };
    let expected = ["event 1000", &kinds(1000, 5, 3), "event 2000", &kinds(2000, 3, 3), "event 3000", "event 4000"];
    assert_eq!(outline(directory.path()), expected);
}

#[test]
fn packets_of_other_tracers_have_no_event_counts() {
    let metadata =
        one_event("u8 a;").replace("u32 tid; integer { size = 64; align = 64; signed = false; } events_before;", "");
    let strip = |packet: Packet| {
        let mut bytes = packet.bytes();
        bytes.drain(80..96);
        let bits = (bytes.len() as u64 * 8).to_le_bytes();
        bytes[48..56].copy_from_slice(&bits);
        bytes[56..64].copy_from_slice(&bits);
        bytes
    };
    let packets =
        [strip(Packet::of(&[(0, 1000, &[1])])), strip(Packet { number: 2, ..Packet::of(&[(0, 2000, &[1])]) })];
    let directory = trace(&metadata, &[("s_0", &packets)]);
    assert_eq!(outline(directory.path())[1], "packets Some(1) with None from 1000 to 2000");
    crate::hand::assert_same(directory.path());
}

#[test]
fn an_open_packet_is_mended() {
    for end in [0, 1500] {
        let packet = Packet { end, ..Packet::of(&[(0, 1000, &[1]), (0, 2000, &[2])]) };
        // The next packet's loss begins where the mended one ends.
        let next = Packet { number: 1, before: 2, discarded: 1, ..Packet::of(&[(0, 3000, &[3])]) };
        let directory = trace(&one_event("u8 a;"), &[("s_0", &[packet.bytes(), next.bytes()])]);
        let expected = ["event 1000", "event 2000", "events Some(1) from 2000 to 3000", "event 3000"];
        assert_eq!(outline(directory.path()), expected);
    }
}

#[test]
fn a_truncated_packet_is_read_up_to_the_last_whole_event() {
    let first = Packet::of(&[(0, 1000, &[1])]);
    let last = Packet { number: 1, before: 1, padding: 8, ..Packet::of(&[(0, 2000, &[2]), (0, 3000, &[3])]) };
    let mut bytes = [first.bytes(), last.bytes()].concat();
    let whole = bytes.len();

    bytes.truncate(whole - 4);
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[bytes.clone()])]);
    let reason = "damage at 223: the file ends 4 bytes before its last packet does";
    assert_eq!(outline(directory.path()), ["event 1000", "event 2000", "event 3000", reason]);

    bytes.truncate(whole - 10);
    fs::write(directory.path().join("s_0"), &bytes).unwrap();
    let found = outline(directory.path());
    assert_eq!(found[..2], ["event 1000", "event 2000"]);
    assert!(found[2].starts_with("damage at 210: the file ends within an event, 2 bytes before"), "{found:?}");

    bytes.truncate(105 + 50);
    fs::write(directory.path().join("s_0"), &bytes).unwrap();
    let found = outline(directory.path());
    assert_eq!(found[0], "event 1000");
    assert!(found[1].contains("the bytes end within a packet's header"), "{found:?}");
}

#[test]
fn damage_affects_its_own_stream_only() {
    let good = Packet { instance: 1, ..Packet::of(&[(0, 1000, &[1]), (0, 3000, &[1])]) };
    let bad = Packet { instance: 2, ..Packet::of(&[(0, 1500, &[1]), (77, 2000, &[1])]) };
    let files: &[(&str, &[Vec<u8>])] = &[
        ("good", &[good.bytes()]),
        ("bad", &[bad.bytes()]),
        ("junk", &[b"not a packet at all, but longer than one".to_vec()]),
    ];
    let found = outline(trace(&one_event("u8 a;"), files).path());
    assert!(found[0].starts_with("damage at 0: a packet should start here"), "{found:?}");
    assert_eq!(found[1..3], ["event 1000", "event 1500"]);
    assert!(found[3].contains("id 77"), "{found:?}");
    assert_eq!(found[4..], ["event 3000"]);
}

#[test]
fn a_tree_of_traces_is_one_trace() {
    let root = tempfile::tempdir().unwrap();
    for (name, time) in [("a", 2000), ("b", 1000)] {
        let directory = root.path().join("deep").join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("metadata"), one_event("u8 a;")).unwrap();
        fs::write(directory.join("s"), Packet::of(&[(0, time, &[1])]).bytes()).unwrap();
    }
    assert_eq!(outline(root.path()), ["event 1000", "event 2000"]);
    crate::hand::assert_same(root.path());
}

#[test]
fn an_error_about_a_non_trace_advises_a_remedy() {
    let empty = tempfile::tempdir().unwrap();
    for path in [empty.path().to_owned(), empty.path().join("nowhere")] {
        let error = Trace::open(&path).unwrap_err();
        assert!(matches!(error, ReadError::NotATrace { .. }));
        assert!(error.to_string().contains("name a directory that holds a file called `metadata`"));
    }
    fs::write(empty.path().join("metadata"), "/* CTF 1.8 */\ntrace {\n  uuid = \"x\";\n};").unwrap();
    let error = Trace::open(empty.path()).unwrap_err().to_string();
    assert!(error.contains("metadata: line 3, byte 34: `x` is not a UUID"), "{error}");
}

#[test]
fn at_most_one_packet_is_in_memory() {
    let metadata = Metadata::parse(one_event("u8 a; string s;").as_bytes()).unwrap();
    let packet = Packet { number: 4, before: 17, ..Packet::of(&[(0, 1000, b"\x01hi\0"), (0, 2000, b"\x02\0")]) };
    let bytes = packet.bytes();
    let decoder = PacketDecoder::new(&metadata, &bytes).unwrap();
    assert_eq!((decoder.packet().sequence, decoder.packet().events_before), (Some(4), Some(17)));
    assert_eq!((decoder.packet().tid, decoder.packet().size()), (Some(5), bytes.len() as u64));
    let events: Vec<_> = decoder.map(Result::unwrap).collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].name(), "p:x");
    let fields = events[0].fields.as_ref().unwrap();
    assert_eq!(fields.get("a").unwrap().as_u64(), Some(1));
    assert_eq!(fields.get("s").unwrap().as_bytes(), Some(&b"hi"[..]));

    let cut: Vec<_> = PacketDecoder::new(&metadata, &bytes[..bytes.len() - 1]).unwrap().collect();
    assert!(cut[0].is_ok() && cut[1].is_err() && cut.len() == 2);
}

#[test]
fn packets_are_indexed_without_their_events() {
    let metadata = one_event("u8 a;");
    let first = Packet { padding: 100, ..Packet::of(&[(0, 1000, &[1])]) };
    let last = Packet { number: 1, discarded: 3, before: 1, ..Packet::of(&[(77, 2000, &[2])]) };
    let mut bytes = [first.bytes(), last.bytes()].concat();
    bytes.pop();
    let directory = trace(&metadata, &[("s_0", &[bytes])]);
    let metadata = Metadata::parse(metadata.as_bytes()).unwrap();
    let found: Vec<_> = Packets::open(&metadata, &directory.path().join("s_0")).unwrap().collect();
    assert_eq!(found.len(), 3);
    let packets: Vec<_> = found.iter().flatten().map(|p| (p.offset, p.begin, p.sequence, p.discarded)).collect();
    assert_eq!(packets, [(0, Some(1000), Some(0), Some(0)), (205, Some(2000), Some(1), Some(3))]);
    assert_eq!(found[2].as_ref().unwrap_err().reason, "the file ends 1 bytes before its last packet does");
}

#[test]
fn json_lines() {
    let metadata = format!(
        "{PREAMBLE}{}event {{ name = \"p:x\"; id = 0; stream_id = 0; loglevel = 6; fields := struct {{
          u64 _big; string s; string bad; u8 bytes[2]; enum : u8 {{ Idle = 0, Run = 1 }} e; struct {{ u8 k; }} st;
          floating_point {{ exp_dig = 11; mant_dig = 53; }} d; floating_point {{ exp_dig = 8; mant_dig = 24; }} f;
          variant <e> {{ u8 Idle; u16 Run; }} v; }}; }};",
        stream(0)
    );
    let mut data = u64::MAX.to_le_bytes().to_vec();
    data.extend("a\"b\n\0".bytes());
    data.extend(b"h\xff\0\x01\x02\x01\x07");
    data.extend(f64::NEG_INFINITY.to_le_bytes());
    data.extend(0.5f32.to_le_bytes());
    data.extend([3, 0]);
    let packet = Packet { discarded: 1, ..Packet::of(&[(0, 1000, &data)]) };
    let mut file = packet.bytes();
    file.extend(b"junk");
    let directory = trace(&metadata, &[("s_0", &[file])]);
    let mut out = Vec::new();
    for item in Trace::open(directory.path()).unwrap().items() {
        json::write_item(&mut out, &item).unwrap();
    }
    let lines: Vec<serde_json::Value> =
        out.split_inclusive(|b| *b == b'\n').map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["type"], "loss");
    assert_eq!(lines[0]["events"], serde_json::Value::Null);
    let event = &lines[1];
    assert_eq!(event["time"], "2023-11-14T22:13:20.000001000Z");
    assert_eq!(event["time_ns"], EPOCH + 1000);
    assert_eq!(event["name"], "p:x");
    assert_eq!(event["loglevel"], 6);
    assert_eq!(event["stream"]["instance"], 0);
    assert_eq!(event["packet_context"], serde_json::json!({"tid": 5, "events_before": 0}));
    let expected = serde_json::json!({
        "big": u64::MAX, "s": "a\"b\n", "bad": {"$bytes": "68ff"}, "bytes": [1, 2],
        "e": {"value": 1, "labels": ["Run"]}, "st": {"k": 7}, "d": "-Infinity", "f": 0.5, "v": {"Run": 3},
    });
    assert_eq!(event["fields"], expected);
    assert_eq!(lines[2]["type"], "damage");
}
