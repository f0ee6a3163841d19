//! The original server, which writes packet numbers with a 16-bit swap and sends from a second socket, against the client alone.

use std::time::Duration;
use tracepoint_reader::udp::{Client, LossReport, Options, Report};
use tracepoint_wire::udp::{LegacyPacket, Mark, MarkKind};

/// The port of its second socket.
const SECOND: u16 = 40_000;

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn mark(seq: u32, kind: MarkKind) -> Vec<u8> {
    Mark::new(kind).encode(seq).to_vec()
}

/// A packet in the form of the original server.
fn packet(seq: u32) -> Vec<u8> {
    let mut out = Vec::new();
    LegacyPacket { time_ns: 0, content: &seq.to_be_bytes() }.encode(seq << 16, &mut out).unwrap();
    out
}

/// Passes the messages with these numbers to a client, the first and the last as marks. Returns the numbers that it reports as events, and
/// the number of messages that it reports as lost.
fn session(numbers: &[u32]) -> (Vec<u32>, u64) {
    let mut client = Client::new(Options::default(), at(0));
    let [first, middle @ .., last] = numbers else { panic!("too few") };
    client.receive_aside(SECOND, &mark(*first, MarkKind::SessionBegin), at(1));
    for seq in middle {
        client.receive_aside(SECOND, &packet(*seq), at(2));
    }
    client.wake(at(1500));
    client.receive_aside(SECOND, &mark(*last, MarkKind::SessionEnd), at(1500));
    client.wake(at(2500));
    assert!(client.ending().is_some(), "{client:?}");
    let (mut seen, mut missing) = (Vec::new(), 0);
    while let Some(report) = client.report() {
        match report {
            Report::Event(event) => {
                assert_eq!(event.content, event.seq.to_be_bytes());
                seen.push(event.seq);
            }
            Report::Lost(LossReport::Messages { count, .. }) => missing += count,
            Report::Lost(other) => panic!("{other:?}"),
            _ => {}
        }
    }
    (seen, missing)
}

#[test]
fn swapped_numbers_are_recognised_wherever_a_session_begins() {
    for first in [0, 1, 0xffff, 0x1_0000, 0x1_1170, 0xfffe_fff0, 0xffff_fffe] {
        let number = |n: u32| u32::wrapping_add(first, n);
        let all: Vec<_> = (0..40).map(number).collect();
        assert_eq!(session(&all), (all[1..39].to_vec(), 0), "from {first:x}");
        let some = [0, 3, 1, 7, 9].map(number);
        let kept = [1, 3, 7].map(number);
        assert_eq!(session(&some), (kept.to_vec(), 5), "from {first:x}");
    }
}

#[test]
fn a_session_of_the_original_may_begin_with_a_loss() {
    let mut client = Client::new(Options::default(), at(0));
    for seq in 5..9 {
        client.receive_aside(SECOND, &packet(seq), at(1));
    }
    client.wake(at(1500));
    client.receive_aside(SECOND, &mark(9, MarkKind::SessionEnd), at(1500));
    client.wake(at(1500));
    let reports: Vec<_> = std::iter::from_fn(|| client.report()).collect();
    let events: Vec<_> = reports
        .iter()
        .filter_map(|report| if let Report::Event(event) = report { Some(event.seq) } else { None })
        .collect();
    assert_eq!(events, [5, 6, 7, 8]);
    let losses: Vec<_> = reports.iter().filter(|report| matches!(report, Report::Lost(_))).collect();
    assert_eq!(losses, [&Report::Lost(LossReport::Beginning)]);
}

#[test]
fn one_second_socket_is_taken_until_the_server_speaks() {
    let mut client = Client::new(Options::default(), at(0));
    client.receive_aside(SECOND, &mark(0, MarkKind::SessionBegin), at(1));
    client.receive_aside(SECOND + 1, &mark(1, MarkKind::SessionEnd), at(1));
    assert_eq!(client.counts().foreign, 1);
    // An answer comes from the port that START went to: the first one was not from the server.
    client.receive(&mark(70, MarkKind::SessionBegin), at(2));
    client.receive_aside(SECOND, &packet(1), at(3));
    client.receive(&mark(71, MarkKind::SessionEnd), at(4));
    assert_eq!(client.counts().foreign, 2);
    let reports: Vec<_> = std::iter::from_fn(|| client.report()).collect();
    assert!(matches!(reports[..], [Report::SessionBegin(_), Report::SessionEnd]), "{reports:?}");
}
