//! The compact text style, and the origin of events in JSON.

use crate::hand::{PREAMBLE, Packet, one_event, stream, text, trace};
use std::path::Path;
use tracepoint_reader::text::{TextOptions, TimeFormat};
use tracepoint_reader::{Trace, json};

const TYPES: &str = "typealias integer { size = 8; align = 8; signed = false; } := bool;";

fn shown(directory: &Path, change: impl FnOnce(&mut TextOptions)) -> String {
    let mut options = TextOptions::default();
    options.time = TimeFormat::Utc;
    change(&mut options);
    text(directory, options)
}

/// The fields of one event after its name.
fn fields(declared: &str, data: &[u8]) -> String {
    let metadata = one_event(declared).replace("trace {", &format!("{TYPES}\ntrace {{"));
    let directory = trace(&metadata, &[("s_0", &[Packet::of(&[(0, 1000, data)]).bytes()])]);
    let line = shown(directory.path(), |_| {});
    line.strip_prefix("22:13:20.000001000 my proc[4242/5] p:x ")
        .unwrap_or_else(|| panic!("{line}"))
        .trim_end()
        .to_owned()
}

#[test]
fn values_are_written_briefly() {
    let be32 = "integer { size = 32; align = 8; signed = false; byte_order = be; }";
    for (declared, data, expected) in [
        ("bool on; bool off;", &b"\x01\x00"[..], "on=true off=false"),
        ("u8 n; u8 digest[3];", b"\x07\xab\x00\x1f", "n=7 digest=0xab001f"),
        ("u16 _data_length; u8 data[_data_length];", b"\x02\x00\xff\x01", "data=0xff01"),
        ("u8 n; u16 data[n];", b"\x02\x01\x00\x02\x00", "data=[1, 2]"),
        ("u8 count; u8 flags[2];", b"\x02\x00\x01", "count=2 flags=0x0001"),
        ("bool flags[2];", b"\x00\x01", "flags=[false, true]"),
        ("u8 peer_ip[4];", b"\x7f\x00\x00\x01", "peer_ip=127.0.0.1"),
        ("u8 saddr[16];", b"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", "saddr=2001:db8::1"),
        (&format!("{be32} v4addr; {be32} shipped;"), b"\x0a\0\0\x02\0\0\0\x02", "v4addr=10.0.0.2 shipped=2"),
        ("u32 addr; u8 chip[4];", b"\x01\0\0\0\x01\x02\x03\x04", "addr=1 chip=0x01020304"),
        ("integer { size = 16; base = 16; signed = true; } x;", b"\xff\xff", "x=0xffff"),
        ("enum : u8 { a = 0 ... 3, \"b c\" = 4, d = 3 } e; enum : u8 { a = 0 } f;", b"\x03\x09", "e=a|d f=9"),
        ("enum : u8 { a = 0 ... 3, \"b c\" = 4 } e;", b"\x04", "e=\"b c\""),
        ("string s;", b"it's \"x\"?\n\0", "s=\"it's \\\"x\\\"?\\n\""),
        ("struct { u8 x; struct {} y; } s;", b"\x05", "s={x=5 y={}}"),
        ("enum : u8 { a = 0, b = 1 } e; variant <e> { u8 a; string b; } v;", b"\x01hi\0", "e=b v={b=\"hi\"}"),
        ("floating_point { exp_dig = 11; mant_dig = 53; align = 8; } d;", &0.1_f64.to_le_bytes(), "d=0.1"),
        ("floating_point { exp_dig = 8; mant_dig = 24; align = 8; } d;", &1e20_f32.to_le_bytes(), "d=1e20"),
    ] {
        assert_eq!(fields(declared, data), expected, "{declared}");
    }
}

/// Two events of each of two threads, 1 µs and 2 ms apart.
fn two_threads() -> tempfile::TempDir {
    let packets = [(0, 7_u32, 1000_u64), (1, 4242, 2_001_000)].map(|(instance, tid, time)| {
        let packet = Packet::of(&[(0, time, b"\x01\x02"), (0, time + 1000, b"\x03\x04")]);
        Packet { instance, tid, ..packet }.bytes()
    });
    trace(&one_event("u8 a; u8 b;"), &[("s_0", &packets[..1]), ("s_1", &packets[1..])])
}

