//! The batch layout: received events form a trace, and lost ones are counted.

use crate::udp::Outcome;
use crate::udp::batch_client::BatchClient;
use crate::udp::legacy_client::{LegacyClient, SESSION_BEGIN, number};
use crate::udp::served::{Served, UUID, metadata, options};
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;
use tracepoint_ring::channel::StreamId;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::udp::DropPolicy;
use tracepoint_wire::udp::{Accept, FromServer, Losses, MarkKind, ToClient, ToServer};

/// An ACCEPT with the default limits.
fn usual() -> Accept {
    Accept::new(0)
}

#[test]
fn the_order_of_a_session() {
    let mut served = Served::start(options());
    let mut client = BatchClient::new(served.address());
    served.numbers(0, 0..5);
    client.begin(usual());
    client.take();
    let welcome = client.kept.welcome.expect("the first message");
    assert_eq!((welcome.first, welcome.mtu, welcome.uuid, welcome.earlier), (true, 1400, UUID, 0));
    assert_eq!(welcome.timeout_ms, 5000);
    client.until(|kept| kept.metadata.len() == metadata().len());
    assert_eq!(client.kept.batches, 0, "no event before all that it needs is acknowledged");
    client.until(|kept| kept.events == 5);
    assert_eq!(String::from_utf8_lossy(&client.kept.metadata), metadata());
    served.server.end(None);
    let end = client.rest();
    assert!(end.trace);
    assert_eq!((end.batches, end.events, end.legacy, end.account), (1, 5, 0, 0));
    assert_eq!((end.metadata as usize, end.lost), (metadata().len(), Losses::default()));
    served.server.wait();
    assert_eq!(client.kept.numbers(), (0..5).collect::<Vec<_>>());
}

