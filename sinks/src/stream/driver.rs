//! For fuzzing: a sender whose collector sends any message at any time, driven by bytes.

use super::collector::{Collector, Kept};
use super::connection::Control;
use super::options::StreamOptions;
use super::queue::{Item, Queue, QueuedPacket};
use super::session::{Identity, NextStep};
use super::streams::Streams;
use crate::account::Account;
use crate::destination::Destination;
use crate::sink::StreamInfo;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use tracepoint_reader::internal::sealed;
use tracepoint_ring::channel::{PacketHeader, StreamId, StreamKey};
use tracepoint_wire::stream::{
    Attach, Capabilities, Datagram, FRAME_HEADER, FrameHeader, RecordHeader, ToCollector, route_of,
};

/// The kind of a WELCOME message, and the offset of the collector's ports in it.
const WELCOME: u32 = 0x5450_0082;
const PORTS: std::ops::Range<usize> = 40..44;
/// Minimum size of a packet from the drain, in bytes.
const HEADER: usize = 96;

/// The collector's ends of the connections.
#[derive(Debug)]
struct PeerEnd {
    control: TcpStream,
    /// The TCP data connection, if there is one.
    data: Option<TcpStream>,
    said: Vec<u8>,
    data_said: Vec<u8>,
}

/// A sender's session without its thread, and the collector's ends of its connections.
#[derive(Debug)]
pub struct Driver {
    options: StreamOptions,
    identity: Identity,
    queue: Queue,
    streams: Streams,
    kept: Kept,
    listeners: [TcpListener; 2],
    datagrams: UdpSocket,
    peer_end: PeerEnd,
    /// The sender's end before the session is opened; then the session.
    near: Option<fileguard::GuardedFd<TcpStream>>,
    session: Option<Collector>,
    now: Instant,
    /// The time of the trace, the next number of each stream, and the total of events.
    time: u64,
    numbers: [u64; 4],
    events: u64,
}

impl Driver {
    /// Creates a sender over TCP or UDP that keeps `resend_buffer` bytes.
    ///
    /// # Errors
    ///
    /// If sockets cannot be created.
    pub fn new(udp: bool, resend_buffer: usize) -> io::Result<Self> {
        let listener = || TcpListener::bind("127.0.0.1:0");
        let listeners = [listener()?, listener()?];
        listeners[1].set_nonblocking(true)?;
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        datagrams.set_nonblocking(true)?;
        let port = listeners[0].local_addr()?.port();
        let options = StreamOptions::to(Destination::new("127.0.0.1", port)).resend_buffer(resend_buffer);
        let options = if udp { options.udp(1400) } else { options };
        let [host, session, process] = ["host", "fuzz", "sender-1-1"].map(str::to_owned);
        let identity = Identity { uuid: [9; 16], clock: [7; 16], pid: 1, host, session, process };
        let queue = Queue::new(1 << 20, Duration::ZERO)?;
        queue.change(|state| {
            "/* CTF 1.8 */".clone_into(&mut state.metadata);
            state.packet_sizes.insert(0, 1 << 14);
        });
        let (near, peer_end) = connect(&listeners[0])?;
        Ok(Self {
            options,
            identity,
            queue,
            streams: Streams::default(),
            kept: Kept::new()?,
            listeners,
            datagrams,
            peer_end,
            near: Some(near),
            session: None,
            now: Instant::now(),
            time: 1000,
            numbers: [0; 4],
            events: 0,
        })
    }

    /// Sends a frame from the collector. The ports in a WELCOME are replaced by this driver's.
    pub fn message(&mut self, kind: u32, payload: &[u8]) {
        let mut payload = payload.to_vec();
        let ports = [self.listeners[1].local_addr(), self.datagrams.local_addr()];
        if let (WELCOME, Some(place), [Ok(tcp), Ok(udp)]) = (kind, payload.get_mut(PORTS), ports) {
            place.copy_from_slice(&[tcp.port().to_be_bytes(), udp.port().to_be_bytes()].concat());
        }
        let size = (payload.len() as u64).to_be_bytes();
        self.bytes(&[&[0; 8], &size[..], &kind.to_be_bytes(), &[0; 4], &payload].concat());
    }