#[test]
fn times_threads_and_fields_are_shown_as_asked() {
    let directory = two_threads();
    let lines = |times: [&str; 4]| {
        let [a, b, c, d] = times;
        format!(
            "{a} my proc[4242/7] p:x a=1 b=2\n{b} my proc[4242/7] p:x a=3 b=4\n{c} my proc[4242] p:x a=1 b=2\n\
             {d} my proc[4242] p:x a=3 b=4\n"
        )
    };
    for (time, expected) in [
        (TimeFormat::Utc, ["22:13:20.000001000", "22:13:20.000002000", "22:13:20.002001000", "22:13:20.002002000"]),
        (TimeFormat::Relative, ["+0.000000000", "+0.000001000", "+0.002000000", "+0.002001000"]),
        (TimeFormat::Delta, ["+0.000000000", "+0.000001000", "+0.001999000", "+0.000001000"]),
        (
            TimeFormat::Epoch,
            ["1700000000000001000", "1700000000000002000", "1700000000002001000", "1700000000002002000"],
        ),
    ] {
        assert_eq!(shown(directory.path(), |options| options.time = time), lines(expected));
    }
    let from = shown(directory.path(), |options| {
        (options.time, options.origin_ns) = (TimeFormat::Relative, Some(1_700_000_000_002_000_000));
    });
    assert_eq!(from, lines(["-0.001999000", "-0.001998000", "+0.000001000", "+0.000002000"]));
    let some = shown(directory.path(), |options| {
        (options.date, options.host) = (true, true);
        options.fields = Some(vec!["b".to_owned(), "tid".to_owned()]);
    });
    assert_eq!(some.lines().next(), Some("2023-11-14 22:13:20.000001000 box my proc[4242/7] p:x tid=7 b=2"));
}

#[test]
fn colours_are_only_around_the_text() {
    let directory = two_threads();
    let colored = shown(directory.path(), |options| options.color = true);
    assert!(colored.contains("\u{1b}[36mp:x\u{1b}[0m"), "{colored:?}");
    let plain: String =
        colored.split('\u{1b}').map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect();
    // The first part has no sequence in front, and is empty.
    assert_eq!(plain, shown(directory.path(), |_| {}));
}

/// Contexts name the thread and the process, like LTTng's.
#[test]
fn contexts_say_where_an_event_is_from() {
    let context = "event.context := struct { u32 vpid; u32 vtid; string procname; u32 cpu_id; };\n};";
    let stream = stream(0).trim_end().strip_suffix("};").unwrap().to_owned() + context;
    let event = "event { name = \"p:x\"; id = 0; stream_id = 0; loglevel = 4; fields := struct { u8 a; }; };";
    let records: &[&[u8]] = &[b"\x08\0\0\0\x09\0\0\0io\0\x01\0\0\0\x05", b"\x08\0\0\0\x0a\0\0\0net\0\x02\0\0\0\x06"];
    let packet = Packet::of(&[(0, 1000, records[0]), (0, 2000, records[1])]);
    let directory = trace(&format!("{PREAMBLE}{stream}{event}"), &[("s_0", &[packet.bytes()])]);
    let expected = "22:13:20.000001000 io[8/9] p:x cpu_id=1 a=5\n22:13:20.000002000 net[8/10] p:x cpu_id=2 a=6\n";
    assert_eq!(shown(directory.path(), |_| {}), expected);
    let mut line = Vec::new();
    let first = Trace::open(directory.path()).unwrap().items().next().unwrap();
    json::write_item(&mut line, &first).unwrap();
    let event: serde_json::Value = serde_json::from_slice(&line).unwrap();
    for (name, expected) in [
        ("level", "Warning".into()),
        ("loglevel", 4.into()),
        ("host", "box".into()),
        ("program", "my proc".into()),
        ("thread", "io".into()),
        ("pid", 8.into()),
        ("tid", serde_json::Value::from(9)),
    ] {
        assert_eq!(event[name], expected, "{name}");
    }
}
