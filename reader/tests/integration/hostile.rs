//! Untrusted bytes, truncated or changed anywhere: reading them ends with an error or with damage, soon, and never with a panic.

use std::fmt::Write;
use std::fs;

use crate::hand::{PREAMBLE, Packet, one_event, stream, trace};
use tracepoint_reader::account::Account;
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_reader::{Item, Metadata, PacketDecoder, Trace, json, verify};

const FIELDS: &str = "u8 n; u16 seq[n]; string s; enum : u8 { a = 0 ... 3, b = 4 } e;
    variant <e> { u8 a; struct { u8 x; integer { size = 3; align = 1; } bits; } b; } v;
    floating_point { exp_dig = 11; mant_dig = 53; align = 8; } d; u8 fixed[3]; struct {} z[4];";

fn sample() -> Vec<u8> {
    let data = b"\x02\x01\0\x02\0hello\0\x04\x09\x05\0\0\0\0\0\0\xf8\x3f\x01\x02\x03";
    Packet { padding: 5, ..Packet::of(&[(0, 1000, data), (0, 2000, data)]) }.bytes()
}

/// A pseudo-random generator with the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn change(&mut self, bytes: &mut [u8]) {
        for _ in 0..=self.next() % 4 {
            let at = (self.next() % bytes.len() as u64) as usize;
            bytes[at] = match self.next() % 4 {
                0 => 0,
                1 => 0xFF,
                2 => bytes[at] ^ (1 << (self.next() % 8)),
                _ => self.next() as u8,
            };
        }
    }
}

/// Decodes and prints everything; returns the number of events.
fn decode(metadata: &Metadata, bytes: &[u8]) -> usize {
    let Ok(decoder) = PacketDecoder::new(metadata, bytes) else {
        return 0;
    };
    let mut out = Vec::new();
    let mut writers = [Style::Babeltrace, Style::Compact].map(|style| TextWriter::new(style.into()));
    let mut events = 0;
    for step in decoder {
        let item = match step {
            Ok(event) => Item::Event(event),
            Err(damage) => Item::Damage(damage),
        };
        events += usize::from(matches!(item, Item::Event(_)));
        for writer in &mut writers {
            writer.write_item(&mut out, &item).unwrap();
        }
        json::write_item(&mut out, &item).unwrap();
        out.clear();
    }
    events
}

#[test]
fn streams_truncated_at_every_byte() {
    let metadata = Metadata::parse(one_event(FIELDS).as_bytes()).unwrap();
    let bytes = sample();
    assert_eq!(decode(&metadata, &bytes), 2);
    let directory = trace(&one_event(FIELDS), &[]);
    for length in 0..bytes.len() {
        assert!(decode(&metadata, &bytes[..length]) <= 2);
        fs::write(directory.path().join("s"), &bytes[..length]).unwrap();
        let damaged = Trace::open(directory.path()).unwrap().items().any(|item| matches!(item, Item::Damage(_)));
        assert_eq!(damaged, length > 0, "cut to {length}");
    }
}

#[test]
fn streams_changed_anywhere() {
    let metadata = Metadata::parse(one_event(FIELDS).as_bytes()).unwrap();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..30_000 {
        let mut bytes = sample();
        random.change(&mut bytes);
        decode(&metadata, &bytes);
    }
}

#[test]
fn metadata_truncated_and_changed_anywhere() {
    let text = one_event(FIELDS);
    for length in 0..text.len() {
        let _ = Metadata::parse(&text.as_bytes()[..length]);
    }
    let bytes = sample();
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    for _ in 0..5_000 {
        let mut text = text.clone().into_bytes();
        random.change(&mut text);
        if let Ok(metadata) = Metadata::parse(&text) {
            decode(&metadata, &bytes);
        }
    }
}

