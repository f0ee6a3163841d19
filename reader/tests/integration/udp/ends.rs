//! Every session ends, with any loss and any peer.

use crate::udp::accounting::BatchAccounting;
use crate::udp::link::Faults;
use crate::udp::server::Plan;
use crate::udp::simulation::Simulation;
use std::num::NonZeroU64;
use std::time::Duration;
use tracepoint_reader::udp::{Client, Layout, LossReport, Options, Report, SessionEnd};
use tracepoint_wire::udp::{Batch, End, LegacyPacket, Mark, MarkKind, ToServer, Welcome};

const PLAN: Plan = Plan { trusted: true, offers: true, events: 400, rate: 1, ends: false, grows: 0 };
const NO_FAULTS: [Faults; 2] = [Faults::NONE; 2];
const NOTHING: Faults = Faults { loss: 1000, ..Faults::NONE };

/// Runs a client, with `answer` in place of the server, until it ends.
fn alone(mut client: Client, mut answer: impl FnMut(&[u8], Duration) -> Option<Vec<u8>>) -> (SessionEnd, Vec<Report>) {
    let mut now = Duration::ZERO;
    let mut reports = Vec::new();
    loop {
        reports.extend(std::iter::from_fn(|| client.report()));
        if let Some(ending) = client.ending() {
            return (ending, reports);
        }
        assert!(now < Duration::from_secs(300), "it hangs: {client:?}");
        let mut wakes = 0;
        while client.deadline().is_some_and(|deadline| deadline <= now) {
            client.wake(now);
            wakes += 1;
            assert!(wakes < 5, "it spins: {client:?}");
        }
        while let Some(datagram) = client.outgoing() {
            if let Some(answer) = answer(&datagram, now) {
                client.receive(&answer, now);
            }
        }
        now += Duration::from_millis(1);
    }
}

fn client(options: Options) -> Client {
    Client::new(options, Duration::ZERO)
}

#[test]
fn no_server_answers() {
    let (ending, reports) = alone(client(Options::default()), |_, _| None);
    assert_eq!((ending, reports.len()), (SessionEnd::NoServer { refused: false }, 0));
    let mut refused = client(Options::default());
    (0..3).for_each(|_| refused.refused(Duration::ZERO));
    assert_eq!(refused.ending(), Some(SessionEnd::NoServer { refused: true }));
}

#[test]
fn another_program_answers() {
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"", b"\0\0\0\0\x07", &[0; 1500]] {
        let (ending, reports) = alone(client(Options::default()), |_, _| Some(answer.to_vec()));
        assert_eq!((ending, reports.len()), (SessionEnd::Foreign, 0), "{answer:?}");
    }
}

#[test]
fn an_offer_without_a_welcome_times_out() {
    let begin = |seq, offer| Mark { offer, ..Mark::new(MarkKind::SessionBegin) }.encode(seq).to_vec();
    let (ending, _) = alone(client(Options::default()), |said, _| (said == [1]).then(|| begin(5, Some(9))));
    assert_eq!(ending, SessionEnd::NoServer { refused: false });
    // A server that sends events nevertheless is read as they arrive.
    let mut seq = 5;
    let (ending, reports) =
        alone(client(Options { idle: Duration::from_secs(1), ..Options::default() }), |said, now| {
            seq += 1;
            match said {
                [1] => Some(begin(seq, Some(9))),
                [2] => Some(Mark::new(MarkKind::SessionEnd).encode(seq).to_vec()),
                _ if now < Duration::from_secs(3) => {
                    let mut out = Vec::new();
                    LegacyPacket { time_ns: 1, content: b"x" }.encode(seq, &mut out).unwrap();
                    Some(out)
                }
                _ => {
                    seq -= 1;
                    None
                }
            }
        });
    assert_eq!(ending, SessionEnd::Ended);
    assert_eq!(reports.first(), Some(&Report::SessionBegin(Layout::Legacy)));
    assert!(reports.iter().any(|report| matches!(report, Report::Event(event) if event.content == b"x")));
}

#[test]
fn an_event_limit_ends_both_layouts() {
    for legacy in [true, false] {
        let options = Options { legacy, events_limit: NonZeroU64::new(100), ..Options::default() };
        let mut simulation = Simulation::new(4, options, PLAN, NO_FAULTS);
        assert_eq!(simulation.run(), SessionEnd::Ended);
        simulation.run_until_server_is_idle();
        assert!((100..400).contains(&simulation.client.counts().events));
        assert_eq!(simulation.client.counts().events, simulation.server.sent);
        let stops = simulation.reports.iter().filter(|report| **report == Report::StopSent).count();
        assert_eq!(stops, 1);
        assert_eq!(simulation.reports.last(), Some(&Report::SessionEnd));
    }
}

