//! The legacy layout: every path of the protocol, in the order of its description.

use crate::udp::Outcome;
use crate::udp::legacy_client::{LegacyClient, Message, SESSION_BEGIN, SESSION_END, TRACE_BEGIN, TRACE_END, number};
use crate::udp::served::{OFFSET, Served, options};
use std::time::Duration;
use tracepoint_ring::channel::StreamId;
use tracepoint_sinks::udp::LegacyContent;

#[test]
fn every_byte_of_a_session() {
    let mut served = Served::start(options().offer_batches(false));
    let mut client = LegacyClient::new(served.address());
    client.start();
    served.numbers(0, [0x00c0_ffee]);
    let time = OFFSET as u64 + 1001;
    let expected = [
        [0, 0, 0, 0, 2, 0, 0, 0, 3].to_vec(),
        [0, 0, 0, 1, 2, 0, 0, 0, 1].to_vec(),
        [&[0, 0, 0, 2, 1][..], &[0; 27], &time.to_be_bytes(), &[0; 24], &[0, 29], b"test:number: { n = 12648430 }"]
            .concat(),
        [0, 0, 0, 3, 2, 0, 0, 0, 2].to_vec(),
        [0, 0, 0, 4, 2, 0, 0, 0, 4].to_vec(),
    ];
    let mut expected = expected.into_iter();
    for message in expected.by_ref().take(3) {
        assert_eq!(client.datagram(), message);
    }
    served.end();
    for message in expected {
        assert_eq!(client.datagram(), message);
    }
}

#[test]
fn an_offer_changes_the_padding_of_the_first_mark_alone() {
    let served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    client.start();
    let first = client.datagram();
    assert_eq!((&first[..6], first[8], first.len()), (&[0, 0, 0, 0, 2, 0xb1][..], 3, 9));
    assert_eq!(client.datagram(), [0, 0, 0, 1, 2, 0, 0, 0, 1]);
}