#[test]
fn a_client_gets_no_more_events_than_it_asks_for_and_the_next_one_the_others() {
    let mut served = Served::start(options());
    (0..10).for_each(|n| served.numbers(u64::from(n % 2), n * 100..n * 100 + 100));
    let mut numbers = Vec::new();
    for (most, batches) in [(1, 1), (7, 1), (350, 3)] {
        let mut client = BatchClient::new(served.address());
        client.begin(Accept { most_events: most, ..usual() });
        client.until(|kept| kept.events >= most);
        // The server counts its events, and sends no others.
        let ping = loop {
            match client.next(|from| if let ToClient::Ping(ping) = from.message { Some(ping) } else { None }) {
                Some(ping) => break ping,
                None => client.ack(),
            }
        };
        assert!(ping.events == most && ping.batches >= batches, "{ping:?}");
        client.say(ToServer::Leave(client.session));
        let end = client.rest();
        assert_eq!((client.kept.events, end.events, end.trace), (most, most, false));
        numbers.extend(client.kept.numbers());
    }
    let mut last = BatchClient::new(served.address());
    last.begin(usual());
    served.server.end(None);
    let end = last.rest();
    assert_eq!((end.events, end.trace), (1000 - 358, true));
    numbers.extend(last.kept.numbers());
    numbers.sort_unstable();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

#[test]
fn many_events_in_a_message_cut_between_records() {
    let mut served = Served::start(options());
    // Some packets are much longer than a message, some shorter than a header.
    for n in 0..20 {
        served.numbers(0, n * 1000..n * 1000 + 999);
        served.numbers(1, [n * 1000 + 999]);
        served.numbers(2, []);
    }
    for mtu in [512, 1400, 9000] {
        let mut client = BatchClient::new(served.address());
        // At most as many at once as the buffer of the client's socket holds.
        let accept = Accept { mtu, window: 8, ..usual() };
        client.begin(accept);
        let before = client.kept.events;
        client.until(|kept| kept.events >= 4000);
        client.say(ToServer::Leave(client.session));
        let end = client.rest();
        assert!(!end.trace);
        assert_eq!((end.events, u64::from(end.batches)), (client.kept.events - before, client.kept.batches));
        assert_eq!(client.kept.longest, usize::from(mtu).min(client.kept.longest), "no longer than asked for");
        assert!(client.kept.longest > usize::from(mtu) - 120, "and not much shorter");
        let numbers = client.kept.numbers();
        assert_eq!(numbers.len() as u64, client.kept.events);
        let first = client.kept.welcome.map_or(0, |welcome| welcome.earlier);
        assert_eq!(numbers, (first..first + end.events).collect::<Vec<_>>(), "each once, over all sessions");
        for pair in client.kept.packets.windows(2).filter(|pair| pair[0].0.stream == pair[1].0.stream) {
            assert!(pair[0].0.end <= pair[1].0.begin && pair[0].0.sequence < pair[1].0.sequence);
        }
    }
}

#[test]
fn events_of_lost_messages_are_counted_exactly() {
    let mut served = Served::start(options());
    for n in 0..50 {
        served.numbers(u64::from(n % 2), n * 100..n * 100 + 100);
    }
    let mut client = BatchClient::that_loses(served.address(), 3);
    client.begin(Accept { window: 8, ..usual() });
    let mut account = Account::new(UUID, "s".repeat(5000), 1);
    account.complete = true;
    served.server.end(Some(account.clone()));
    let end = client.rest();
    assert_eq!((end.trace, end.events, end.lost), (true, 5000, Losses::default()));
    assert_eq!(String::from_utf8_lossy(&client.kept.metadata), metadata(), "what repairs itself is whole");
    assert_eq!(client.kept.account, account.to_json());
    assert!(client.kept.batches < u64::from(end.batches) && client.kept.events < end.events);
    let arrived = client.kept.numbers();
    assert_eq!(arrived.len() as u64, client.kept.events);
    // Each stream counts missing events, except after its last packet.
    for instance in 0..2 {
        let mut records = 0;
        let mut gaps = 0;
        let packets: Vec<_> =
            client.kept.packets.iter().filter(|(header, _)| header.stream.instance == instance).collect();
        for (header, bytes) in &packets {
            gaps += header.events_before - records;
            records = header.events_before + (bytes.len() as u64 - 96) / 12;
        }
        let kept: u64 = packets.iter().map(|(_, bytes)| (bytes.len() as u64 - 96) / 12).sum();
        assert_eq!(kept + gaps, records);
    }
}

#[test]
fn an_event_longer_than_the_mtu_has_a_message_of_its_own() {
    let mut served = Served::start(options());
    served.numbers(0, [1]);
    served.text(0, 2, &"x".repeat(5000));
    served.text(0, 3, &"y".repeat(9000));
    served.numbers(0, [4]);
    let mut client = BatchClient::new(served.address());
    client.begin(Accept { largest: 8000, ..usual() });
    client.until(|kept| kept.events == 3);
    assert_eq!(client.kept.numbers(), [1, 2, 4]);
    assert_eq!(client.kept.longest, 32 + 96 + 12 + 5001);
    served.server.end(None);
    assert_eq!(client.rest().lost, Losses { too_large: 1, ..Losses::default() });
    let lost = served.server.lost(StreamId { class: 0, instance: 0 });
    assert_eq!(lost.into_iter().collect::<Vec<_>>(), [("udp_too_large", 1)]);
}

#[test]
fn malformed_packets_are_counted() {
    let mut served = Served::start(options());
    served.packet(0, &[(0, vec![1, 0, 0, 0]), (9, vec![]), (0, vec![2, 0, 0, 0])]);
    served.packet(0, &[(0, vec![3, 0])]);
    served.numbers(0, [4]);
    let mut client = BatchClient::new(served.address());
    client.begin(usual());
    client.until(|kept| kept.events == 2);
    assert_eq!(client.kept.numbers(), [1, 4]);
    served.server.end(None);
    assert_eq!(client.rest().lost, Losses { failed: 3, ..Losses::default() });
}

#[test]
fn later_events_are_described_before_they_are_sent() -> Outcome {
    let mut served = Served::start(options());
    let mut client = BatchClient::new(served.address());
    client.begin(usual());
    served.numbers(0, [1]);
    client.until(|kept| kept.events == 1);
    let more = metadata();
    let more = more[more.rfind("event {").ok_or("an event")?..]
        .replace("id = 1;", "id = 2;")
        .replace("test:text", "test:more");
    served.server.describe(&more)?;
    served.packet(0, &[(2, [&7u32.to_le_bytes()[..], b"seven\0"].concat())]);
    client.until(|kept| kept.events == 2);
    assert_eq!(client.kept.metadata.len(), metadata().len() + more.len());
    assert_eq!(client.kept.numbers(), [1, 7]);
    Ok(())
}

#[test]
fn no_event_overtakes_metadata_that_is_lost_and_sent_again() -> Outcome {
    let mut served = Served::start(options());
    let mut client = BatchClient::that_loses(served.address(), 3);
    client.begin(Accept { window: 8, ..usual() });
    let text = metadata();
    let event = &text[text.rfind("event {").ok_or("an event")?..];
    // No event needs the added metadata.
    for id in 2..12 {
        let long = format!("/* {} */ id = {id};", "x".repeat(3000));
        served.server.describe(&event.replace("id = 1;", &long).replace("test:text", &format!("test:more{id}")))?;
        served.numbers(0, id * 100..id * 100 + 50);
        client.take();
    }
    served.server.end(None);
    let end = client.rest();
    assert_eq!((end.events, end.metadata as usize), (500, client.kept.metadata.len()));
    Ok(())
}

#[test]
fn a_stopping_client_gets_the_rest_of_the_metadata() -> Outcome {
    let mut served = Served::start(options());
    let mut client = BatchClient::new(served.address());
    client.begin(usual());
    served.numbers(0, [1]);
    client.until(|kept| kept.events == 1);
    let text = metadata();
    let event = &text[text.rfind("event {").ok_or("an event")?..];
    served.server.describe(&event.replace("id = 1;", "id = 2;").replace("test:text", "test:more"))?;
    client.say(ToServer::Leave(client.session));
    let end = client.rest();
    assert_eq!(end.metadata as usize, client.kept.metadata.len());
    served.until(|stats| !stats.serving);
    // A client that acknowledges none of it still gets the totals.
    let mut client = client.anew();
    client.begin(usual());
    served.numbers(0, [2]);
    client.until(|kept| kept.events == 1);
    served.server.describe(&event.replace("id = 1;", "id = 3;").replace("test:text", "test:most"))?;
    client.say(ToServer::Leave(client.session));
    let ended = |from: &FromServer<'_>| matches!(from.message, ToClient::End(_));
    while !client.next(ended) {}
    Ok(())
}

#[test]
fn a_client_that_vanishes_frees_the_server() {
    let mut served = Served::start(options().client_timeout(Duration::from_millis(300)));
    let mut client = BatchClient::new(served.address());
    client.begin(usual());
    served.numbers(0, [1]);
    client.until(|kept| kept.events == 1);
    served.numbers(0, [2]);
    served.until(|stats| stats.batch_events == 2);
    // Its socket stays open, so that there is no ICMP error.
    let mut next = LegacyClient::new(served.address());
    next.socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    while next.socket.peek(&mut [0; 16]).is_err() {
        next.start();
    }
    assert_eq!(next.message(), SESSION_BEGIN);
    served.numbers(0, [3]);
    next.socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    assert_eq!(next.event(), number(3), "and no TRACE_BEGIN");
    let stats = served.stats();
    assert_eq!((stats.acknowledged, stats.unacknowledged), (0, 1), "of the session, and of those that are over");
}

#[test]
fn maximum_timeouts_never_expire() {
    let ever = Duration::MAX;
    let options = options().client_timeout(ever).flush(ever).linger(ever).idle(ever).max_session(ever).rate(u64::MAX);
    let mut served = Served::start(options);
    served.numbers(0, [1]);
    let mut client = BatchClient::new(served.address());
    client.begin(usual());
    client.until(|kept| kept.events == 1);
    assert_eq!(client.kept.welcome.map(|welcome| welcome.timeout_ms), Some(u32::MAX));
    served.server.end(None);
    assert_eq!(client.rest().events, 1);
    served.server.wait();
}

#[test]
fn an_icmp_error_does_not_end_a_session() {
    let mut served = Served::start(options());
    // The client reads every message, and may miss some while its socket is closed.
    let mut client = BatchClient::that_loses(served.address(), u32::MAX);
    client.begin(usual());
    served.numbers(0, [1]);
    client.until(|kept| kept.events == 1);
    let ours = client.socket.local_addr().expect("an address");
    client.socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    served.numbers(0, [2]);
    served.until(|stats| stats.batch_events == 2);
    client.socket = UdpSocket::bind(ours).expect("its port again");
    client.socket.connect(served.address()).expect("loopback");
    client.socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    client.ack();
    served.numbers(0, [3]);
    client.until(|kept| kept.events == 2);
    assert_eq!(client.kept.numbers(), [1, 3]);
    served.server.end(None);
    assert_eq!(client.rest().events, 3);
    served.server.wait();
    let stats = served.stats();
    assert_eq!((stats.sessions, stats.acknowledged, stats.unacknowledged), (1, 2, 0), "the client knows what it lost");
}

#[test]
fn spoofed_commands_do_not_disturb_a_session() {
    let mut served = Served::start(options());
    let mut client = BatchClient::new(served.address());
    client.begin(usual());
    served.numbers(0, [1]);
    client.until(|kept| kept.events == 1);
    let session = client.session;
    // An attacker with the client's forged address can send these, but knows neither the session number nor the offer.
    for _ in 0..20 {
        client.say(ToServer::Start);
        client.say(ToServer::Stop);
        client.say(ToServer::Leave(session.wrapping_add(1)));
    }
    // The answers are limited in rate, because they take numbers of the session.
    client.offer();
    served.numbers(0, [2]);
    client.until(|kept| kept.events == 2);
    assert_eq!(client.session, session);

    // The client itself knows the offer, and begins again.
    thread::sleep(Duration::from_millis(100));
    client.say(ToServer::Start);
    let nonce = client.offer();
    client.say(ToServer::Accept(Accept { nonce, ..usual() }));
    let mut again = client.anew();
    again.take();
    let welcome = again.kept.welcome.expect("another session");
    assert_eq!((welcome.first, welcome.earlier), (false, 2));
    assert_ne!(again.session, session);
    served.numbers(0, [3]);
    again.until(|kept| kept.events == 1);
    assert_eq!(again.kept.packets[0].0.events_before, 2);
}

#[test]
fn an_offer_is_taken_late() {
    let mut served = Served::start(options());
    served.numbers(0, [1, 2]);
    let mut client = BatchClient::new(served.address());
    client.say(ToServer::Start);
    let nonce = client.offer();
    // The ACCEPT is late: some events are sent in the legacy layout first.
    client.next(|from| assert!(matches!(from.message, ToClient::Mark(mark) if mark.kind == MarkKind::TraceBegin)));
    for _ in 0..2 {
        client.next(|from| assert!(matches!(from.message, ToClient::Packet(_)), "{from:?}"));
    }
    served.numbers(0, []);
    client.say(ToServer::Accept(Accept { nonce, ..usual() }));
    client.take();
    assert!(client.kept.welcome.is_some_and(|welcome| welcome.first && welcome.earlier == 0));
    served.numbers(0, [3]);
    client.until(|kept| kept.events == 1);
    served.server.end(None);
    let end = client.rest();
    assert_eq!((end.events, end.legacy), (1, 2));
}

/// The client has received no WELCOME, so it cannot know the session that the server has opened for it.
#[test]
fn a_session_that_no_acknowledgement_has_reached_passes_its_count_on() {
    let mut served = Served::start(options());
    served.numbers(0, 0..3);
    let mut client = BatchClient::new(served.address());
    client.say(ToServer::Start);
    let nonce = client.offer();
    // The ACCEPT is late, and each WELCOME gets lost.
    for _ in 0..4 {
        client.next(|_| ());
    }
    client.say(ToServer::Accept(Accept { nonce, ..usual() }));
    let lost = client.next(|from| {
        assert!(matches!(from.message, ToClient::Welcome(_)), "{from:?}");
        from.session
    });
    client.say(ToServer::Start);
    let offer = |from: &FromServer<'_>| if let ToClient::Mark(mark) = from.message { mark.offer } else { None };
    let nonce = loop {
        if let Some(nonce) = client.next(offer) {
            break nonce;
        }
    };
    client.say(ToServer::Accept(Accept { nonce, ..usual() }));
    while client.next(|from| from.session.is_none() || from.session == lost) {}
    client.until(|kept| !kept.metadata.is_empty());
    let welcome = client.kept.welcome.expect("it is repeated until it is acknowledged");
    assert_eq!((welcome.first, welcome.earlier), (true, 0));
    served.numbers(0, 3..5);
    served.server.end(None);
    let end = client.rest();
    assert_eq!((end.legacy, end.events), (3, 2));
}

#[test]
fn a_restarted_client_learns_how_much_was_sent_before() {
    let mut served = Served::start(options());
    served.numbers(0, 0..3);
    let mut client = BatchClient::new(served.address());
    client.say(ToServer::Start);
    served.until(|stats| stats.messages == 5);
    // The client may have received none of them.
    client.say(ToServer::Start);
    client.offer();
    for _ in 0..4 {
        client.next(|_| ());
    }
    let nonce = client.offer();
    client.say(ToServer::Accept(Accept { nonce, ..usual() }));
    client.until(|kept| !kept.metadata.is_empty());
    let welcome = client.kept.welcome.expect("the first message");
    assert_eq!((welcome.first, welcome.earlier), (true, 0));
    served.numbers(0, 3..5);
    served.server.end(None);
    let end = client.rest();
    assert_eq!((end.legacy, end.events), (3, 2));
}

#[test]
fn memory_is_bounded_and_every_event_accounted_for() {
    for drops in [DropPolicy::Oldest, DropPolicy::Newest] {
        let mut served = Served::start(options().limit(64 << 10).drops(drops));
        for n in 0..1000 {
            served.numbers(0, n * 100..n * 100 + 100);
            assert!(served.stats().waiting <= 64 << 10);
        }
        let mut client = BatchClient::new(served.address());
        client.begin(Accept { window: 8, ..usual() });
        served.server.end(None);
        let end = client.rest();
        assert_eq!(client.kept.events, end.events);
        assert!(end.lost.limit > 0 && end.lost.total() == end.lost.limit);
        assert_eq!(end.events + end.lost.limit, served.server.given());
        let numbers = client.kept.numbers();
        let kept = match drops {
            DropPolicy::Oldest => 100_000 - end.events..100_000,
            _ => 0..end.events,
        };
        assert_eq!(numbers, kept.collect::<Vec<_>>());
    }
}

#[test]
fn losses_by_the_rate_limit_are_counted_as_such() {
    let mut served = Served::start(options().limit(64 << 10).rate(100_000).flush(Duration::from_millis(500)));
    let mut client = BatchClient::new(served.address());
    client.begin(usual());
    served.numbers(0, [0]);
    client.until(|kept| kept.events == 1);
    for n in 0..1000 {
        served.numbers(0, n * 100..n * 100 + 100);
    }
    served.server.end(None);
    let end = client.rest();
    assert!(end.lost.rate > 0, "{:?}", end.lost);
    assert_eq!(end.events + end.lost.total(), served.server.given());
}
