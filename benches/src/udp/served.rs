//! The server: packets as drained from a ring, sent to a client that accepts the offer and then does not read.

use crate::{Outcome, Spent};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint::find;
use tracepoint_ring::channel::{PacketHeader, Policy, StreamId, StreamKey};
use tracepoint_sinks::udp::{Packet, UdpOptions, UdpServer};
use tracepoint_sinks::{ChannelDescription, ClockInfo, EventDescription, ProcessInfo, TraceInfo, ctf};
use tracepoint_wire::udp::{Accept, Ack, FromServer, TextKind, ToClient, ToServer};

// The workload is `bench:small`, 24 bytes with the header word.
use tracepoint_benches as _;

/// Total number of packet bytes.
pub(crate) const TOTAL: usize = 128 << 20;
const PACKET: usize = 128 << 10;
const RECORD: usize = 24;
/// Maximum number of waiting packet bytes when memory is measured.
const LIMIT: usize = 16 << 20;

/// The amount of data that was sent, and the duration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) events: u64,
    pub(crate) datagrams: u32,
    pub(crate) bytes: u64,
    pub(crate) spent: Spent,
}

fn server(limit: usize) -> Outcome<UdpServer> {
    let marker = find("bench:small")?.marker().ok_or("bench:small has fields")?;
    let channel = ChannelDescription {
        class: 0,
        name: "channel0".to_owned(),
        policy: Policy::Discard,
        packet_size: 1 << 20,
        context: Vec::new(),
    };
    let event = EventDescription {
        class: 0,
        id: 0,
        name: marker.full_name(),
        level: marker.level(),
        fields: marker.fields(),
        doc: marker.doc(),
        format: marker.format(),
    };
    let process = ProcessInfo::default();
    let trace = TraceInfo { uuid: [9; 16], name: "bench".to_owned(), clock: ClockInfo::default(), process };
    let options = UdpOptions::default().address(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).limit(limit);
    let mut server = UdpServer::bind(options)?;
    server.describe(&ctf::metadata(&trace, &[channel], &[event]))?;
    server.start(Box::new(|| 0))?;
    Ok(server)
}

/// A full packet of events, the `n`th of its stream.
fn packet(n: u64) -> Packet {
    let events = ((PACKET - 96) / RECORD) as u64;
    let first = n * events;
    let size = 96 + events as usize * RECORD;
    let stream = StreamKey { uuid: [9; 16], class: 0, instance: 0 };
    let header = PacketHeader {
        end: first + events,
        events_before: first,
        ..PacketHeader::empty(stream, first).with_size(size)
    };
    let mut bytes = header.bytes().to_vec();
    for time in first..first + events {
        bytes.extend_from_slice(&(time << 16).to_le_bytes());
        bytes.resize(bytes.len() + RECORD - 8, 0x5a);
    }
    Packet { stream: StreamId { class: 0, instance: 0 }, bytes, events }
}

/// Serves all packets once.
pub(crate) fn send(mtu: u16) -> Outcome<Sent> {
    let server = server(2 * TOTAL)?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    client.connect(server.address())?;
    let session = open(&client, mtu)?;
    // Until these arrive, the server has nothing to send, and it takes each immediately, so they are all queued at once.
    let packets: Vec<_> = (0..(TOTAL / PACKET) as u64).map(packet).collect();
    let events: u64 = packets.iter().map(|packet| packet.events).sum();
    let before = server.stats();
    let begun = Spent::begin();
    for packet in packets {
        server.push(packet);
    }
    let mut acked = Instant::now();
    while server.stats().batch_events < events {
        thread::sleep(Duration::from_millis(1));
        if acked.elapsed() > Duration::from_secs(1) {
            say(&client, ToServer::Ack(session))?;
            acked = Instant::now();
        }
    }
    let spent = begun.end();
    let stats = server.stats();
    let datagrams = u32::try_from(stats.messages - before.messages)?;
    Ok(Sent { events, datagrams, bytes: stats.bytes - before.bytes, spent })
}

/// The largest number of waiting bytes while far more were given to a server without a client.
pub(crate) fn waiting() -> Outcome<u64> {
    let server = server(LIMIT)?;
    let mut most = 0;
    for n in 0..(TOTAL / PACKET) as u64 {
        server.push(packet(n));
        most = most.max(server.stats().waiting);
    }
    Ok(most)
}

fn say(client: &UdpSocket, message: ToServer) -> Outcome {
    let mut out = Vec::new();
    message.encode(&mut out);
    client.send(&out)?;
    Ok(())
}

/// Opens a session of batches, up to the point where only events are missing.
fn open(client: &UdpSocket, mtu: u16) -> Outcome<Ack> {
    client.set_read_timeout(Some(Duration::from_secs(10)))?;
    say(client, ToServer::Start)?;
    let mut ack = Ack::default();
    let mut total = None;
    let mut buffer = vec![0; 65_536];
    while total != Some(ack.metadata) {
        let size = client.recv(&mut buffer)?;
        let from = FromServer::decode(&buffer[..size])?;
        match from.message {
            ToClient::Mark(mark) => {
                let nonce = mark.offer.ok_or("no offer")?;
                say(client, ToServer::Accept(Accept { mtu, ..Accept::new(nonce) }))?;
                continue;
            }
            ToClient::Text(text) if text.kind == TextKind::Metadata && text.offset == ack.metadata => {
                ack.metadata += u32::try_from(text.bytes.len())?;
                total = Some(text.total);
            }
            _ => {}
        }
        (ack.session, ack.seq) = (from.session.unwrap_or(0), from.seq);
        say(client, ToServer::Ack(ack))?;
    }
    Ok(ack)
}