    /// Sends arbitrary bytes from the collector.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // A sender that no longer reads may accept only part of it.
        let _ = self.peer_end.control.write(bytes);
        self.advance();
    }

    /// Opens the sender's session with the bytes that the collector has sent so far.
    pub fn open(&mut self) {
        let Some(near) = self.near.take() else { return };
        let mut control = Control::new(near);
        let capabilities = Capabilities::new(true, false);
        // Bytes that have not arrived yet are not waited for.
        let opened = control.receive().map_err(Into::into).and_then(|()| {
            let own = (&self.options, &self.identity);
            Collector::open(control, capabilities, own, (&mut self.kept, &self.queue), Instant::now())
        });
        self.session = opened.ok();
        if self.session.is_none() {
            return self.hang_up();
        }
        // Connections of failed attempts come first.
        self.peer_end.data = std::iter::from_fn(|| self.listeners[1].accept().ok()).last().map(|(socket, _)| socket);
        if let Some(data) = &self.peer_end.data {
            let _ = data.set_nonblocking(true).and_then(|()| Ok(set_socket_linger(data, Some(Duration::ZERO))?));
        }
        self.advance();
    }

    /// Closes the control connection from the collector's side; the sender reconnects.
    pub fn hang_up(&mut self) {
        self.session = None;
        if let Ok((near, peer_end)) = connect(&self.listeners[0]) {
            (self.near, self.peer_end) = (Some(near), peer_end);
        }
    }

    /// Gives the sender a packet of one of four streams, after `lost` packets that the ring has lost.
    pub fn packet(&mut self, stream: u8, lost: u64, size: usize) {
        if self.queue.lock().ended {
            return;
        }
        let number = usize::from(stream) % self.numbers.len();
        let id = StreamId { class: 0, instance: number as u64 };
        let key = StreamKey { uuid: self.identity.uuid, class: id.class, instance: id.instance };
        let (begin, events_before) = (self.time, self.numbers[number]);
        self.time += 10;
        let sequence = events_before + lost;
        let empty = PacketHeader::empty(key, begin).with_size(HEADER + size);
        let header = PacketHeader { end: begin + 5, sequence, events_before, ..empty };
        let mut bytes = vec![0; HEADER + size];
        header.write_to(&mut bytes);
        self.numbers[number] = sequence + 1;
        let packet = QueuedPacket {
            stream: StreamInfo { id, channel: "c".to_owned() },
            header,
            bytes: sealed(bytes),
            events_before,
            events_after: sequence + 1,
            queued: 0,
        };
        self.events += packet.events();
        self.queue.push(packet);
        self.advance();
    }

    /// Queues a synchronisation point.
    pub fn synchronise(&mut self) {
        let time = self.time;
        self.queue.change(|state| {
            if !state.ended {
                state.items.push_back(Item::Sync(time));
            }
        });
        self.advance();
    }

    /// Advances the time.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.advance();
    }

    /// Ends the recording.
    pub fn end(&mut self) {
        self.queue.change(|state| {
            state.ended = true;
            state.account.get_or_insert_with(|| Account::new([9; 16], "fuzz", 1));
        });
        self.advance();
    }

    /// Ends the time for sending the rest.
    pub fn give_up(&mut self) {
        self.end();
        if let Some(session) = &mut self.session {
            session.give_up(&self.queue, &mut self.streams);
        }
        self.advance();
    }

    /// Lets the sender do everything possible, and checks its messages.
    ///
    /// # Panics
    ///
    /// If the sender sends an invalid message, or counts more events as lost than there were.
    fn advance(&mut self) {
        if let Some(session) = &mut self.session {
            let next = session.advance(&self.queue, (&mut self.streams, &mut self.kept), self.now);
            self.hear();
            if !matches!(next, Ok(NextStep::At(_))) {
                self.hang_up();
            }
        }
        let state = self.queue.lock();
        let lost: u64 = state.deliveries.lost().values().sum();
        assert!(lost <= self.events, "{lost} of {} events are lost", self.events);
    }

    fn hear(&mut self) {
        let PeerEnd { control, data, said, data_said } = &mut self.peer_end;
        receive(control, said);
        while let Some(header) = FrameHeader::decode(said).map(|header| header.expect("a header of a sender")) {
            let Some(payload) = said.get(FRAME_HEADER..FRAME_HEADER + header.size) else { break };
            ToCollector::decode(header.kind, payload).expect("a message of a sender");
            said.drain(..FRAME_HEADER + header.size);
        }
        if let Some(data) = data {
            receive(data, data_said);
            if data_said.starts_with(b"TPSTREAM") {
                data_said.drain(..Attach::SIZE);
            }
            while let Some(header) = data_said.first_chunk() {
                let size = RecordHeader::decode(header).expect("a record of a sender").size as usize;
                let Some(wire) = data_said.get(RecordHeader::SIZE..RecordHeader::SIZE + size) else { break };
                route_of(wire).expect("a packet of a sender");
                data_said.drain(..RecordHeader::SIZE + size);
            }
        }
        let mut datagram = [0; 2048];
        while let Ok(size) = self.datagrams.recv(&mut datagram) {
            Datagram::decode(&datagram[..size]).expect("a datagram of a sender");
        }
    }
}

