//! A sender of the stream protocol that shares only the codecs with the real one; over TCP, or over UDP through a bad network.

use super::running::PATIENCE;
use super::sender::{HERE, connect_from};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use tracepoint_reader::internal::sealed;
use tracepoint_wire::Decoded;
use tracepoint_wire::PacketHeader;
use tracepoint_wire::relay::{Command, MINOR, Reply, Version};
use tracepoint_wire::stream::{
    Announce, Attach, Capabilities, Close, ClosedStream, Datagram, DatagramHeader, ErrorCode, FRAME_HEADER,
    FrameHeader, Hello, NO_BOUND, NO_SEQ, NackEntry, Piece, Ready, RecordHeader, Route, SeqRange, StreamTotals, Sync,
    SyncEntry, ToCollector, ToSender, wire_head,
};

/// The metadata of the packets.
pub(crate) const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; u64 stream_instance_id; }; };
clock { name = mono; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.mono.value; } := ts;
stream { id = 3; packet.context := struct { ts timestamp_begin; ts timestamp_end; u64 content_size; u64 packet_size;
  u64 packet_seq_num; u64 events_discarded; u32 tid; u32 checksum; u64 events_before; };
  event.header := struct { u32 id; ts timestamp; }; };
";
pub(crate) const EVENT: &str = "event { name = \"e\"; id = 0; stream_id = 3; fields := struct { u32 n; }; };\n";

/// Returns a packet with one event, whose field is its number, and padding.
pub(crate) fn packet(instance: u64, seq: u64, padding: usize) -> Vec<u8> {
    let mut header = PacketHeader::parse(&[]);
    header.magic = 0xC1FC_1FC1;
    (header.stream.class, header.stream.instance, header.sequence) = (3, instance, seq);
    (header.begin, header.end, header.events_before) = (1000 + seq * 100, 1050 + seq * 100, seq);
    header.content_bits = (96 + 16 + padding as u64) * 8;
    header.packet_bits = header.content_bits;
    let mut bytes = header.bytes().to_vec();
    bytes.extend_from_slice(&0_u32.to_le_bytes());
    bytes.extend_from_slice(&(header.begin + 1).to_le_bytes());
    bytes.extend_from_slice(&(seq as u32).to_le_bytes());
    // The padding repeats equal events.
    while bytes.len() < 112 + padding {
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&(header.begin + 1).to_le_bytes());
        bytes.extend_from_slice(&(seq as u32).to_le_bytes());
    }
    sealed(bytes)
}

/// The transport of packets.
pub(crate) enum Data {
    Tcp(TcpStream),
    Udp { socket: UdpSocket, to: SocketAddr, token: [u8; 16], network: Network },
}

/// Loses, repeats and delays datagrams, at random from a seed.
pub(crate) struct Network {
    pub(crate) random: u64,
    /// In percent.
    pub(crate) loss: u64,
    delayed: VecDeque<Vec<u8>>,
}

impl Network {
    pub(crate) fn new(seed: u64, loss: u64) -> Self {
        Self { random: seed * 2 + 1, loss, delayed: VecDeque::new() }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    /// Returns the datagrams that arrive now.
    fn pass(&mut self, datagram: Vec<u8>) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        if self.below(100) >= self.loss {
            match self.below(10) {
                0 => self.delayed.push_back(datagram),
                1 => out.extend([datagram.clone(), datagram]),
                _ => out.push(datagram),
            }
        }
        if self.delayed.len() > 5 || self.below(20) == 0 {
            out.extend(self.delayed.pop_front());
        }
        out
    }
}

/// The sender's reaction to a request for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    SendsAgain,
    SaysGone,
    Ignores,
}

