//! A client of the batch layout that keeps and acknowledges received messages.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::account::ACCOUNT_PATH;
use tracepoint_wire::PacketHeader;
use tracepoint_wire::udp::{Accept, Ack, End, FromServer, MarkKind, TextKind, ToClient, ToServer, Welcome};

/// The data that a client has received.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) welcome: Option<Welcome>,
    pub(crate) metadata: Vec<u8>,
    pub(crate) account: Vec<u8>,
    pub(crate) packets: Vec<(PacketHeader, Vec<u8>)>,
    pub(crate) events: u64,
    pub(crate) batches: u64,
    pub(crate) longest: usize,
    pub(crate) end: Option<End>,
}

pub(crate) struct BatchClient {
    pub(crate) socket: UdpSocket,
    pub(crate) session: u32,
    pub(crate) kept: Kept,
    seq: u32,
    /// The length of the metadata that was announced.
    described: u32,
    /// Every such message is dropped.
    loses: Option<u32>,
    received: u32,
}

impl BatchClient {
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self::at([127, 0, 0, 1], server)
    }

    /// A client with this address.
    pub(crate) fn at(address: [u8; 4], server: SocketAddr) -> Self {
        let socket = UdpSocket::bind((IpAddr::from(address), 0)).expect("a socket");
        socket.connect(server).expect("loopback");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Self { socket, session: 0, kept: Kept::default(), seq: 0, described: 0, loses: None, received: 0 }
    }

    /// A client that drops every `n`th message of the batch layout.
    pub(crate) fn that_loses(server: SocketAddr, n: u32) -> Self {
        Self { loses: Some(n), ..Self::new(server) }
    }

    /// A new client with the same socket.
    pub(crate) fn anew(self) -> Self {
        Self { session: 0, kept: Kept::default(), seq: 0, described: 0, loses: None, received: 0, socket: self.socket }
    }

    pub(crate) fn say(&self, message: ToServer) {
        let mut out = Vec::new();
        message.encode(&mut out);
        self.socket.send(&out).expect("a datagram can be sent");
    }

    /// Calls `see` with the next message.
    pub(crate) fn next<R>(&mut self, see: impl FnOnce(&FromServer<'_>) -> R) -> R {
        let mut buffer = vec![0; 65_536];
        let size = self.socket.recv(&mut buffer).expect("a message");
        self.kept.longest = self.kept.longest.max(size);
        see(&FromServer::decode(&buffer[..size]).expect("a message of the protocol"))
    }

    /// The nonce of the next message, which begins the session, with an offer.
    pub(crate) fn offer(&mut self) -> u16 {
        self.next(|from| match from.message {
            ToClient::Mark(mark) if mark.kind == MarkKind::SessionBegin => mark.offer.expect("an offer"),
            ref other => panic!("{other:?} instead of an offer"),
        })
    }

    /// Sends START, and ACCEPT with these limits.
    pub(crate) fn begin(&mut self, limits: Accept) {
        self.say(ToServer::Start);
        let nonce = self.offer();
        self.say(ToServer::Accept(Accept { nonce, ..limits }));
    }

    pub(crate) fn ack(&self) {
        self.say(ToServer::Ack(Ack {
            session: self.session,
            metadata: self.kept.metadata.len() as u32,
            account: self.kept.account.len() as u32,
            events: self.kept.events,
            seq: self.seq,
            ended: self.kept.end.is_some(),
        }));
    }

    /// Receives a message, keeps its content, and acknowledges it.
    pub(crate) fn take(&mut self) {
        let mut buffer = vec![0; 65_536];
        let size = self.socket.recv(&mut buffer).expect("a message");
        let from = FromServer::decode(&buffer[..size]).expect("a message of the protocol");
        self.received += 1;
        // Independent of the message numbers.
        let chance = self.received.wrapping_mul(2_654_435_761) >> 8;
        if self.loses.is_some_and(|n| chance % n == 1) {
            return;
        }
        let Some(session) = from.session else { return };
        assert!(self.session == 0 || self.session == session);
        self.session = session;
        self.seq = from.seq;
        let kept = &mut self.kept;
        kept.longest = kept.longest.max(size);
        match from.message {
            ToClient::Welcome(welcome) => kept.welcome = Some(welcome),
            ToClient::Text(text) => {
                if text.kind == TextKind::Metadata {
                    self.described = text.total;
                }
                let whole = if text.kind == TextKind::Metadata { &mut kept.metadata } else { &mut kept.account };
                if text.offset as usize == whole.len() {
                    whole.extend_from_slice(text.bytes);
                }
            }
            ToClient::Batch(batch) => {
                assert_eq!(
                    kept.metadata.len(),
                    self.described as usize,
                    "no events while a part of the metadata is missing"
                );
                if self.loses.is_none() {
                    assert_eq!((batch.events_before, u64::from(batch.number)), (kept.events, kept.batches));
                }
                kept.events += u64::from(batch.events);
                kept.batches += 1;
                for packet in batch.packets() {
                    let (header, bytes) = packet.expect("a packet");
                    kept.packets.push((header, bytes.to_vec()));
                }
            }
            ToClient::End(end) => kept.end = Some(end),
            _ => {}
        }
        self.ack();
    }

    /// Receives messages until the data are as expected.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Kept) -> bool) {
        let mut idle = 0;
        while !wanted(&self.kept) {
            let before = (self.kept.events, self.kept.metadata.len(), self.kept.account.len());
            self.take();
            let after = (self.kept.events, self.kept.metadata.len(), self.kept.account.len());
            idle = if before == after { idle + 1 } else { 0 };
            assert!(idle < 100, "nothing new comes, after {} events", self.kept.events);
        }
    }

    /// Receives all messages up to END.
    pub(crate) fn rest(&mut self) -> End {
        self.until(|kept| kept.end.is_some());
        self.kept.end.expect("just seen")
    }
}

impl Kept {
    /// Writes the received data as a CTF directory.
    pub(crate) fn write(&self, directory: &Path) {
        std::fs::write(directory.join("metadata"), &self.metadata).expect("room");
        let mut streams = std::collections::BTreeMap::<String, Vec<u8>>::new();
        for (header, bytes) in &self.packets {
            let class = if header.stream.class == 0 { "channel0" } else { "outside" };
            streams.entry(format!("{class}_{}", header.stream.instance)).or_default().extend_from_slice(bytes);
        }
        for (name, bytes) in streams {
            std::fs::write(directory.join(name), bytes).expect("room");
        }
        if !self.account.is_empty() {
            let path = directory.join(ACCOUNT_PATH);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("room");
            std::fs::write(path, &self.account).expect("room");
        }
    }

    /// The first field of each event, in the order of time. Damage is an error.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let place = tempfile::tempdir().expect("a temporary directory");
        self.write(place.path());
        let trace = tracepoint_reader::Trace::open(place.path()).expect("a trace");
        let number = |item| match item {
            tracepoint_reader::Item::Event(event) => event.fields.and_then(|fields| fields.get("n")?.as_u64()),
            tracepoint_reader::Item::Damage(damage) => panic!("{damage}"),
            _ => None,
        };
        trace.items().filter_map(number).collect()
    }
}
