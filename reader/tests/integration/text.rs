//! Text output compared with babeltrace2's, for every kind of field and its extremes.

use std::env;
use std::fmt::Write;
use std::process::Command;

use crate::hand::{PREAMBLE, Packet, assert_same, one_event, ours, stream, trace};

fn assert_fields(fields: &str, data: &[u8]) {
    let packet = Packet::of(&[(0, 1000, data)]);
    assert_same(trace(&one_event(fields), &[("s_0", &[packet.bytes()])]).path());
}

#[test]
fn integers_of_all_sizes_signs_and_bases() {
    let mut fields = String::new();
    let mut data = Vec::new();
    for base in ["decimal", "hex", "octal", "binary", "x", "16", "2", "8", "10"] {
        for size in [8u32, 16, 32, 64] {
            for signed in ["true", "false"] {
                for value in [0u64, 1, 5, u64::MAX, u64::MAX - 4, i64::MIN.cast_unsigned(), 1 << (size - 1)] {
                    let number = data.len();
                    write!(fields, "integer {{ size = {size}; align = 8; signed = {signed}; base = {base}; }} ")
                        .unwrap();
                    write!(fields, "f{number}_{signed}_{base}; ").unwrap();
                    data.extend(&value.to_le_bytes()[..size as usize / 8]);
                }
            }
        }
    }
    assert_fields(&fields, &data);
}

