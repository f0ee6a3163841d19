//! Hostile clients: junk, forged addresses, and clients that never validate their address.

use crate::udp::batch_client::BatchClient;
use crate::udp::legacy_client::{LegacyClient, SESSION_BEGIN, TRACE_BEGIN, number};
use crate::udp::served::{Served, options};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracepoint_wire::udp::{Accept, FromServer, ToClient, ToServer};

/// Invalid datagrams, and some valid commands.
fn junk() -> Vec<Vec<u8>> {
    let mut junk: Vec<Vec<u8>> = vec![vec![], vec![0], vec![3], vec![1, 1], vec![0xff; 65_000], b"tpu1".to_vec()];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for length in 1..200 {
        junk.push(
            (0..length % 80)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    seed as u8
                })
                .collect(),
        );
    }
    for message in [
        ToServer::Accept(Accept::new(7)),
        ToServer::Accept(Accept { token: [9; 16], ..Accept::new(0) }),
        ToServer::Leave(1),
        ToServer::Stop,
        ToServer::Start,
    ] {
        let mut out = Vec::new();
        message.encode(&mut out);
        junk.push(out);
    }
    junk
}

/// Sends all junk from a few sockets, and waits until it was received.
fn flood(served: &Served, rounds: u64) -> Vec<UdpSocket> {
    let sockets: Vec<_> = (0..20).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a socket")).collect();
    let junk = junk();
    for round in 0..rounds {
        for socket in &sockets {
            for datagrams in junk.chunks(20) {
                let before = served.stats().received;
                for datagram in datagrams {
                    let _ = socket.send_to(datagram, served.address());
                }
                // Not faster than they are read: datagrams that the kernel drops test nothing.
                if round == 0 {
                    served.until(|stats| stats.received >= before + datagrams.len() as u64);
                }
            }
        }
    }
    sockets
}

/// The datagrams and bytes that a socket has received.
fn received(socket: &UdpSocket) -> (usize, usize) {
    socket.set_nonblocking(true).expect("a flag");
    let mut buffer = [0; 2000];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok()).fold((0, 0), |(n, bytes), size| (n + 1, bytes + size))
}

#[test]
fn a_flood_does_not_disturb_a_session() {
    let mut served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    let strangers = flood(&served, 5);
    served.numbers(0, 0..10);
    for n in 0..10 {
        assert_eq!(client.event(), number(n), "and no gap in `seq`");
    }
    for stranger in strangers {
        assert_eq!(received(&stranger), (0, 0));
    }
    assert_eq!(served.stats().sessions, 1);
}

#[test]
fn a_flood_does_not_disturb_a_session_of_batches() {
    let mut served = Served::start(options());
    let mut client = BatchClient::new(served.address());
    client.begin(Accept::new(0));
    served.numbers(0, 0..10);
    client.until(|kept| kept.events == 10);
    flood(&served, 5);
    // Even from the client's own address.
    let leaves = |datagram: &[u8]| ToServer::decode(datagram) == Ok(ToServer::Leave(client.session));
    for datagram in junk().iter().filter(|datagram| !leaves(datagram)) {
        client.socket.send(datagram).expect("loopback");
    }
    served.numbers(0, 10..20);
    client.until(|kept| kept.events == 20);
    assert_eq!(served.stats().sessions, 1);
}

#[test]
fn no_address_is_sent_more_than_it_has_sent_before_it_is_validated() {
    // Handled like clients on another machine.
    let mut served = Served::start(options().trust_loopback(false));
    served.numbers(0, 0..10);
    let strangers: Vec<_> = (0..50).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a socket")).collect();
    for stranger in &strangers {
        for sent in 1..=40 {
            stranger.send_to(&[1], served.address()).expect("loopback");
            served.until(|stats| stats.received % 40 == sent % 40);
        }
        let (messages, bytes) = received(stranger);
        assert!(messages > 0 && bytes <= 40, "{messages} messages of {bytes} bytes in all");
    }
    let stats = served.stats();
    assert_eq!((stats.sessions, stats.legacy_events, stats.batch_events), (0, 0, 0), "nothing of the trace");
    assert!(stats.bytes <= 50 * 40);

    // A client that validates its address gets the trace from its beginning.
    let mut client = BatchClient::new(served.address());
    proven(&mut client);
    client.until(|kept| kept.events == 10);
    assert!(client.kept.welcome.is_some_and(|welcome| welcome.first && welcome.earlier == 0));
}

/// Returns a nonce and token for a client, which validate its address.
fn validated(client: &mut BatchClient) -> Accept {
    for _ in 0..9 {
        client.say(ToServer::Start);
    }
    let accept = Accept::new(client.offer());
    client.say(ToServer::Accept(accept));
    let token = client.next(|from| match from.message {
        ToClient::Challenge(challenge) => challenge.token,
        ref other => panic!("{other:?} instead of a challenge"),
    });
    Accept { token, ..accept }
}