#[test]
fn a_silent_server_times_out_and_known_losses_are_reported() {
    let mut simulation = Simulation::new(5, Options::default(), PLAN, NO_FAULTS);
    while simulation.client.counts().events < 200 {
        simulation.step();
    }
    // The other events are lost, but not the messages that count them.
    simulation.back = crate::udp::link::Link::new(5, NOTHING);
    while simulation.server.sent < 400 {
        simulation.step();
    }
    simulation.back = crate::udp::link::Link::new(5, Faults::NONE);
    for _ in 0..1000 {
        simulation.step();
    }
    assert!(simulation.client.counts().lost_events > 0, "reported by a PING");
    simulation.back = crate::udp::link::Link::new(5, NOTHING);
    assert_eq!(simulation.run(), SessionEnd::Silent);
    let accounting = BatchAccounting::of(&simulation.server, &simulation.reports);
    assert_eq!(accounting.delivered + accounting.lost, 400);
}

#[test]
fn an_unbounded_gap_timeout_ends_with_the_session() {
    for legacy in [true, false] {
        let (idle, gap_timeout) = (Duration::MAX, Duration::MAX);
        // In the legacy layout the client waits for a missing message until the gap timeout.
        let loss = if legacy { 0 } else { 100 };
        let faults = [Faults::NONE, Faults { loss, ..Faults::NONE }];
        let options = Options { legacy, idle, gap_timeout, ..Options::default() };
        let mut simulation = Simulation::new(8, options, Plan { ends: true, ..PLAN }, faults);
        assert_eq!(simulation.run(), SessionEnd::Ended);
        assert_eq!(simulation.client.counts().any_lost(), !legacy);
    }
}

#[test]
fn an_unanswered_stop_times_out() {
    for legacy in [true, false] {
        let options = Options { legacy, events_limit: NonZeroU64::new(100), ..Options::default() };
        let mut simulation = Simulation::new(6, options, PLAN, NO_FAULTS);
        while simulation.client.counts().events < 90 {
            simulation.step();
        }
        simulation.there = crate::udp::link::Link::new(6, NOTHING);
        assert_eq!(simulation.run(), SessionEnd::Unconfirmed);
        // In the legacy layout the server learns it from the operating system, which is not simulated.
        if !legacy {
            simulation.run_until_server_is_idle_within(Duration::from_secs(20));
        }
    }
}

#[test]
fn an_idle_session_in_the_legacy_layout_is_ended() {
    let options = Options { legacy: true, idle: Duration::from_secs(2), ..Options::default() };
    let mut simulation = Simulation::new(7, options, Plan { events: 10, ..PLAN }, NO_FAULTS);
    assert_eq!(simulation.run(), SessionEnd::Ended);
    assert_eq!(simulation.client.counts().events, 10);
    assert!(simulation.now < Duration::from_secs(4));
}

#[test]
fn messages_after_the_end_are_not_awaited() {
    let mut seq = 10;
    let (ending, reports) = alone(client(Options::default()), |said, now| {
        seq += 1;
        let end = End { batches: 2, events: 7, ..End::default() };
        let late = Batch { events_before: 3, events: 4, number: 1, packets: &[] };
        match ToServer::decode(said).unwrap() {
            ToServer::Start => Some(Mark { offer: Some(1), ..Mark::new(MarkKind::SessionBegin) }.encode(seq).to_vec()),
            ToServer::Accept(_) => {
                let welcome = Welcome { first: false, mtu: 1400, timeout_ms: 5000, uuid: [7; 16], earlier: 0 };
                Some(welcome.encode(seq, 1).to_vec())
            }
            ToServer::Ack(_) if now < Duration::from_millis(10) => Some(end.encode(seq, 1).to_vec()),
            // One batch is permanently missing, and the one after it is repeated.
            ToServer::Ack(_) => {
                let mut out = Vec::new();
                late.encode(seq, 1, &mut out);
                Some(out)
            }
            _ => None,
        }
    });
    assert_eq!(ending, SessionEnd::Ended);
    assert!(reports.contains(&Report::Lost(LossReport::Events(3))), "{reports:?}");
    assert!(reports.iter().any(|report| matches!(report, Report::Batch(batch) if batch.events == 4)), "{reports:?}");
}

#[test]
fn a_message_reported_missing_is_dropped_when_it_arrives() {
    let options = Options { legacy: true, gap_timeout: Duration::from_millis(5), ..Options::default() };
    let mut client = client(options);
    let mut reports = Vec::new();
    let mut take = |client: &mut Client, seq: u32, ms: u64| {
        let mut out = Vec::new();
        LegacyPacket { time_ns: 1, content: b"x" }.encode(seq, &mut out).unwrap();
        client.receive(&out, Duration::from_millis(ms));
        client.wake(Duration::from_millis(ms));
        reports.extend(std::iter::from_fn(|| client.report()));
    };
    client.receive(&Mark::new(MarkKind::SessionBegin).encode(7), Duration::ZERO);
    take(&mut client, 9, 1);
    take(&mut client, 10, 7);
    take(&mut client, 8, 8);
    take(&mut client, 8, 9);
    let counts = client.counts();
    assert_eq!((counts.events, counts.lost_messages, counts.late_messages, counts.duplicates), (2, 1, 1, 1));
    assert!(reports.contains(&Report::Lost(LossReport::Messages { first: 8, count: 1 })));
    assert_eq!(reports.last(), Some(&Report::Late(1)), "reported when it arrives, once");
}