pub(crate) struct StreamSender {
    control: TcpStream,
    input: Vec<u8>,
    pub(crate) data: Data,
    /// By handle and number: the number sent before it, and the packet.
    pub(crate) store: BTreeMap<(u64, u64), (u64, Vec<u8>)>,
    last: BTreeMap<u64, u64>,
    sent: BTreeMap<u64, u64>,
    syncs: u64,
    /// Clock offset and bound for the next synchronisation.
    pub(crate) alignment: (i64, u64),
    pub(crate) asked: Asked,
    /// The acknowledged numbers, by handle.
    pub(crate) next: BTreeMap<u64, u64>,
    pub(crate) metadata: u64,
    pub(crate) synced: u64,
    pub(crate) closed: Vec<StreamTotals>,
    pub(crate) is_done: bool,
    /// The collector's reason for closing the connection.
    pub(crate) refused: Option<(ErrorCode, String)>,
    is_ready: bool,
    announced: Vec<(u64, u64)>,
    pub(crate) nacks: usize,
    /// Packets reported as lost by the collector: handle and number.
    pub(crate) lost: Vec<(u64, u64)>,
    /// The reason for which the sender must pause, and the number of bytes it may send without acknowledgement.
    pub(crate) hold: Option<String>,
    pub(crate) window: u64,
    /// Set by WELCOME: whether the session is resumed, the bytes of metadata that the collector has, and the token.
    pub(crate) welcome: Option<(bool, u64, [u8; 16])>,
}

impl StreamSender {
    /// Opens a session; data goes over TCP, or over UDP through this network.
    pub(crate) fn open(control: SocketAddr, data: SocketAddr, key: u8, network: Option<Network>) -> Self {
        Self::open_from(HERE, control, data, key, network)
    }