/// Repeats unanswered commands until a session begins, for some seconds.
fn begin_patiently(client: &mut BatchClient) {
    client.socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let mut accept = None;
    for _ in 0..500 {
        match accept {
            Some(accept) => client.say(ToServer::Accept(accept)),
            None => (0..9).for_each(|_| client.say(ToServer::Start)),
        }
        let mut buffer = [0; 2000];
        while let Ok(size) = client.socket.recv(&mut buffer) {
            match FromServer::decode(&buffer[..size]).expect("a message of the protocol").message {
                ToClient::Mark(mark) => accept = accept.or(mark.offer.map(Accept::new)),
                ToClient::Challenge(challenge) => {
                    accept = accept.map(|accept| Accept { token: challenge.token, ..accept });
                    break;
                }
                ToClient::Welcome(_) => {
                    client.socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
                    return;
                }
                other => panic!("{other:?} before the session"),
            }
        }
    }
    panic!("not served");
}

#[test]
fn hosts_that_acknowledge_nothing_do_not_keep_a_client_out() {
    let mut served = Served::start(options().trust_loopback(false).client_timeout(Duration::MAX));
    served.numbers(0, 0..10);
    let mut hosts = [2, 3, 4].map(|host| BatchClient::at([127, 0, 0, host], served.address()));
    let accepts: Vec<_> = hosts.iter_mut().map(|host| ToServer::Accept(validated(host))).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in (0..3000).take_while(|_| !over.load(Ordering::Relaxed)) {
                hosts.iter().zip(&accepts).for_each(|(host, accept)| host.say(*accept));
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        // Each of them has one session, and cannot end another's again.
        served.until(|stats| stats.sessions == 3);
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(served.stats().sessions, 3);
        let mut client = BatchClient::new(served.address());
        begin_patiently(&mut client);
        client.until(|kept| kept.events == 10);
        assert!(client.kept.welcome.is_some_and(|welcome| welcome.first), "those hosts were told nothing");
        over.store(true, Ordering::Relaxed);
    });
}

/// Completes the validation of the client's address.
fn proven(client: &mut BatchClient) {
    for _ in 0..9 {
        client.say(ToServer::Start);
    }
    let accept = Accept::new(client.offer());
    // A client that has not received the server's messages makes no progress.
    for token in [[0; 16], [1; 16]] {
        client.say(ToServer::Accept(Accept { token, ..accept }));
    }
    let challenge = |from: &FromServer<'_>| match from.message {
        ToClient::Challenge(challenge) => challenge.token,
        ref other => panic!("{other:?} instead of a challenge"),
    };
    let token = client.next(challenge);
    assert_eq!(client.next(challenge), token);
    client.say(ToServer::Accept(Accept { token, ..accept }));
}

#[test]
fn a_token_is_invalid_from_another_address() {
    let served = Served::start(options().trust_loopback(false));
    let (mut first, mut second) = (BatchClient::new(served.address()), BatchClient::new(served.address()));
    // One after the other: both may have the same place in the table of received bytes.
    let offer = |client: &mut BatchClient| {
        (0..9).for_each(|_| client.say(ToServer::Start));
        Accept::new(client.offer())
    };
    let (accept, other) = (offer(&mut first), offer(&mut second));
    first.say(ToServer::Accept(accept));
    let token = first.next(|from| match from.message {
        ToClient::Challenge(challenge) => challenge.token,
        ref other => panic!("{other:?} instead of a challenge"),
    });
    second.say(ToServer::Accept(Accept { token, ..other }));
    second.next(|from| assert!(matches!(from.message, ToClient::Challenge(_)), "{from:?}"));
    assert_eq!(served.stats().sessions, 0);
}

#[test]
fn a_legacy_client_is_not_served_unless_its_address_is_allowed() {
    let mut served = Served::start(options().trust_loopback(false).offer_batches(false));
    let stranger = LegacyClient::new(served.address());
    for _ in 0..100 {
        stranger.start();
    }
    served.until(|stats| stats.refused == 100);
    assert_eq!((served.stats().messages, received(&stranger.socket)), (0, (0, 0)));

    let mut allowed = Served::start(options().trust_loopback(false).allow([127, 0, 0, 1].into()));
    let mut client = LegacyClient::new(allowed.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    allowed.numbers(0, [1]);
    assert_eq!(client.event(), number(1));
    served.end();
}

#[test]
fn a_port_in_use_is_an_error() {
    let served = Served::start(options());
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!(client.message(), SESSION_BEGIN);
    // Even while a session has another socket on that port.
    let error = tracepoint_sinks::udp::UdpServer::bind(options().address(served.address())).expect_err("taken");
    assert!(error.to_string().contains("another program listens there"), "{error}");
    client.socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    assert_eq!(client.message(), TRACE_BEGIN);
}
