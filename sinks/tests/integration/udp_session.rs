//! The sink serves events of this program to a client, with their account.

use crate::common::{Outcome, Recording, alone};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::account::Account;
use tracepoint_sinks::udp::{UdpOptions, UdpSink};
use tracepoint_wire::udp::{Accept, Ack, FromServer, TextKind, ToClient, ToServer};

tracepoint::define_trace! {
    provider = "test";
    pub number(n: u64) { n: u64 = n }
}

fn options() -> UdpOptions {
    UdpOptions::default().address(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// Runs a client that keeps up and acknowledges every message. Returns the number of events, and the account.
fn read(server: SocketAddr) -> (u64, Account) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(server).expect("loopback");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let say = |message: ToServer| {
        let mut out = Vec::new();
        message.encode(&mut out);
        socket.send(&out).expect("a datagram");
    };
    let mut ack = Ack::default();
    let mut account = Vec::new();
    let mut buffer = vec![0; 65_536];
    say(ToServer::Start);
    while !ack.ended {
        let size = socket.recv(&mut buffer).expect("a message");
        let from = FromServer::decode(&buffer[..size]).expect("of the protocol");
        (ack.session, ack.seq) = (from.session.unwrap_or(0), from.seq);
        match from.message {
            ToClient::Mark(mark) => {
                if let Some(nonce) = mark.offer {
                    say(ToServer::Accept(Accept { window: 16, ..Accept::new(nonce) }));
                }
                continue;
            }
            ToClient::Text(text) if text.kind == TextKind::Account && text.offset as usize == account.len() => {
                account.extend_from_slice(text.bytes);
                ack.account = account.len() as u32;
            }
            ToClient::Text(text) if text.kind == TextKind::Metadata && text.offset == ack.metadata => {
                ack.metadata += text.bytes.len() as u32;
            }
            ToClient::Batch(batch) => ack.events += u64::from(batch.events),
            ToClient::End(_) => ack.ended = true,
            _ => {}
        }
        say(ToServer::Ack(ack));
    }
    (ack.events, Account::parse(&account).expect("an account"))
}

/// Events recorded before are missing in the client's copy, and are not losses of the sink.
#[test]
fn a_sink_that_is_added_later_serves_the_rest() -> Outcome {
    let _alone = alone();
    let mut recording = Recording::start(Channel::discard(1 << 20), Vec::new())?;
    (0..100).for_each(|n| tracepoint::trace!(number(n)));
    recording.drain.flush(Duration::ZERO);
    recording.drain.drain();
    let sink = UdpSink::bind(options())?;
    let (address, watch) = (sink.address(), sink.watch());
    recording.drain.add_sink(Box::new(sink))?;
    (100..150).for_each(|n| tracepoint::trace!(number(n)));
    let reader = std::thread::spawn(move || read(address));
    while !watch.stats().serving {
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = recording.finish().remove(0);
    let (events, account) = reader.join().map_err(|_| "the client failed")?;
    assert_eq!(events, 50);
    let own = &report.account.channels[0].streams[0];
    assert_eq!((own.recorded, own.before.recorded, own.written, own.sink), (150, 100, 150, 0));
    let copy = &account.channels[0].streams[0];
    assert_eq!((copy.recorded, copy.before.recorded, copy.written, copy.sink), (150, 0, 50, 100));
    assert_eq!((copy.sink_lost["udp_not_here"], account.chunk), (100, None));
    Ok(())
}

#[test]
fn served_and_lost_events_add_up() -> Outcome {
    let _alone = alone();
    let sink = UdpSink::bind(options().limit(64 << 10))?;
    let (address, watch) = (sink.address(), sink.watch());
    let mut recording = Recording::start(Channel::discard(4 << 20).packets(256), vec![Box::new(sink)])?;
    // Without a client, events beyond the limit are dropped, and the drain does not wait.
    for round in 0..20 {
        (0..5000).for_each(|n| tracepoint::trace!(number(round * 5000 + n)));
        recording.drain.flush(Duration::ZERO);
        recording.drain.drain();
        assert!(watch.stats().waiting <= 64 << 10);
    }
    let reader = std::thread::spawn(move || read(address));
    while watch.stats().batch_events == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = recording.finish().remove(0);
    let (events, account) = reader.join().map_err(|_| "the client failed")?;
    assert!(report.error.is_none(), "a loss is no failure: {:?}", report.error);

    let channel = &report.account.channels[0];
    let sum = |of: fn(&tracepoint_sinks::account::StreamAccount) -> u64| channel.streams.iter().map(of).sum::<u64>();
    let recorded = sum(|stream| stream.recorded);
    assert_eq!(recorded, channel.events[0].recorded);
    assert_eq!((recorded + sum(|stream| stream.discarded), channel.events[0].fired), (100_000, 100_000));
    assert_eq!(sum(|stream| stream.written), events);
    assert_eq!(sum(|stream| stream.written + stream.sink), recorded);
    assert!(sum(|stream| stream.sink) > 0);
    assert_eq!(sum(|stream| stream.sink), sum(|stream| stream.sink_lost.values().sum()));
    // The client's copy was written before the last loss was known, and agrees with the events that it got.
    assert_eq!(account.trace_uuid, report.account.trace_uuid);
    assert_eq!(account.channels[0].events, channel.events);
    Ok(())
}
