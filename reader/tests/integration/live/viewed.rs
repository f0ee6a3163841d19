//! The view of a correct relay.

use super::model::Model;
use super::relay::{Random, Socket, attached, bytes_of, opening, stream, view_all};
use crate::hand::{Packet, one_event};
use crate::seed;
use std::cell::RefCell;
use tracepoint_reader::live::{LiveError, LiveOptions};
use tracepoint_reader::{Item, LossKind};
use tracepoint_wire::live::{
    AttachStatus, Index, IndexStatus, MetadataBytes, MetadataStatus, NewStreamsStatus, PacketBytes, PacketStatus,
    Request, SessionDetached, Streams,
};

/// The offset of the clock in the metadata.
const OFFSET: i64 = 1_700_000_000_000_000_000;

#[test]
fn every_event_is_shown_once_and_in_order() {
    for seed in seed::campaign(200) {
        let model = RefCell::new(Model::new(Random(seed)));
        let socket = Socket::new(|request| model.borrow_mut().answer(request));
        let (items, ended) = view_all(socket, &LiveOptions::default());
        let times = items.iter().map(|item| match item {
            Item::Event(event) => event.time_ns - OFFSET,
            other => panic!("seed {seed}: {other:?}"),
        });
        let expected: Vec<i64> = model.borrow().times.iter().map(|time| time.cast_signed()).collect();
        assert_eq!(times.collect::<Vec<_>>(), expected, "seed {seed}");
        assert!(matches!(ended, Ok(0)), "seed {seed}: {ended:?}");
    }
}

/// A relay with the metadata and one data stream, whose packets it delivers one after the other.
fn with_packets(packets: Vec<Vec<u8>>) -> impl FnMut(Request) -> Vec<u8> {
    let (mut packets, mut metadata, mut file) = (packets.into_iter(), Some(one_event("u8 x;")), Vec::new());
    let mut is_over = false;
    move |request| {
        if let Some(reply) = opening(request) {
            return reply;
        }
        bytes_of(|out| match request {
            Request::Attach { .. } => out.extend(attached(vec![stream(1, true), stream(2, false)])),
            Request::Metadata { .. } => match metadata.take() {
                Some(text) => MetadataBytes { status: MetadataStatus::Ok, bytes: text.as_bytes() }.encode(out),
                None => MetadataBytes::only(MetadataStatus::Nothing).encode(out),
            },
            Request::NewStreams { .. } => {
                let status = if is_over { NewStreamsStatus::Hup } else { NewStreamsStatus::Nothing };
                Streams::none(status).encode(out);
            }
            Request::NextIndex { .. } => {
                let Some(packet) = packets.next() else {
                    is_over = true;
                    return Index::only(IndexStatus::Hup).encode(out);
                };
                let (offset, packet_bits) = (file.len() as u64, packet.len() as u64 * 8);
                file.extend(packet);
                Index { offset, packet_bits, ..Index::only(IndexStatus::Ok) }.encode(out);
            }
            Request::Packet { offset, length, .. } => {
                let bytes = file.get(offset as usize..).unwrap_or_default();
                let bytes = &bytes[..bytes.len().min(length as usize)];
                PacketBytes { status: PacketStatus::Ok, flags: 0, bytes }.encode(out);
            }
            _ => SessionDetached(true).encode(out),
        })
    }
}

fn packet(number: u64, time: u64, discarded: u64) -> Vec<u8> {
    Packet { number, discarded, before: number, ..Packet::of(&[(0, time, &[7])]) }.bytes()
}

/// The times of events; losses and damage as texts.
fn shown(items: &[Item]) -> Vec<String> {
    let shown = items.iter().map(|item| match item {
        Item::Event(event) => (event.time_ns - OFFSET).to_string(),
        Item::Loss(loss) => match loss.kind {
            LossKind::Events(count) => format!("lost {count:?}"),
            LossKind::Packets { packets, events } => format!("lost {packets:?} with {events:?}"),
            _ => "lost".to_owned(),
        },
        Item::Damage(damage) => format!("damage in {}", damage.file.display()),
        _ => "other".to_owned(),
    });
    shown.collect()
}

#[test]
fn losses_are_shown_where_they_happened() {
    let packets = vec![packet(0, 10, 0), packet(3, 20, 0), packet(4, 30, 5)];
    let (items, ended) = view_all(Socket::new(with_packets(packets)), &LiveOptions::default());
    assert_eq!(shown(&items), ["10", "lost Some(2) with Some(2)", "20", "lost Some(5)", "30"]);
    assert!(ended.is_ok(), "{ended:?}");
}

#[test]
fn a_damaged_packet_is_left_out_and_the_next_is_shown() {
    let mut torn = packet(1, 20, 0);
    torn[0] ^= 1;
    let mut cut = packet(2, 30, 0);
    cut.truncate(100);
    let packets = vec![packet(0, 10, 0), torn, cut, packet(3, 40, 0), vec![0; 3]];
    let (items, ended) = view_all(Socket::new(with_packets(packets)), &LiveOptions::default());
    let damage = "damage in web/shop/channel0_2";
    // The packet without a magic is missing as well; the packet with a missing end has a number.
    assert_eq!(shown(&items), ["10", damage, "lost Some(1) with Some(1)", damage, "40", damage]);
    assert!(ended.is_ok(), "{ended:?}");
}

#[test]
fn time_never_goes_back() {
    let packets = vec![packet(0, 50, 0), packet(1, 40, 0), packet(2, 60, 0)];
    let (items, ended) = view_all(Socket::new(with_packets(packets)), &LiveOptions::default());
    assert_eq!(shown(&items), ["50", "60"]);
    assert!(matches!(ended, Ok(1)), "{ended:?}");
}

#[test]
fn sessions_that_cannot_be_viewed_are_named() {
    let refused =
        |request| opening(request).unwrap_or_else(|| bytes_of(|out| Streams::none(AttachStatus::NotLive).encode(out)));
    let (_, ended) = view_all(Socket::new(refused), &LiveOptions::default());
    let message = ended.unwrap_err().to_string();
    assert!(message.contains("`shop`") && message.contains("lttng create --live"), "{message}");

    let url = "net://relay/host/web/shopp".parse().unwrap();
    let socket = Socket::new(|request| opening(request).unwrap_or_default());
    let error = tracepoint_reader::live::LiveView::over(socket, &url, &LiveOptions::default()).map(drop).unwrap_err();
    assert!(matches!(&error, LiveError::NoSession { sessions, .. } if sessions == &["web/shop"]), "{error}");
}
