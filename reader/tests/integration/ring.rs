//! Ring files read piece by piece: their contents are returned, and arbitrary bytes do no harm.

use crate::ring_file::{Shape, Tracer};
use tracepoint_reader::account::Policy;
use tracepoint_reader::internal::{RingPacket, Side, SubBuffer};
use tracepoint_reader::{ReadError, internal::Ring};

fn ring(tracer: &Tracer) -> Ring {
    Ring::from_bytes(tracer.bytes.clone()).unwrap().expect("it was begun")
}

fn places(ring: &Ring, side: Side) -> Vec<SubBuffer> {
    ring.sub_buffers(side, &ring.counters(side).unwrap()).map(Result::unwrap).collect()
}

fn packets(places: &[SubBuffer]) -> Vec<(u64, bool)> {
    let packet = |place: &SubBuffer| match place {
        SubBuffer::Packet(RingPacket { number, open, .. }) => Some((*number, *open)),
        _ => None,
    };
    places.iter().filter_map(packet).collect()
}

#[test]
fn the_header_identifies_its_owner() {
    let mut tracer = Tracer::new(Shape { overwrite: true, instance: 6, ..Shape::default() });
    tracer.fire(0);
    let ring = ring(&tracer);
    let identity = ring.identity();
    assert_eq!((identity.pid, identity.start, identity.boot), (4242, 777, [9; 16]));
    assert_eq!((identity.executable.to_str(), identity.host.as_str()), (Some("/bin/prog"), "box"));
    assert_eq!((identity.session.as_str(), identity.channel.as_str()), ("shop", "channel0"));
    assert_eq!(identity.metadata.to_str(), Some("/somewhere/metadata"));
    assert_eq!((ring.uuid(), ring.class(), ring.policy()), (crate::hand::UUID, 0, Policy::Overwrite));
    assert_eq!((ring.instance(Side::Main), ring.instance(Side::Nested)), (6, 7));
    assert_eq!((ring.opened(), ring.is_ringless()), (crate::ring_file::OPENED, false));
    assert_eq!(ring.path().to_str(), Some("ring"));
    let counters = ring.counters(Side::Main).unwrap();
    assert_eq!((counters.records, counters.closed, counters.discarded), (1, 0, 0));
    let account = ring.account().unwrap();
    assert_eq!((account.len(), account[0].fired, account[0].recorded, account[1].fired), (2, 1, 1, 0));
}

#[test]
fn packets_are_read_in_order() {
    let mut tracer = Tracer::new(Shape { overwrite: true, ..Shape::default() });
    assert_eq!(places(&ring(&tracer), Side::Main), [const { SubBuffer::Unused }; 4]);
    for _ in 0..200 {
        tracer.fire(30);
        let ring = ring(&tracer);
        let closed = ring.counters(Side::Main).unwrap().closed;
        let oldest = (closed + 1).saturating_sub(4);
        let expected: Vec<_> = (oldest..=closed).map(|number| (number, number == closed)).collect();
        let places = places(&ring, Side::Main);
        assert_eq!((places.len(), packets(&places)), (4, expected));
    }
    tracer.flush();
    let closed = ring(&tracer).counters(Side::Main).unwrap().closed;
    let expected: Vec<_> = (closed - 4..closed).map(|number| (number, false)).collect();
    assert_eq!(packets(&places(&ring(&tracer), Side::Main)), expected, "the oldest is there until it is overwritten");
}

#[test]
fn an_unfinished_header_is_not_a_ring() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.put(0, &[0; 8]);
    assert!(Ring::from_bytes(tracer.bytes).unwrap().is_none());
    assert!(Ring::from_bytes(Vec::new()).unwrap().is_none());
}

#[test]
fn errors_name_the_file() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("0-0.ring");
    let error = Ring::open(&path).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }) && error.to_string().contains("0-0.ring"), "{error}");
    assert!(matches!(Ring::open(place.path()), Err(ReadError::Io { .. })), "a directory");
    std::fs::write(&path, [1; 100]).unwrap();
    let error = Ring::open(&path).unwrap_err();
    assert!(matches!(error, ReadError::Ring { offset: 0, .. }) && error.to_string().contains("0-0.ring"), "{error}");
}

/// A file that is truncated after it was opened.
#[test]
fn a_ring_truncated_while_it_is_read_is_an_error() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(20));
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("0-0.ring");
    for length in (0..tracer.bytes.len() as u64).step_by(501) {
        std::fs::write(&path, &tracer.bytes).unwrap();
        let ring = Ring::open(&path).unwrap().unwrap();
        let counters = ring.counters(Side::Main).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let mut failed = ring.counters(Side::Nested).is_err() || ring.account().is_err();
        for side in Side::ALL {
            for place in ring.sub_buffers(side, &counters) {
                let Err(error) = place else { continue };
                assert!(error.to_string().contains("it was cut short"), "{error}");
                failed = true;
            }
        }
        // The last place is not read beyond its header.
        assert!(failed || length > 12_800, "cut to {length}");
    }
}

#[test]
fn rings_truncated_and_changed_anywhere() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(20));
    let look = |bytes: Vec<u8>| {
        if let Ok(Some(ring)) = Ring::from_bytes(bytes) {
            let _ = ring.account();
            for side in Side::ALL {
                let counters = ring.counters(side).unwrap_or_default();
                assert!(ring.sub_buffers(side, &counters).count() <= 4);
            }
        }
    };
    for length in 0..tracer.bytes.len() {
        if length % 7 == 0 || length < 4200 {
            look(tracer.bytes[..length].to_vec());
        }
    }
    let fields = (0..160).chain(320..472).chain([1088, 2112, 2368, 2624, 3648]);
    for at in fields {
        for byte in [0, 1, 7, 8, 0x7F, 0x80, 0xFF] {
            let mut bytes = tracer.bytes.clone();
            bytes[at] = byte;
            // More places with the same bytes would only be slow.
            if (112..120).contains(&at)
                || (136..144).contains(&at)
                || (104..112).contains(&at)
                || (128..136).contains(&at)
            {
                let _ = Ring::from_bytes(bytes);
            } else {
                look(bytes);
            }
        }
    }
}
