//! Compares the reports of a client with the sent events.

use super::server::Server;
use super::trace;
use std::collections::BTreeSet;
use tracepoint_reader::udp::{BatchDecoder, Layout, LossReport, Report};
use tracepoint_wire::udp::packet_header;

/// The events that a client reported from sessions in the batch layout. Panics if they differ from the sent ones, or are out of order.
#[derive(Debug, Default)]
pub struct BatchAccounting {
    pub delivered: u64,
    pub lost: u64,
    pub late: u64,
}

impl BatchAccounting {
    pub fn of(server: &Server, reports: &[Report]) -> Self {
        let mut accounting = Self::default();
        // The number of the next event; not known before the first one of a session.
        let mut next: Option<u64> = None;
        let (mut lost_first, mut earlier) = (0, 0);
        let mut decoder = BatchDecoder::default();
        for report in reports {
            match report {
                Report::SessionBegin(Layout::Batch(welcome)) => {
                    assert_eq!(
                        accounting.delivered + accounting.lost,
                        welcome.earlier,
                        "the events of earlier sessions"
                    );
                    (next, lost_first, earlier) = (None, 0, welcome.earlier);
                    decoder = BatchDecoder::default();
                }
                Report::Metadata(text) => decoder.grow(text),
                Report::Batch(batch) => {
                    let count = decoder.events(batch, |_| (), |damage| panic!("{damage}"));
                    assert_eq!(
                        count.expect("metadata"),
                        u64::from(batch.events),
                        "each batch is described by the metadata before it"
                    );
                    let mut events = 0;
                    let mut rest = &batch.packets[..];
                    while !rest.is_empty() {
                        let size = packet_header(rest).unwrap().size() as usize;
                        for number in trace::numbers(&rest[..size]) {
                            let expected = next.unwrap_or_else(|| {
                                let base = number - lost_first;
                                assert!(server.bases.contains(&(earlier, base)), "the first event of a session");
                                number
                            });
                            assert_eq!(number, expected, "a wrong event, or one in the wrong place");
                            next = Some(number + 1);
                            events += 1;
                        }
                        rest = &rest[size..];
                    }
                    assert_eq!(events, batch.events);
                    accounting.delivered += u64::from(events);
                }
                Report::Lost(LossReport::Events(count)) => {
                    accounting.lost += count;
                    match &mut next {
                        Some(next) => *next += count,
                        None => lost_first += count,
                    }
                }
                Report::Lost(LossReport::BeforeOffer(count)) => accounting.lost += count,
                Report::Late(count) => accounting.late += count,
                Report::Event(_) => panic!("an event in the legacy layout, in a session in the batch layout"),
                _ => {}
            }
        }
        accounting
    }
}

/// Checks that each message of a session in the legacy layout, from the first that arrived to the last, was delivered or reported as lost.
pub fn check_legacy(server: &Server, reports: &[Report]) -> u64 {
    let sent: BTreeSet<(u32, bool)> = server.legacy_log.iter().copied().collect();
    let mut reported = BTreeSet::new();
    let mut last = None;
    let mut delivered = 0;
    for report in reports {
        match report {
            Report::Event(event) => {
                let after = last.is_none_or(|last: u32| event.seq.wrapping_sub(last).cast_signed() > 0);
                assert!(after, "an event in the wrong place");
                last = Some(event.seq);
                assert!(sent.contains(&(event.seq, true)), "an event that was never sent");
                reported.insert(event.seq);
                delivered += 1;
            }
            Report::Lost(LossReport::Messages { first, count }) => {
                (0..*count).for_each(|n| assert!(reported.insert(first.wrapping_add(n as u32)), "reported twice"));
            }
            _ => {}
        }
    }
    let (Some(first), Some(last)) = (
        server.legacy_log.iter().position(|(seq, _)| reported.contains(seq)),
        server.legacy_log.iter().rposition(|(seq, _)| reported.contains(seq)),
    ) else {
        return delivered;
    };
    for (seq, event) in &server.legacy_log[first..=last] {
        assert!(
            !event || reported.contains(seq),
            "the event in message {seq} was neither delivered nor reported as lost"
        );
    }
    delivered
}
