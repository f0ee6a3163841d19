//! Hand-made traces: a writer that shares no code with the reader, and babeltrace2 for comparison.

// Each test file is a separate crate and uses only a part of this.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_reader::{Item, Trace};

pub const UUID: [u8; 16] =
    [0x0f, 0x1e, 0x2d, 0x3c, 0x4b, 0x5a, 0x69, 0x78, 0x87, 0x96, 0xa5, 0xb4, 0xc3, 0xd2, 0xe1, 0xf0];

/// Everything except streams and events.
pub const PREAMBLE: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace {
  major = 1; minor = 8; uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"; byte_order = le;
  packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; u64 stream_instance_id; };
};
env { hostname = "box"; domain = "ust"; vpid = 4242; procname = "my proc"; };
clock { name = "mono"; uuid = "11111111-2222-3333-4444-555555555555"; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 48; align = 8; signed = false; map = clock.mono.value; } := ts48;
typealias integer { size = 64; align = 8; signed = false; map = clock.mono.value; } := ts64;
"#;

/// A `stream` block in this tracer's layout.
pub fn stream(id: u32) -> String {
    format!(
        "stream {{ id = {id};
  packet.context := struct {{
    ts64 timestamp_begin; ts64 timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num;
    u64 events_discarded; u32 tid; integer {{ size = 64; align = 64; signed = false; }} events_before;
  }};
  event.header := struct {{ u16 id; ts48 timestamp; }};
}};\n"
    )
}

/// Metadata with one stream and one event.
pub fn one_event(fields: &str) -> String {
    let event = format!("event {{ name = \"p:x\"; id = 0; stream_id = 0; fields := struct {{ {fields} }}; }};\n");
    format!("{PREAMBLE}{}{event}", stream(0))
}

/// A packet in this tracer's layout.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    pub stream: u32,
    pub instance: u64,
    pub begin: u64,
    pub end: u64,
    pub number: u64,
    pub discarded: u64,
    pub tid: u32,
    pub before: u64,
    pub records: Vec<u8>,
    pub padding: usize,
}

impl Packet {
    /// A packet with records, which are an id, a time and the bytes of the fields.
    pub fn of(records: &[(u16, u64, &[u8])]) -> Self {
        let mut bytes = Vec::new();
        for (id, time, fields) in records {
            bytes.extend(((time << 16) | u64::from(*id)).to_le_bytes());
            bytes.extend(*fields);
        }
        Self {
            begin: records.first().map_or(0, |r| r.1),
            end: records.last().map_or(0, |r| r.1),
            tid: 5,
            records: bytes,
            ..Self::default()
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let content = 96 + self.records.len() as u64;
        let mut bytes = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
        bytes.extend(UUID);
        bytes.extend(self.stream.to_le_bytes());
        bytes.extend(self.instance.to_le_bytes());
        let size = content + self.padding as u64;
        for number in [self.begin, self.end, content * 8, size * 8, self.number, self.discarded] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.tid.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.before.to_le_bytes());
        bytes.extend(&self.records);
        bytes.resize(bytes.len() + self.padding, 0);
        bytes
    }
}

/// A trace directory.
pub fn trace(metadata: &str, files: &[(&str, &[Vec<u8>])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("metadata"), metadata).unwrap();
    for (name, packets) in files {
        fs::write(directory.path().join(name), packets.concat()).unwrap();
    }
    directory
}

/// The output of babeltrace2.
pub fn babeltrace(directory: &Path) -> String {
    let output = Command::new("babeltrace2")
        .arg(directory)
        .output()
        .expect("babeltrace2 does not run: install it with scripts/setup.sh");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "babeltrace2 refuses the trace: {errors}");
    readable(&output.stdout)
}

/// The events as printed by this crate.
pub fn ours(directory: &Path) -> String {
    text(directory, Style::Babeltrace.into())
}

/// The same with other options.
pub fn text(directory: &Path, options: TextOptions) -> String {
    let mut out = Vec::new();
    let mut writer = TextWriter::new(options);
    for item in Trace::open(directory).unwrap().items() {
        match &item {
            Item::Event(_) => writer.write_item(&mut out, &item).unwrap(),
            Item::Loss(_) => {}
            other => panic!("{other:?}"),
        }
    }
    readable(&out)
}

/// Bytes that are not UTF-8 stay distinct.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|b| char::from(*b)).collect(),
    }
}

/// Asserts that both print the same non-empty text.
pub fn assert_same(directory: &Path) {
    let expected = babeltrace(directory);
    assert!(!expected.is_empty(), "babeltrace2 printed nothing");
    let found = ours(directory);
    for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
