//! Fields: bit fields, variants, enumerations, structures, arrays, sequences.

use super::{ORDERS, bare, begin, one_file, refused};
use crate::hand::{assert_same, ours};

#[test]
fn bit_fields_cross_bytes() {
    for order in ORDERS {
        let field = |size: usize, signed: bool| {
            format!("integer {{ size = {size}; align = 1; signed = {signed}; }} f{size}_{signed}; ")
        };
        let sizes = [1, 2, 3, 5, 7, 8, 11, 13, 16, 17, 23, 24, 31, 32, 33, 48, 63, 64];
        let fields: String = sizes.iter().map(|size| field(*size, false) + &field(*size, true)).collect();
        let rest = 8 - sizes.iter().sum::<usize>() * 2 % 8;
        let fields = fields + &format!("integer {{ size = {rest}; align = 1; }} rest;");
        let mut packet = begin(order);
        for _ in 0..2 {
            // The structure of the fields, like its members, may start at any bit.
            for (index, size) in sizes.iter().enumerate() {
                let number = 0x9E37_79B9_7F4A_7C15_u64.rotate_left(index as u32 * 7);
                packet.put(number, *size, 1).put(!number, *size, 1);
            }
            packet.put(1, rest, 1);
        }
        let trace = one_file(&bare(order, &fields), packet.done());
        assert_same(trace.path());
        assert_eq!(ours(trace.path()).lines().count(), 2);
    }
}

#[test]
fn enumerations_have_ranges_that_overlap() {
    let fields =
        "enum : integer { size = 6; align = 1; signed = true; } { low = -32 ... -1, zero, some = 1 ... 9, odd = 3,
        last = 31 } a; enum : integer { size = 10; align = 1; } { big = 512 ... 1023, mid = 500 ... 600 } b;";
    for order in ORDERS {
        let mut packet = begin(order);
        for (a, b) in [(-32i64, 0u64), (-1, 512), (0, 500), (3, 600), (9, 601), (10, 1023), (31, 499)] {
            packet.put(a.cast_unsigned(), 6, 1).put(b, 10, 1);
        }
        assert_same(one_file(&bare(order, fields), packet.done()).path());
    }
}

#[test]
fn variants_within_variants_and_structures() {
    let fields = "enum : u8 { small = 0 ... 9, wide = 10, none = 11 ... 255 } kind; u16 tail;
        variant <kind> {
          u8 small;
          struct { enum : u8 { a, b } inner; variant <inner> { u32 a; struct { string s; u8 n; u8 rest[n]; } b; } v; } wide;
          struct { } none;
        } body;";
    for order in ORDERS {
        let mut packet = begin(order);
        let head = |packet: &mut super::Bits, kind| {
            packet.put(kind, 8, 16).put(513, 16, 16);
        };
        // The structure of the fields is aligned like its widest member; the members of a variant have their own alignment.
        packet.align(16);
        head(&mut packet, 4);
        packet.put(7, 8, 8).align(16);
        head(&mut packet, 10);
        packet.put(0, 8, 8).put(0xABCD_EF01, 32, 32).align(16);
        head(&mut packet, 10);
        packet.put(1, 8, 8).bytes(b"text\0\x02\x05\x06").align(16);
        head(&mut packet, 200);
        assert_same(one_file(&bare(order, fields), packet.done()).path());
    }
}

#[test]
fn arrays_and_sequences_of_structures() {
    let fields =
        "u8 n; struct { u8 a; u32 b; } fixed[2]; struct { u8 k; struct { u16 x; } in[k]; string s; } counted[n];
        integer { size = 3; align = 1; signed = false; } m; integer { size = 4; align = 1; signed = true; } nibbles[m];
        struct { integer { size = 4; align = 1; } q; } packed[3];";
    for order in ORDERS {
        let mut packet = begin(order);
        for n in [2u64, 0] {
            packet.put(n, 8, 32);
            for index in 0..2 {
                packet.put(index, 8, 32).put(0x0102_0304 + index, 32, 32);
            }
            for k in 0..n {
                packet.put(k, 8, 16);
                for x in 0..k {
                    packet.put(0x0506 + x, 16, 16);
                }
                packet.bytes(b"s\0");
            }
            packet.put(5, 3, 1);
            for nibble in 0..5 {
                packet.put(nibble * 3, 4, 1);
            }
            for nibble in 0..3 {
                packet.put(nibble * 5, 4, 1);
            }
        }
        // The packet starts with its sizes, which give the position of its last bit.
        let metadata = bare(order, fields)
            .replace("id = 0; }", "id = 0; packet.context := struct { u32 content_size; u32 packet_size; }; }");
        let (content, bytes) = (packet.len() as u64 + 64, packet.done());
        let mut whole = begin(order);
        whole.put(content, 32, 32).put(bytes.len() as u64 * 8 + 64, 32, 32).bytes(&bytes[8..]);
        let trace = one_file(&metadata, whole.done());
        assert_same(trace.path());
    }
}

#[test]
fn lengths_come_from_every_part_of_an_event() {
    let lengths = "u8 a[trace.packet.header.three]; u8 b[stream.packet.context.p]; u8 c[stream.event.header.h];
        u8 d[stream.event.context.n]; u8 e[event.context.k];";
    let metadata = bare(super::Little, lengths)
        .replace("u32 stream_id;", "u32 stream_id; u8 three;")
        .replace(
            "id = 0; }",
            "id = 0; packet.context := struct { u8 p; }; event.header := struct { u8 h; };
             event.context := struct { u8 n; }; }",
        )
        .replace("name = \"p:x\";", "name = \"p:x\"; context := struct { u8 k; };");
    let mut packet = begin(super::Little);
    packet.bytes(&[3, 2]);
    for [h, n, k] in [[1, 2, 0], [0, 0, 4]] {
        packet.bytes(&[h, n, k]);
        packet.bytes(&[1, 2, 3, 4, 5]).bytes(&vec![6; usize::from(h + n + k)]);
    }
    assert_same(one_file(&metadata, packet.done()).path());
}

/// babeltrace2's grammar has only plain names for the tags of variants.
#[test]
fn tags_of_variants_may_be_paths() {
    let metadata = bare(
        super::Little,
        "struct { enum : u8 { one, text } kind; } in; variant <in.kind> { u8 one; string text; } v;",
    );
    let mut packet = begin(super::Little);
    packet.bytes(b"\x00\x07\x01hello\0");
    let trace = one_file(&metadata, packet.done());
    assert!(refused(trace.path()).contains("syntax error"));
    let text = ours(trace.path());
    assert!(text.contains("v = { 7 } }\n") && text.contains("v = { \"hello\" } }\n"), "{text}");
}