/// Opens a connection without `TIME_WAIT` at its end, so that many thousands of inputs find free ports.
fn connect(listener: &TcpListener) -> io::Result<(fileguard::GuardedFd<TcpStream>, PeerEnd)> {
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (control, _) = listener.accept()?;
    set_socket_linger(&control, Some(Duration::ZERO))?;
    near.set_nonblocking(true)?;
    control.set_nonblocking(true)?;
    Ok((fileguard::GuardedFd::new(near)?, PeerEnd { control, data: None, said: Vec::new(), data_said: Vec::new() }))
}

fn receive(socket: &mut TcpStream, into: &mut Vec<u8>) {
    // It ends with an error when no more bytes are there.
    let _ = socket.read_to_end(into);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_wire::stream::{AnnounceReply, Nack, NackEntry, Ready, ToSender, Welcome};

    /// The kind of the first message of the stream protocol.
    const FIRST_MESSAGE: u32 = 0x5450_0000;

    fn say(driver: &mut Driver, message: &ToSender<'_>) {
        let mut frame = Vec::new();
        message.encode(&mut frame);
        let header = FrameHeader::decode(&frame).expect("whole").expect("a frame");
        driver.message(FIRST_MESSAGE + header.kind, &frame[FRAME_HEADER..]);
    }

    fn connect(driver: &mut Driver, resumed: bool) {
        let welcome = Welcome {
            version: 1,
            resumed,
            udp: false,
            session: 1,
            token: [1; 16],
            metadata: 0,
            tcp_port: 0,
            udp_port: 0,
            mtu: 1400,
            window: 1 << 20,
            code: [0; 32],
            name: "a collector",
        };
        say(driver, &ToSender::Welcome(welcome));
        say(driver, &ToSender::Ready(Ready::Tcp));
        driver.open();
    }

    #[test]
    fn no_record_begins_behind_one_that_was_given_up_in_the_middle() -> io::Result<()> {
        let mut driver = Driver::new(false, 1 << 20)?;
        driver.options = driver.options.max_bandwidth(100_000);
        driver.options.bandwidth.begin();
        connect(&mut driver, false);
        driver.packet(0, 0, 100_000);
        say(&mut driver, &ToSender::Announced(AnnounceReply { request: 0, handle: 1, next: 0 }));
        driver.hang_up();
        connect(&mut driver, true);
        say(&mut driver, &ToSender::Announced(AnnounceReply { request: 0, handle: 2, next: 0 }));
        let sent = |driver: &mut Driver| {
            driver.advance();
            driver.peer_end.data_said.len()
        };
        let began = Instant::now();
        while sent(&mut driver) == 0 {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        driver.give_up();
        let before = sent(&mut driver);
        let entries = vec![NackEntry { handle: 2, first: 0, last: 0, offset: 0, length: 0 }];
        say(&mut driver, &ToSender::Nack(Nack { entries }));
        // Longer than the next slice waits for the cap.
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(50) {
            assert_eq!(sent(&mut driver), before);
        }
        Ok(())
    }
}