    /// Like [`open`](Self::open), from this local address.
    pub(crate) fn open_from(
        from: Ipv4Addr,
        control: SocketAddr,
        data: SocketAddr,
        key: u8,
        network: Option<Network>,
    ) -> Self {
        let mut stream = connect_from(from, control);
        let ask = |stream: &mut TcpStream, command: Command<'_>| {
            let mut bytes = Vec::new();
            command.encode(MINOR, &mut bytes);
            stream.write_all(&bytes).expect("the collector reads");
            let mut reply = vec![0; if matches!(command, Command::Version(_)) { 8 } else { 12 }];
            stream.read_exact(&mut reply).expect("a reply");
            match Reply::decode(&command, &reply, MINOR) {
                Ok(Decoded::Whole(reply, _)) => reply,
                other => panic!("{other:?}"),
            }
        };
        ask(&mut stream, Command::Version(Version { major: 2, minor: 13 }));
        let offer = Capabilities::new(network.is_some(), false).flags();
        let Reply::Configuration { flags, .. } = ask(&mut stream, Command::GetConfiguration { flags: offer }) else {
            panic!("no configuration")
        };
        assert_eq!(Capabilities::of(flags), Some(Capabilities::new(true, false)));
        stream.set_read_timeout(Some(Duration::from_millis(5))).expect("a timeout");
        let mut sender = Self {
            control: stream,
            input: Vec::new(),
            data: Data::Tcp(connect_from(from, data)),
            store: BTreeMap::new(),
            last: BTreeMap::new(),
            sent: BTreeMap::new(),
            syncs: 0,
            alignment: (0, NO_BOUND),
            asked: Asked::SendsAgain,
            next: BTreeMap::new(),
            metadata: 0,
            synced: 0,
            closed: Vec::new(),
            is_done: false,
            refused: None,
            is_ready: false,
            announced: Vec::new(),
            nacks: 0,
            lost: Vec::new(),
            hold: None,
            window: 0,
            welcome: None,
        };
        let hello = Hello {
            version: 1,
            udp: network.is_some(),
            key: [key; 16],
            trace: [1; 16],
            clock: [2; 16],
            nonce: [3; 32],
            sync_interval: 100,
            mtu: 1400,
            resend_buffer: 1 << 24,
            host: "host",
            session: "shop",
            process: "till-7-1",
        };
        sender.say(&ToCollector::Hello(hello));
        sender.until(|sender| sender.welcome.is_some());
        let (.., token) = sender.welcome.expect("a welcome");
        match (&mut sender.data, network) {
            (Data::Tcp(stream), None) => stream.write_all(&Attach { token }.encode()).expect("the collector reads"),
            (to, Some(network)) => {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
                socket.send_to(&DatagramHeader::probe(token).encode(), data).expect("a probe");
                *to = Data::Udp { socket, to: data, token, network };
            }
            _ => unreachable!("data go over TCP unless there is a network"),
        }
        sender.until(|sender| sender.is_ready);
        sender
    }

    pub(crate) fn say(&mut self, message: &ToCollector<'_>) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.control.write_all(&bytes).expect("the collector reads");
    }

    /// Handles messages until the condition holds.
    pub(crate) fn until(&mut self, fits: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !fits(self) {
            assert!(Instant::now() < deadline, "next {:?}, closed {:?}", self.next, self.closed);
            assert!(self.listen(), "the collector has closed the connection: {:?}", self.refused);
        }
    }

    /// Handles the messages that have arrived. Returns `false` if the connection has ended.
    pub(crate) fn listen(&mut self) -> bool {
        let mut bytes = vec![0; 1 << 16];
        match self.control.read(&mut bytes) {
            Ok(0) => return false,
            Ok(count) => self.input.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return false,
        }
        while let Some(header) = FrameHeader::decode(&self.input) {
            let header = header.expect("a frame");
            let size = FRAME_HEADER + header.size;
            if self.input.len() < size {
                break;
            }
            let frame: Vec<u8> = self.input.drain(..size).collect();
            self.handle(ToSender::decode(header.kind, &frame[FRAME_HEADER..]).expect("a message"));
        }
        true
    }

    fn handle(&mut self, message: ToSender<'_>) {
        match message {
            ToSender::Welcome(welcome) => {
                self.welcome = Some((welcome.resumed, welcome.metadata, welcome.token));
                self.window = welcome.window;
            }
            ToSender::Flow(why) => self.hold = why.map(str::to_owned),
            ToSender::Announced(announced) => self.announced.push((announced.handle, announced.next)),
            ToSender::Ack(ack) => {
                (self.metadata, self.synced) = (ack.metadata, ack.sync);
                for entry in ack.entries {
                    let before = self.next.insert(entry.handle, entry.next);
                    assert!(before.is_none_or(|before| before <= entry.next), "acknowledgements go back");
                }
            }
            ToSender::Nack(nack) => {
                self.nacks += nack.entries.len();
                if self.asked != Asked::Ignores {
                    nack.entries.into_iter().for_each(|entry| self.resend(entry));
                }
            }
            ToSender::Ready(ready) => {
                assert_eq!(ready == Ready::Udp, matches!(self.data, Data::Udp { .. }));
                self.is_ready = true;
            }
            ToSender::Closed(closed) => self.closed.extend(closed),
            ToSender::Lost(SeqRange { handle, first, last }) => {
                let told = self.next.get(&handle).copied().unwrap_or_default();
                assert!(told <= first, "{first} to {last} are lost, and {told} was acknowledged");
                let sent = self.store.range((handle, first)..=(handle, last)).map(|(packet, _)| *packet);
                self.lost.extend(sent);
            }
            ToSender::Done => self.is_done = true,
            ToSender::Error(code, text) => self.refused = Some((code, text.to_owned())),
            ToSender::NoRoom(_, text) => self.refused = Some((ErrorCode::Busy, text.to_owned())),
            _ => {}
        }
    }

    fn resend(&mut self, entry: NackEntry) {
        for seq in entry.first..=entry.last {
            match self.store.get(&(entry.handle, seq)).cloned() {
                Some((prev, packet)) if self.asked == Asked::SendsAgain => {
                    let part = (entry.length > 0).then_some((entry.offset, entry.length));
                    self.transmit(entry.handle, seq, prev, &packet, part);
                }
                _ => self.say(&ToCollector::Gone(SeqRange { handle: entry.handle, first: seq, last: seq })),
            }
        }
    }

    /// Announces a stream. Returns its handle and the next number to send.
    pub(crate) fn announce(&mut self, instance: u64) -> (u64, u64) {
        let count = self.announced.len();
        self.say_announcement(instance);
        self.until(|sender| sender.announced.len() > count);
        self.announced[count]
    }

    /// Announces streams until one is refused. Returns their number and the reason.
    pub(crate) fn flood(&mut self, first: u64) -> (u64, (ErrorCode, String)) {
        let mut instance = first;
        loop {
            let count = self.announced.len();
            self.say_announcement(instance);
            self.until(|sender| sender.announced.len() > count || sender.refused.is_some());
            if let Some(refused) = self.refused.take() {
                return (instance - first, refused);
            }
            instance += 1;
        }
    }

    fn say_announcement(&mut self, instance: u64) {
        let name = format!("c_{instance}");
        let names = ["host", "shop", "till-7-1", "c", &name];
        let announce = Announce { request: instance as u32, class: 3, instance, packet_size: 1 << 20, names };
        self.say(&ToCollector::Announce(announce));
    }

    pub(crate) fn say_metadata(&mut self, offset: u64, text: &str) {
        self.say(&ToCollector::Metadata(Piece { offset, bytes: text.as_bytes() }));
    }

    /// Sends a packet for the first time.
    pub(crate) fn send(&mut self, handle: u64, seq: u64, packet: Vec<u8>) {
        let prev = self.last.insert(handle, seq).unwrap_or(NO_SEQ);
        *self.sent.entry(handle).or_default() += 1;
        self.transmit(handle, seq, prev, &packet, None);
        self.store.insert((handle, seq), (prev, packet));
    }

    /// Sends a packet that is not kept.
    pub(crate) fn send_once(&mut self, handle: u64, seq: u64, packet: &[u8]) {
        let prev = self.last.insert(handle, seq).unwrap_or(NO_SEQ);
        *self.sent.entry(handle).or_default() += 1;
        self.transmit(handle, seq, prev, packet, None);
    }

    /// Counts a packet as sent, which [`transmit`](Self::transmit) is to send later.
    pub(crate) fn count_sent(&mut self, handle: u64, seq: u64) {
        self.last.insert(handle, seq);
        *self.sent.entry(handle).or_default() += 1;
    }

    /// Sends a packet; over UDP, optionally a part of it.
    pub(crate) fn transmit(&mut self, handle: u64, seq: u64, prev_seq: u64, packet: &[u8], part: Option<(u32, u32)>) {
        let head = wire_head(packet, Route { handle, seq, prev_seq, circuit_id: 0 }).expect("a packet");
        let wire = [&head[..], &packet[32..]].concat();
        match &mut self.data {
            Data::Tcp(stream) => {
                let header = RecordHeader { size: wire.len() as u32 }.encode();
                // A failure, for example because the collector was killed, is detected elsewhere.
                let _ = stream.write_all(&[&header[..], &wire].concat());
            }
            Data::Udp { socket, to, token, network } => {
                let unit = 1400 - DatagramHeader::SIZE;
                for (number, bytes) in wire.chunks(unit).enumerate() {
                    let offset = (number * unit) as u32;
                    if part.is_some_and(|(from, length)| offset < from || offset >= from + length) {
                        continue;
                    }
                    let (total, unit) = (wire.len() as u32, unit as u32);
                    let again = part.is_some();
                    let header =
                        DatagramHeader { probe: false, token: *token, handle, seq, offset, total, unit, again };
                    let datagram = [&header.encode()[..], bytes].concat();
                    assert!(Datagram::decode(&datagram).is_ok());
                    for datagram in network.pass(datagram) {
                        socket.send_to(&datagram, *to).expect("a datagram");
                    }
                }
            }
        }
    }

    /// Sends a synchronisation message; later events begin at or after `time`.
    pub(crate) fn sync(&mut self, time: u64) {
        self.syncs += 1;
        let (offset, bound) = self.alignment;
        let entries = self.announced.iter().map(|(handle, _)| SyncEntry {
            handle: *handle,
            last: self.last.get(handle).copied().unwrap_or(NO_SEQ),
            time,
        });
        let sync = Sync { number: self.syncs, time, offset, bound, entries: entries.collect() };
        self.say(&ToCollector::Sync(sync));
    }

    /// Ends the session. Returns the final counts of its streams.
    pub(crate) fn close(&mut self) -> Vec<StreamTotals> {
        self.end(false)
    }

    /// Ends the session without waiting for missing packets. Returns the collector's counts of the streams.
    pub(crate) fn give_up(&mut self) -> Vec<StreamTotals> {
        self.end(true)
    }

    fn end(&mut self, gives_up: bool) -> Vec<StreamTotals> {
        let entries: Vec<_> = self
            .announced
            .iter()
            .map(|(handle, _)| ClosedStream {
                handle: *handle,
                last: self.last.get(handle).copied().unwrap_or(NO_SEQ),
                packets: self.sent.get(handle).copied().unwrap_or_default(),
                events_after: self.last.get(handle).map_or(0, |last| last + 1),
            })
            .collect();
        let count = entries.len();
        self.say(&ToCollector::Close(Close { whole: true, entries }));
        if gives_up {
            self.say(&ToCollector::GiveUp);
        }
        self.until(|sender| sender.closed.len() == count);
        self.say(&ToCollector::Account(Piece { offset: 0, bytes: b"{}" }, 2));
        self.until(|sender| sender.is_done);
        std::mem::take(&mut self.closed)
    }
}
