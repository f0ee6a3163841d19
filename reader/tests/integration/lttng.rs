//! Traces in the layouts of LTTng-UST and others: compact and large headers, big endian, packetised metadata.

use std::fs;

use crate::hand::{UUID, assert_same, trace};
use tracepoint_reader::convert::{ConvertOptions, convert};
use tracepoint_reader::{DtTrace, Metadata};

const COMPACT: &str = "enum : u5 { compact = 0 ... 30, extended = 31 } id;
    variant <id> { struct { ts27 timestamp; } compact; struct { u32 id; ts64 timestamp; } extended; } v;";
const LARGE: &str = "enum : u16 { compact = 0 ... 65534, extended = 65535 } id;
    variant <id> { struct { ts32 timestamp; } compact; struct { u32 id; ts64 timestamp; } extended; } v;";

fn metadata(order: &str, header: &str) -> String {
    format!(
        r#"/* CTF 1.8 */
typealias integer {{ size = 5; align = 1; signed = false; }} := u5;
typealias integer {{ size = 8; align = 8; signed = false; }} := u8;
typealias integer {{ size = 16; align = 8; signed = false; }} := u16;
typealias integer {{ size = 32; align = 8; signed = false; }} := u32;
typealias integer {{ size = 64; align = 8; signed = false; }} := unsigned long;
trace {{ major = 1; minor = 8; uuid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"; byte_order = {order};
  packet.header := struct {{ u32 magic; u8 uuid[16]; u32 stream_id; unsigned long stream_instance_id; }}; }};
env {{ hostname = "box"; domain = "ust"; tracer_name = "lttng-ust"; tracer_major = 2; tracer_minor = 13; }};
clock {{ name = "mono"; uuid = "11111111-2222-3333-4444-555555555555"; freq = 1000000000; offset = 1700000000000000000; }};
typealias integer {{ size = 27; align = 1; signed = false; map = clock.mono.value; }} := ts27;
typealias integer {{ size = 32; align = 8; signed = false; map = clock.mono.value; }} := ts32;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.mono.value; }} := ts64;
struct packet_context {{ ts64 timestamp_begin; ts64 timestamp_end; unsigned long content_size;
  unsigned long packet_size; unsigned long packet_seq_num; unsigned long events_discarded; u32 cpu_id; }};
struct event_header {{ {header} }} align(8);
stream {{ id = 0; packet.context := struct packet_context; event.header := struct event_header; }};
event {{ name = "demo:hit"; id = 0; stream_id = 0; loglevel = 13; fields := struct {{ u32 _n; string _msg; }}; }};
event {{ name = "demo:other"; id = 40; stream_id = 0; loglevel = 4; fields := struct {{ u8 _x; }}; }};
"#
    )
}

/// A packet in LTTng's default layout, from 2^36 + 500 to 2^40.
fn packet(big: bool, records: &[u8]) -> Vec<u8> {
    let wide = |n: u64| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let narrow = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut bytes = narrow(0xC1FC_1FC1).to_vec();
    bytes.extend(UUID);
    bytes.extend(narrow(0));
    let bits = (84 + records.len() as u64) * 8;
    for number in [0, (1 << 36) + 500, 1 << 40, bits, bits, 0, 0] {
        bytes.extend(wide(number));
    }
    bytes.extend(narrow(3));
    bytes.extend(records);
    bytes
}

#[test]
fn compact_headers() {
    let mut records = (1000u32 << 5).to_le_bytes().to_vec();
    records.extend(b"\x07\0\0\0ab\0");
    records.extend([0x1f, 40, 0, 0, 0]);
    records.extend(((1u64 << 36) + 5000).to_le_bytes());
    records.push(9);
    // Overflows 27 bits.
    records.extend((7u32 << 5).to_le_bytes());
    records.extend(b"\x08\0\0\0\0");
    assert_same(trace(&metadata("le", COMPACT), &[("chan_0", &[packet(false, &records)])]).path());
}

#[test]
fn large_headers() {
    let mut records = vec![0, 0];
    records.extend(1000u32.to_le_bytes());
    records.extend(b"\x07\0\0\0ab\0");
    records.extend([0xff, 0xff, 40, 0, 0, 0]);
    records.extend(((1u64 << 36) + 5000).to_le_bytes());
    records.push(9);
    records.extend([40, 0]);
    records.extend(3u32.to_le_bytes());
    records.push(10);
    assert_same(trace(&metadata("le", LARGE), &[("chan_0", &[packet(false, &records)])]).path());
}