#[test]
fn accounts_truncated_and_changed_anywhere() {
    let directory = trace(&one_event("u8 a;"), &[("s_0", &[Packet::of(&[(0, 1000, &[1])]).bytes()])]);
    let account = r#"{"format":"tracepoint-account","version":1,"trace_uuid":"x","session":"s","pid":1,"complete":true,
        "channels":[{"id":0,"name":"c","policy":"discard","events":[{"id":0,"name":"p:x","fired":18446744073709551615,
        "recorded":18446744073709551615,"filtered":18446744073709551615,"suppressed":1,"lost":{"x":18446744073709551615}}],
        "streams":[{"instance":0,"file":"s_0","recorded":18446744073709551615,"packets":1,"written":18446744073709551615,
        "overwritten":18446744073709551615,"sink":18446744073709551615,"discarded":18446744073709551615}]}]}"#;
    fs::create_dir(directory.path().join(".account")).unwrap();
    let file = directory.path().join(".account/account.json");
    fs::write(&file, account).unwrap();
    assert!(!verify(directory.path()).unwrap().passed());
    for length in 0..account.len() {
        assert!(Account::parse(&account.as_bytes()[..length]).is_err());
    }
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    for _ in 0..500 {
        let mut bytes = account.as_bytes().to_vec();
        random.change(&mut bytes);
        fs::write(&file, &bytes).unwrap();
        let _ = verify(directory.path());
    }
}

/// Without bounds, these would not terminate.
#[test]
fn excessive_metadata_is_refused_or_bounded() {
    let mut doubling = String::from("/* CTF 1.8 */ struct s0 { u8 a; };").replace("u8", "integer { size = 8; }");
    for level in 1..60 {
        write!(doubling, "struct s{level} {{ struct s{} a; struct s{} b; }};", level - 1, level - 1).unwrap();
    }
    let cases = [
        // Deep nesting, of every kind.
        "struct {".repeat(100_000),
        "typealias integer { size = 8; } := u8; struct { u8 a".to_owned() + &"[1]".repeat(100_000),
        "trace { packet.header := ".repeat(10_000),
        "enum : ".repeat(100_000),
        // Each level refers twice to the one below.
        format!("{doubling} trace {{ packet.header := struct s59; }};"),
        // Numbers beyond all bounds.
        "typealias integer { size = 65; } := x;".to_owned(),
        "typealias integer { size = 0; } := x;".to_owned(),
        "typealias integer { size = 8; align = 3; } := x;".to_owned(),
        "typealias integer { size = 99999999999999999999; } := x;".to_owned(),
        "clock { name = c; freq = 0; };".to_owned(),
    ];
    for text in cases {
        let parsed = Metadata::parse(text.as_bytes());
        if let Ok(metadata) = parsed {
            decode(&metadata, &sample());
        }
    }
    // The same, where each of them would need its own copy.
    let own_copies = format!(
        "{} trace {{ packet.header := struct s59; }};",
        doubling.replace("} a; };", "} a; integer { size = 8; } b[a]; };")
    );
    let error = Metadata::parse(own_copies.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("in more ways than this reader keeps"), "{error}");
}

/// As above.
#[test]
fn excessive_field_lengths_are_bounded() {
    let fields = [
        "struct {} z[18446744073709551615];",
        "u64 n; struct {} z[n];",
        "u64 n; string z[n];",
        "u64 n; u8 z[n];",
        "u16 z[18446744073709551615];",
        "struct { struct {} a[1000000]; } z[1000000];",
        "struct {} nothing;",
    ];
    for field in fields {
        let metadata = Metadata::parse(one_event(field).as_bytes()).unwrap();
        decode(&metadata, &Packet::of(&[(0, 1000, &[0xFF; 64])]).bytes());
    }
    // An event without any bits would never end.
    let metadata = format!("{PREAMBLE}{}", stream(0)).replace("u16 id; ts48 timestamp;", "")
        + "event { name = \"p:x\"; id = 0; stream_id = 0; };";
    let metadata = Metadata::parse(metadata.as_bytes()).unwrap();
    assert_eq!(decode(&metadata, &Packet::of(&[(0, 1000, &[0xFF; 64])]).bytes()), 0);
}

/// An escape sequence in a name does not reach the terminal; harmless text is unchanged.
#[test]
fn escape_sequences_in_names_are_escaped() {
    let metadata = one_event("u8 a;").replace("\"p:x\"", "\"p:\\033[31mx\"").replace("\"box\"", "\"bo\\007x\"");
    let packet = Packet::of(&[(0, 1000, b"\x01")]);
    let directory = trace(&metadata, &[("s_0", &[packet.bytes()])]);
    for style in [Style::Babeltrace, Style::Compact] {
        let mut options = TextOptions::from(style);
        options.host = true;
        let text = crate::hand::text(directory.path(), options);
        assert!(text.contains("p:\\u{1b}[31mx") && text.contains("bo\\u{7}x"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}