#[test]
fn stop_ends_a_session_and_the_next_client_gets_the_rest() {
    let mut served = Served::start(options());
    served.numbers(0, 0..3);
    let mut first = LegacyClient::new(served.address());
    first.start();
    assert_eq!([first.message(), first.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    assert_eq!([first.event(), first.event(), first.event()], [number(0), number(1), number(2)]);
    first.stop();
    assert_eq!(first.message(), SESSION_END);
    served.numbers(0, 3..5);

    let mut second = LegacyClient::new(served.address());
    second.start();
    assert_eq!(second.message(), SESSION_BEGIN, "and no TRACE_BEGIN: somebody has read it before");
    assert_eq!(second.next_seq(), Some(first.next_seq().unwrap_or(0) + 1), "one counter for all");
    assert_eq!([second.event(), second.event()], [number(3), number(4)]);
    served.end();
    assert_eq!(second.rest(), [TRACE_END, SESSION_END]);
}

#[test]
fn unsent_events_of_a_packet_wait_for_the_next_client() {
    // Slow enough for STOP to arrive in the middle of a packet.
    let mut served = Served::start(options().rate(10_000));
    served.numbers(0, 0..200);
    let mut client = LegacyClient::new(served.address());
    let mut numbers = Vec::new();
    for session in 0.. {
        client.start();
        assert_eq!(client.message(), SESSION_BEGIN);
        let mut last = Message::Mark(0);
        while last != SESSION_END {
            last = client.message();
            if let Message::Packet { content, .. } = &last {
                numbers.push(String::from_utf8_lossy(content).into_owned());
                if numbers.len() % 50 == 1 || numbers.len() == 200 {
                    client.stop();
                }
            }
        }
        if numbers.len() == 200 {
            assert!(session > 1, "{session} sessions");
            break;
        }
    }
    assert_eq!(numbers, (0..200).map(number).collect::<Vec<_>>());
}

#[test]
fn a_second_client_is_ignored_while_one_is_served() {
    let mut served = Served::start(options());
    let (mut first, mut second) = (LegacyClient::new(served.address()), LegacyClient::new(served.address()));
    first.start();
    assert_eq!([first.message(), first.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    let ignored = served.stats().ignored;
    second.start();
    second.stop();
    served.until(|stats| stats.ignored == ignored + 2);
    served.numbers(0, [1]);
    assert_eq!(first.event(), number(1));
    first.stop();
    assert_eq!(first.message(), SESSION_END);
    second.start();
    assert_eq!(second.message(), SESSION_BEGIN);
    assert_eq!(second.next_seq(), first.next_seq().map(|seq| seq + 1), "it was sent nothing while it was ignored");
}

#[test]
fn a_repeated_start_begins_another_session() {
    let mut served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    served.numbers(0, [1]);
    assert_eq!(client.event(), number(1));
    client.start();
    assert_eq!(client.message(), SESSION_BEGIN);
    served.numbers(0, [2]);
    assert_eq!(client.event(), number(2));
    served.end();
    assert_eq!(client.rest(), [TRACE_END, SESSION_END]);
}

#[test]
fn waiting_events_are_sent_when_the_trace_ends() {
    let mut served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!(client.message(), SESSION_BEGIN);
    // The session is in its first 100 ms, so all events are sent at the end.
    served.numbers(0, 0..10);
    served.end();
    assert_eq!(client.message(), TRACE_BEGIN);
    assert_eq!((0..10).map(|_| client.event()).collect::<Vec<_>>(), (0..10).map(number).collect::<Vec<_>>());
    assert_eq!(client.rest(), [TRACE_END, SESSION_END]);
}

#[test]
fn an_empty_trace_is_served_and_commands_after_its_end_are_refused() {
    let mut served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!(client.message(), SESSION_BEGIN);
    served.end();
    assert_eq!(client.rest(), [TRACE_BEGIN, TRACE_END, SESSION_END]);
    client.start();
    let error = client.socket.recv(&mut [0; 16]).expect_err("the server has ended");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_trace_that_waits_for_its_reader_ends_with_it() {
    let mut served = Served::start(options().linger(Duration::MAX));
    served.numbers(0, [1]);
    served.server.end(None);
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!(client.message(), SESSION_BEGIN);
    assert_eq!((client.message(), client.event()), (TRACE_BEGIN, number(1)));
    assert_eq!(client.rest(), [TRACE_END, SESSION_END]);
    served.server.wait();
}

#[test]
fn an_event_that_does_not_fit_is_counted_and_the_session_goes_on() {
    let mut served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    // `test:text: { n = 1, text = "…" }`
    let frame = r#"test:text: { n = 1, text = "" }"#.len();
    served.text(0, 1, &"x".repeat(1500 - 66 - frame));
    served.text(0, 1, &"y".repeat(1500 - 66 - frame + 1));
    served.text(1, 1, &"z".repeat(20_000));
    served.numbers(0, [7]);
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    assert_eq!(client.event().len(), 1500 - 66);
    assert_eq!(client.event(), number(7), "and no gap in `seq`");
    served.end();
    assert_eq!(client.rest(), [TRACE_END, SESSION_END]);
    let lost = |instance| served.server.lost(StreamId { class: 0, instance });
    assert_eq!(lost(0).into_iter().collect::<Vec<_>>(), [("udp_too_large", 1)]);
    assert_eq!(lost(1).into_iter().collect::<Vec<_>>(), [("udp_too_large", 1)]);
}

#[test]
fn events_of_several_threads_come_in_the_order_of_time() {
    let mut served = Served::start(options());
    for n in 0..60 {
        served.numbers(u64::from(n % 3), [n]);
    }
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    for n in 0..60 {
        assert_eq!(client.event(), number(n));
    }
}

#[test]
fn events_are_sent_as_records_on_request() {
    let mut served = Served::start(options().content(LegacyContent::Record));
    served.numbers(0, [0x0102_0304]);
    served.text(0, 5, "text");
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    let time = |time: u64| OFFSET as u64 + time;
    let header = |time: u64, id: u64| (time << 16 | id).to_le_bytes();
    let first = [&header(1001, 0)[..], &[4, 3, 2, 1]].concat();
    assert_eq!(client.message(), Message::Packet { time: time(1001), content: first });
    let second = [&header(1002, 1)[..], &[5, 0, 0, 0], b"text\0"].concat();
    assert_eq!(client.message(), Message::Packet { time: time(1002), content: second });
}

#[test]
fn clients_of_the_batch_layout_are_served() -> Outcome {
    let mut served = Served::start(options().address("[::1]:0".parse()?));
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    served.numbers(0, [1]);
    assert_eq!(client.event(), number(1));
    Ok(())
}

/// All events wait already, and the client pauses, with the system's default receive buffer.
#[test]
fn a_client_that_pauses_loses_nothing_at_the_default_pace() {
    let mut served = Served::start(options());
    (0..40).for_each(|n| served.numbers(0, n * 100..n * 100 + 100));
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    for n in 0..4000 {
        if n % 100 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(client.event(), number(n));
    }
}

/// Sends START until the server answers.
fn start_until_served(client: &mut LegacyClient) -> Message {
    client.socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    loop {
        client.start();
        if client.socket.peek(&mut [0; 16]).is_ok() {
            client.socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            return client.message();
        }
    }
}

#[test]
fn a_client_that_is_gone_frees_the_server() {
    let mut served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    drop(client);
    // When the server sends something, the kernel reports the closed port.
    served.numbers(0, [1]);
    served.until(|stats| stats.legacy_events == 1);
    served.numbers(0, [2]);
    let mut next = LegacyClient::new(served.address());
    assert_eq!(start_until_served(&mut next), SESSION_BEGIN);
}

#[test]
fn idle_and_long_sessions_end() {
    for options in [options().idle(Duration::from_millis(150)), options().max_session(Duration::from_millis(150))] {
        let mut served = Served::start(options);
        let mut client = LegacyClient::new(served.address());
        client.start();
        assert_eq!(client.rest(), [SESSION_BEGIN, TRACE_BEGIN, SESSION_END]);
        served.numbers(0, [1]);
        client.start();
        assert_eq!((client.message(), client.event()), (SESSION_BEGIN, number(1)));
    }
}

#[test]
fn events_taken_by_an_aborted_session_are_counted() {
    for quit in [false, true] {
        let mut served = Served::start(options().legacy_rate(50_000).flush(Duration::from_millis(100)));
        let mut client = LegacyClient::new(served.address());
        client.start();
        assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
        for n in 0..100 {
            served.numbers(0, n * 100..n * 100 + 100);
        }
        assert_eq!(client.event(), number(0));
        if quit {
            served.server.quit();
        }
        served.end();
        let stats = served.stats();
        assert!(stats.lost > 0 && stats.legacy_events > 0);
        assert_eq!(stats.legacy_events + stats.lost, served.server.given());
        let rest = client.rest();
        assert_eq!(rest.last(), Some(&SESSION_END), "the client is notified");
    }
}
