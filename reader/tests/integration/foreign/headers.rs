//! Headers of events and packets.

use super::{Bits, ORDERS, one_file, refused};
use crate::hand::{assert_same, ours};
use tracepoint_reader::metadata::types::ByteOrder::{self, Big};

/// The two headers of LTTng.
#[derive(Clone, Copy)]
struct Header {
    /// Bits of the tag, and of the short time.
    tag: usize,
    time: usize,
    /// True if integers are aligned to their size.
    natural: bool,
}

impl Header {
    fn metadata(self, order: ByteOrder) -> String {
        let Self { tag, time, natural } = self;
        let order = if order == Big { "be" } else { "le" };
        let align = |size: usize| match (natural, size % 8) {
            (_, 1..) => 1,
            (true, 0) => size,
            (false, 0) => 8,
        };
        let int = |size: usize, map: &str| {
            format!("integer {{ size = {size}; align = {}; signed = false; {map} }}", align(size))
        };
        let clock = "map = clock.c.value;";
        let (last, extended) = ((1u64 << tag) - 2, (1u64 << tag) - 1);
        format!(
            "/* CTF 1.8 */
trace {{ major = 1; minor = 8; byte_order = {order}; packet.header := struct {{ {u32} magic; {u32} stream_id; }}; }};
clock {{ name = c; freq = 1000000000; offset = 1700000000000000000; }};
stream {{ id = 3;
  packet.context := struct {{ {t64} timestamp_begin; {t64} timestamp_end; {u32} content_size; {u32} packet_size; {u32} cpu_id; }};
  event.header := struct {{ enum : {id} {{ compact = 0 ... {last}, extended = {extended} }} id;
    variant <id> {{ struct {{ {short} timestamp; }} compact; struct {{ {u32} id; {t64} timestamp; }} extended; }} v;
  }} align({header});
}};
event {{ name = \"p:first\"; id = 0; stream_id = 3; fields := struct {{ {u8} a; }}; }};
event {{ name = \"p:far\"; id = 70000; stream_id = 3; fields := struct {{ {u16} a; }}; }};
",
            u8 = int(8, ""),
            u16 = int(16, ""),
            u32 = int(32, ""),
            t64 = int(64, clock),
            id = int(tag, ""),
            short = int(time, clock),
            header = if natural && tag == 5 { 32 } else { 8 },
        )
    }

    /// Two packets; the low bits of the times in the second one begin below those in the first.
    fn stream(self, order: ByteOrder) -> Vec<u8> {
        let natural = |size: usize| if self.natural { size } else { 8 };
        let wrap = 1u64 << self.time;
        let mut file = Vec::new();
        for (begin, times) in [(5 * wrap - 100, [0, 50, 99, 105, 3 * wrap]), (9 * wrap, [0, 1, 2, 3, wrap * 2])] {
            let mut body = Bits::new(order);
            // The header of a packet: 8 bytes, padding, 16 bytes, 12 bytes.
            let sizes = |content: u64, bits: &mut Bits| {
                bits.put(super::MAGIC, 32, natural(32)).put(3, 32, natural(32));
                bits.put(begin, 64, natural(64)).put(begin + 4 * wrap, 64, natural(64));
                bits.put(content, 32, natural(32)).put(content.next_multiple_of(512), 32, natural(32)).put(
                    7,
                    32,
                    natural(32),
                );
            };
            sizes(0, &mut body);
            for (index, time) in times.into_iter().enumerate() {
                let time = begin + time;
                let header = if self.natural && self.tag == 5 { 32 } else { natural(self.tag.next_multiple_of(8)) };
                if index == 4 {
                    // The variant's option with a 64-bit time has the alignment of that time.
                    body.put((1 << self.tag) - 1, self.tag, header).put(70_000, 32, natural(64)).put(
                        time,
                        64,
                        natural(64),
                    );
                    body.put(0xABCD, 16, natural(16));
                } else {
                    body.put(0, self.tag, header);
                    let align = if self.tag == 16 { natural(self.time) } else { 1 };
                    body.put(time, self.time, align).put(index as u64, 8, 8);
                }
            }
            let content = body.len();
            body.align(512);
            let mut whole = Bits::new(order);
            sizes(content as u64, &mut whole);
            let mut bytes = whole.done();
            bytes.extend(&body.done()[bytes.len()..]);
            file.extend(bytes);
        }
        file
    }
}

#[test]
fn compact_and_large_headers() {
    for order in ORDERS {
        for (tag, time) in [(5, 27), (16, 32)] {
            for natural in [false, true] {
                let header = Header { tag, time, natural };
                let trace = one_file(&header.metadata(order), header.stream(order));
                assert_same(trace.path());
                let text = ours(trace.path());
                assert_eq!(text.lines().count(), 10, "{text}");
                assert_eq!(text.matches("p:far: { cpu_id = 7 }, { a = 43981 }").count(), 2, "{text}");
            }
        }
    }
}

#[test]
fn packets_need_neither_header_nor_context() {
    for order in ORDERS {
        let metadata =
            super::bare(order, "u8 a; string s;").replace("packet.header := struct { u32 magic; u32 stream_id; };", "");
        assert_same(one_file(&metadata, b"\x01one\0\x02two\0\x03\0".to_vec()).path());
    }
}

#[test]
fn a_padded_packet_without_a_content_size() {
    let metadata = super::bare(super::Little, "u8 a;")
        .replace("stream { id = 0; }", "stream { id = 0; packet.context := struct { u32 packet_size; }; }");
    let mut packet = super::begin(super::Little);
    packet.put(16 * 8, 32, 32).bytes(b"\x01\x02\x03\x04");
    let twice = [packet.done(), packet.done()].concat();
    assert_same(one_file(&metadata, twice).path());
}

/// babeltrace2 stops at such a packet, because its merge requires that time never goes backwards. Here the end of the packet is its last event, as
/// after a kill of the tracer.
#[test]
fn an_event_after_the_end_of_its_packet() {
    let one = |begin, end, time| crate::hand::Packet { begin, end, ..crate::hand::Packet::of(&[(0, time, b"\x01")]) };
    let packets = [one(1000, 1000, 1005).bytes(), one(1006, 1007, 1007).bytes()];
    let trace = crate::hand::trace(&crate::hand::one_event("u8 a;"), &[("s", &packets)]);
    assert!(refused(trace.path()).contains("timestamp is less than"));
    assert_eq!(ours(trace.path()).lines().count(), 2);
}

/// babeltrace2 stops at the second packet, for the same reason.
#[test]
fn packets_whose_times_overlap() {
    let one = |begin, end, time| crate::hand::Packet { begin, end, ..crate::hand::Packet::of(&[(0, time, b"\x01")]) };
    let packets = [one(1000, 1010, 1005).bytes(), one(1006, 1017, 1017).bytes()];
    let trace = crate::hand::trace(&crate::hand::one_event("u8 a;"), &[("s", &packets)]);
    assert!(refused(trace.path()).contains("timestamp is less than"));
    assert_eq!(ours(trace.path()).lines().count(), 2);
}