#[test]
fn big_endian() {
    let mut records = 1000u32.to_be_bytes().to_vec();
    records.extend(b"\0\0\0\x07ab\0");
    records.extend([0xf8, 0, 0, 0, 40]);
    records.extend(((1u64 << 36) + 5000).to_be_bytes());
    records.push(9);
    assert_same(trace(&metadata("be", COMPACT), &[("chan_0", &[packet(true, &records)])]).path());

    let mut records = vec![0, 0];
    records.extend(1000u32.to_be_bytes());
    records.extend(b"\0\0\0\x07ab\0");
    assert_same(trace(&metadata("be", LARGE), &[("chan_0", &[packet(true, &records)])]).path());
}

#[test]
fn natural_alignment() {
    let aligned = metadata("le", LARGE)
        .replace("size = 16; align = 8", "size = 16; align = 16")
        .replace("size = 32; align = 8", "size = 32; align = 32")
        .replace("size = 64; align = 8", "size = 64; align = 64")
        .replace("align(8)", "align(16)");
    // The header has 24 bytes up to the instance, so nothing is moved before the first event at 84.
    let mut records = vec![0, 0, 0, 0];
    records.extend(1000u32.to_le_bytes());
    records.extend(b"\x07\0\0\0abc\0");
    // At 100: the tag, then the option at 104.
    records.extend([0xff, 0xff, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0]);
    records.extend(((1u64 << 36) + 5000).to_le_bytes());
    records.push(9);
    assert_same(trace(&aligned, &[("chan_0", &[packet(false, &records)])]).path());
}

#[test]
fn packetised_metadata_may_span_packets() {
    for big in [false, true] {
        let narrow = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let text = metadata(if big { "be" } else { "le" }, LARGE);
        let mut wrapped = Vec::new();
        for (part, padding) in text.as_bytes().chunks(700).zip([0usize, 100, 7].into_iter().cycle()) {
            let content = 37 + part.len();
            wrapped.extend(narrow(0x75D1_1D57));
            wrapped.extend(UUID);
            wrapped.extend(narrow(0));
            wrapped.extend(narrow(content as u32 * 8));
            wrapped.extend(narrow((content + padding) as u32 * 8));
            wrapped.extend([0, 0, 0, 1, 8]);
            wrapped.extend(part);
            wrapped.resize(wrapped.len() + padding, 0);
        }
        let mut records = vec![0, 0];
        records.extend(narrow(1000));
        records.extend(narrow(7));
        records.extend(b"ab\0");
        let directory = trace("", &[("chan_0", &[packet(big, &records)])]);
        fs::write(directory.path().join("metadata"), &wrapped).unwrap();
        assert_same(directory.path());
    }
}

#[test]
fn environment_clock_and_events_of_the_metadata() {
    let metadata = Metadata::parse(metadata("le", LARGE).as_bytes()).unwrap();
    assert_eq!(metadata.uuid(), Some(UUID));
    let stream = metadata.stream(0).unwrap();
    assert_eq!(stream.events[&40].loglevel, Some(4));
    assert_eq!(stream.events[&40].name, "demo:other");
    assert_eq!(metadata.clocks()[0].offset_cycles, 1_700_000_000_000_000_000);
    assert!(metadata.env_value("tracer_name").is_some());
}

/// Packets of other tracers are copied into a dt file and out of it unchanged.
#[test]
fn conversion_to_a_dt_file_and_back() {
    let mut records = vec![0, 0];
    records.extend(1000u32.to_le_bytes());
    records.extend(b"\x07\0\0\0ab\0");
    let packet = packet(false, &records);
    let source = trace(&metadata("le", LARGE), &[("chan_0", std::slice::from_ref(&packet))]);
    let [file, again] = ["trace.dt", "again"].map(|name| source.path().join(name));
    let directory = source.path().join("in");
    fs::create_dir(&directory).unwrap();
    for name in ["metadata", "chan_0"] {
        fs::rename(source.path().join(name), directory.join(name)).unwrap();
    }
    let converted = convert(&directory, &file, ConvertOptions::default(), |_| {}).unwrap();
    assert_eq!((converted.streams, converted.packets, converted.dropped), (1, 1, 0));
    let summary = DtTrace::open(&file).unwrap().summary().unwrap();
    assert_eq!((summary.packets, summary.complete), (1, false));
    convert(&file, &again, ConvertOptions::default(), |_| {}).unwrap();
    assert_eq!(fs::read(again.join("stream0_0")).unwrap(), packet);
    assert_eq!(fs::read(again.join("metadata")).unwrap(), fs::read(directory.join("metadata")).unwrap());
    assert_same(&again);
}