#[test]
fn bit_fields() {
    let mut fields = String::new();
    for size in 1..=64 {
        // babeltrace2 2.0.4 shows 61 to 63 bits in base 16 as 0x0, shifting a 64-bit number by 64.
        let hex = if (61..64).contains(&size) { "dec" } else { "hex" };
        for (base, signed) in [(hex, "true"), ("oct", "true"), ("binary", "false"), ("10", "true")] {
            let attributes = format!("size = {size}; align = 1; signed = {signed}; base = {base};");
            write!(fields, "integer {{ {attributes} }} f{size}_{base}_{signed}; ").unwrap();
        }
    }
    // 2080 * 4 bits.
    let data: Vec<u8> = (0..1040u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_fields(&fields, &data);
}

#[test]
fn integers_in_network_order() {
    let field = |name: &str, size: u32| format!("integer {{ size = {size}; byte_order = be; }} {name}; ");
    let fields = field("port", 16) + &field("address", 32) + &field("wide", 64);
    assert_fields(&fields, &[0x1f, 0x90, 127, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn floats_and_their_extremes() {
    let doubles = [
        0.0,
        -0.0,
        1.0,
        0.1,
        1e10,
        1e5,
        123_456.0,
        1_234_567.0,
        1e-4,
        1e-5,
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
        99_999.95,
        999_999.5,
        100_000.5,
        100_001.5,
        2.5e-7,
        0.000_099_999_96,
        1e100,
    ];
    let singles = [0.1f32, -0.0, 1e-45, f32::MAX, 16_777_217.0, f32::NAN, f32::NEG_INFINITY];
    let fields = format!(
        "floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; byte_order = le; }} d[{}];
         floating_point {{ exp_dig = 8; mant_dig = 24; align = 8; }} s[{}];
         floating_point {{ exp_dig = 8; mant_dig = 24; byte_order = be; }} b;",
        doubles.len(),
        singles.len()
    );
    let mut data: Vec<u8> = doubles.iter().flat_map(|d: &f64| d.to_le_bytes()).collect();
    data.extend(singles.iter().flat_map(|s| s.to_le_bytes()));
    data.extend(1.5f32.to_be_bytes());
    assert_fields(&fields, &data);
}

#[test]
fn strings_and_their_extremes() {
    let mut data = vec![0];
    data.extend(1..=127);
    data.push(0);
    data.extend(0xA0..=255);
    data.push(0);
    data.extend("héllo ☃ \"quoted\" back\\slash ?? 'x' \u{1b}[1m\0".bytes());
    data.extend("x".repeat(4096).bytes());
    data.push(0);
    data.extend(b"\xff\xfe\xc3(\0");
    assert_fields(
        "string empty; string ascii; string high; string text; string { encoding = UTF8; } lengthy; string bad;",
        &data,
    );
}

/// babeltrace2 writes them to the terminal unchanged.
#[test]
fn characters_that_a_terminal_acts_on_are_escaped() {
    let data = "a\u{9b}2J\u{85}\u{202e}cba\u{2066}\u{200f}é☃\0".as_bytes();
    let data = [data, b"\x9b2J\xff\0"].concat();
    let metadata = one_event("string valid; string bytes;").replace("\"box\"", "\"b\u{202e}\u{9c}x\"");
    let text = ours(trace(&metadata, &[("s_0", &[Packet::of(&[(0, 1000, &data)]).bytes()])]).path());
    let expected: String =
        "valid = \"a\\u{9b}2J\\u{85}\\u{202e}cba\\u{2066}\\u{200f}é☃\", bytes = \"\\x9b2J\u{ff}\"".to_owned();
    // The bytes are not UTF-8, so each byte is a character here.
    let expected: String = expected.replace("é☃", "\u{c3}\u{a9}\u{e2}\u{98}\u{83}");
    assert!(text.contains(&expected) && text.contains(" b\\u{202e}\\u{9c}x:"), "{text}");
}

#[test]
fn arrays_sequences_and_structures() {
    let fields = "u8 n; u16 seq[n]; u8 z; u16 none[z]; u8 a0[0]; u8 a1[1]; u8 m[2][3]; u8 __q_length;
        u8 _q[ __q_length ]; struct {} empty; struct { u8 k; string s; } st; struct { u8 x; } ast[2];
        struct { u8 len; struct { u8 inner; } in; } outer; u8 dotted[outer.len]; u8 deep[outer.in.inner];
        typealias integer { size = 8; base = hex; } := hex8; hex8 digest[4]; string names[2];";
    let data = [
        2, 1, 0, 2, 0, 0, 9, 1, 2, 3, 4, 5, 6, 2, 7, 8, 5, 65, 0, 1, 2, 1, 2, 11, 21, 22, 0xde, 0xad, 0xbe, 0xef, b'a',
        0, 0,
    ];
    assert_fields(fields, &data);
}

#[test]
fn characters_are_text() {
    let fields = "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := chr;
        chr fixed[8]; u8 n; chr counted[n]; integer { size = 8; signed = true; encoding = ASCII; } one; chr none[0];";
    assert_fields(fields, b"ab\0cdefg\x03x\nyA");
}

#[test]
fn enumerations() {
    let fields = r#"enum : u8 { A = 0, B = 1, "C d" = 2, R = 3 ... 5, A2 = 0, Z = 0 ... 2, Q } e[8];
        enum : integer { size = 8; align = 8; signed = true; } { N = -1, M = -5 ... -3, P = 0, "q\"x" = 9 } s[5];
        enum : integer { size = 8; align = 8; base = hex; } { A, B = 16, "C", } h[4];
        enum : u64 { top = 18446744073709551615, x = 0x10 } t[2];
        enum state : u8 { IDLE, RUN } was; enum state now;"#;
    let mut data = vec![0, 1, 2, 3, 5, 6, 7, 200, 255, 252, 0, 77, 9, 0, 16, 17, 18];
    data.extend([0xff; 8]);
    data.extend([0x10, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_fields(fields, &data);
}

#[test]
fn variants() {
    let fields = "enum : u8 { a = 0, b = 1, c = 2 } tag;
        variant <tag> { u8 a; string b; struct { u8 x; string y; } c; } v;
        enum : u8 { a = 0, b = 1, c = 2 } tag2;
        variant <tag2> { u8 a; string b; struct { u8 x; u8 rest[x]; string y; } c; } v2;";
    assert_fields(fields, b"\x01hi\0\x02\x02zzyy\0");
}

#[test]
fn names_that_are_keywords() {
    let fields = "u8 _int; u8 _struct; u8 _event; u8 __x; u8 _stream; u8 _align; u8 _self; u8 _fn;";
    assert_fields(fields, &[0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn events_with_contexts_attributes_and_no_fields() {
    let metadata = format!(
        "{PREAMBLE}{}
/* What it means. */
event {{ name = \"p:all\"; id = 0; stream_id = 0; loglevel = 13; model.emf.uri = \"https://example.org/\";
  context := struct {{ u8 _c; }}; fields := struct {{ u8 a; }}; }};
event {{ name = \"p:none\"; id = 1; stream_id = 0; }};
event {{ name = \"p:empty\"; id = 2; stream_id = 0; fields := struct {{ }}; }}; // the last one
",
        stream(0).replace("event.header", "event.context := struct { u32 _vtid; string _who; };\n  event.header")
    );
    let packet = Packet::of(&[
        (0, 1000, b"\x07\0\0\0me\0\x05\x01"),
        (1, 2000, b"\x07\0\0\0me\0"),
        (2, 12_345_678_901_234, b"\x07\0\0\0\0"),
    ]);
    assert_same(trace(&metadata, &[("s_0", &[packet.bytes()])]).path());
}

#[test]
fn the_environment_gives_host_and_process() {
    let environments = [
        "",
        "env { hostname = \"box\"; };",
        "env { procname = \"p r\"; vpid = 77; };",
        "env { vpid = 77; };",
        "env { hostname = \"h\"; vpid = -77; };",
        "env { hostname = \"a\\\"b\"; procname = \"é\"; tracer_major = 2; };",
    ];
    for environment in environments {
        let line = PREAMBLE.lines().find(|l| l.starts_with("env")).unwrap();
        let metadata = one_event("u8 a;").replace(line, environment);
        let packet = Packet::of(&[(0, 1000, b"\x01")]);
        assert_same(trace(&metadata, &[("s_0", &[packet.bytes()])]).path());
    }
}

#[test]
fn streams_are_merged_and_ties_ordered() {
    let mut files = Vec::new();
    for (name, instance) in [("b_0", 9u64), ("c_0", 2), ("a_0", 5), ("s_0", 0)] {
        let data = [instance as u8];
        let mut packet =
            Packet::of(&[(0, 1000, &data), (0, 1000, &data), (0, 1000 + instance, &data), (0, 2000, &data)]);
        packet.instance = instance;
        packet.padding = 64;
        let mut second = Packet::of(&[(0, 2000, &data), (0, 3000 - instance, &data)]);
        second.instance = instance;
        second.number = 1;
        second.before = 4;
        files.push((name, [packet.bytes(), second.bytes()]));
    }
    let files: Vec<_> = files.iter().map(|(name, packets)| (*name, &packets[..])).collect();
    assert_same(trace(&one_event("u8 a;"), &files).path());
}

#[test]
fn files_of_one_instance_continue_each_other() {
    let first = Packet::of(&[(0, 1000, b"\x01")]);
    let mut second = Packet::of(&[(0, 2000, b"\x02")]);
    second.number = 1;
    second.before = 1;
    let directory = trace(&one_event("u8 a;"), &[("z", &[first.bytes()]), ("a", &[second.bytes()]), ("empty", &[])]);
    assert_same(directory.path());
}

#[test]
fn short_times_wrap() {
    let edge = 1u64 << 48;
    let mut packet = Packet::of(&[(0, edge - 5, b"\x01"), (0, 3, b"\x02"), (0, 4, b"\x03")]);
    packet.begin = edge - 10;
    packet.end = edge + 4;
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[packet.bytes()])]);
    assert_same(directory.path());
    assert!(ours(directory.path()).contains("(+0.000000008)"));
}

#[test]
fn local_time_zones() {
    // The zone belongs to the process, so the comparison runs in separate processes.
    for zone in ["America/New_York", "Asia/Kolkata", "UTC"] {
        let status = Command::new(env::current_exe().unwrap())
            .args(["--exact", "text::streams_are_merged_and_ties_ordered"])
            .env("TZ", zone)
            .output()
            .unwrap();
        assert!(status.status.success(), "{zone}: {}", String::from_utf8_lossy(&status.stdout));
    }
}
