//! A collector that stores in memory, written from the tables of `docs/format-stream.md`.

use super::datagrams;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracepoint_ring::channel::PacketHeader;
use tracepoint_wire::relay::{Command, ControlHeader, Reply, ReturnCode, Version};
use tracepoint_wire::stream::{
    Ack, AckEntry, AnnounceReply, Attach, Capabilities, ClockReply, Close, ErrorCode, FRAME_HEADER, FrameHeader,
    NO_SEQ, Ready, RecordHeader, SeqRange, StreamTotals, Sync, ToCollector, ToSender, Welcome, route_of, stored_packet,
};

/// A stored stream.
#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) packets: Vec<(PacketHeader, Vec<u8>)>,
    next: u64,
    /// No packet may begin before this time.
    promised: u64,
}

/// State that survives a killed collector: its files.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) streams: BTreeMap<(u32, u64), Stored>,
    pub(crate) metadata: Vec<u8>,
    pub(crate) account: Vec<u8>,
    pub(crate) syncs: Vec<Sync>,
    /// Number of them that the sender sent while it was sending a packet: they do not include the packet of which a part has arrived.
    pub(crate) between_parts: usize,
    /// Handle and number of the packet of which a part has arrived.
    pub(super) begun: Option<(u64, u64)>,
    /// Arrival times and sizes on the data connection.
    pub(crate) received: Vec<(Instant, usize)>,
    pub(crate) duplicates: u64,
    pub(crate) connections: u64,
    /// Packets of each stream that are given up, as reported on each connection.
    lost: Option<(u64, u64)>,
    /// An error sent instead of a welcome.
    pub(crate) refusal: Option<(ErrorCode, &'static str)>,
    /// The data port announced to senders, if it differs.
    pub(crate) data_port: Option<u16>,
    /// The protocol version, if it differs, and how far the clock is ahead, in nanoseconds.
    pub(crate) version: Option<u32>,
    pub(crate) clock_ahead: u64,
    /// A network that loses a datagram, if there is one.
    pub(crate) lossy: Option<datagrams::Lossy>,
    /// Set if it answers the end only when its sender gives up; and the end received from the sender.
    pub(crate) waits_at_end: bool,
    /// Number of streams for which there is room.
    pub(crate) room: Option<usize>,
    /// Delay of answers to announcements.
    pub(crate) announces_after: Duration,
    end: Option<Close>,
    key: Option<[u8; 16]>,
    /// The handles of this connection.
    handles: BTreeMap<u64, (u32, u64)>,
    pub(super) token: [u8; 16],
    pub(super) sockets: Vec<TcpStream>,
}

/// The collector, for one session.
pub(crate) struct Collector {
    pub(crate) files: Arc<Mutex<Files>>,
    pub(crate) ports: [u16; 2],
    /// Set while packets are acknowledged.
    pub(crate) acknowledges: Arc<AtomicBool>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let ports = [0, 1].map(|which: usize| listeners[which].local_addr().expect("an address").port());
        let files = Arc::<Mutex<Files>>::default();
        let acknowledges = Arc::new(AtomicBool::new(true));
        let [control, data] = listeners;
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let data_ports = [ports[1], udp.local_addr().expect("an address").port()];
        let own = Arc::clone(&files);
        thread::spawn(move || datagrams::serve(&udp, &own));
        let (own, acks) = (Arc::clone(&files), Arc::clone(&acknowledges));
        thread::spawn(move || {
            for socket in control.incoming().map_while(Result::ok) {
                let (files, acks) = (Arc::clone(&own), Arc::clone(&acks));
                thread::spawn(move || drop(serve_control(socket, &files, &acks, data_ports)));
            }
        });
        let (own, acks) = (Arc::clone(&files), Arc::clone(&acknowledges));
        thread::spawn(move || {
            for socket in data.incoming().map_while(Result::ok) {
                let (files, acks) = (Arc::clone(&own), Arc::clone(&acks));
                thread::spawn(move || drop(serve_data(socket, &files, &acks)));
            }
        });
        Self { files, ports, acknowledges }
    }

    pub(crate) fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().expect("no panic")
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        let mut files = self.files();
        for socket in files.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        files.handles.clear();
        files.token = [0; 16];
    }

    /// Gives up packets of each stream that are stored already. Returns the number of their events.
    pub(crate) fn give_up(&self, first: u64, last: u64) -> u64 {
        let mut files = self.files();
        files.lost = Some((first, last));
        let mut events = 0;
        for stream in files.streams.values_mut() {
            let before = |seq| {
                stream.packets.iter().find(|(header, _)| header.sequence == seq).expect("it is there").0.events_before
            };
            events += before(last + 1) - before(first);
            stream.packets.retain(|(header, _)| !(first..=last).contains(&header.sequence));
        }
        events
    }

    /// Writes the trace into a directory.
    pub(crate) fn write(&self, dir: &Path) -> std::io::Result<()> {
        let files = self.files();
        std::fs::write(dir.join("metadata"), &files.metadata)?;
        for stream in files.streams.values() {
            let packets: Vec<u8> = stream.packets.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            std::fs::write(dir.join(&stream.name), packets)?;
        }
        Ok(())
    }
}

impl Files {
    /// Stores a packet. Returns its stream, and the number of the next packet.
    pub(super) fn store(&mut self, wire: &[u8]) -> (u64, u64) {
        self.begun = None;
        let route = route_of(wire).expect("a packet");
        let packet = stored_packet(wire).expect("a packet").concat();
        assert!(!tracepoint_reader::internal::check(&packet).is_wrong());
        let stream = self.streams.get_mut(&self.handles[&route.handle]).expect("announced");
        if route.seq < stream.next {
            self.duplicates += 1;
        } else {
            assert!(route.prev_seq == NO_SEQ || route.prev_seq < stream.next, "nothing that was sent is missing");
            let parsed = PacketHeader::parse(&packet);
            assert!(parsed.begin >= stream.promised && parsed.sequence == route.seq, "{parsed:?} {}", stream.promised);
            stream.packets.push((parsed, packet));
            stream.next = route.seq + 1;
        }
        (route.handle, stream.next)
    }
}

pub(super) fn say(mut socket: &TcpStream, message: &ToSender<'_>) -> std::io::Result<()> {
    let mut out = Vec::new();
    message.encode(&mut out);
    socket.write_all(&out)
}

fn is_same(one: &TcpStream, other: &TcpStream) -> bool {
    one.peer_addr().ok().is_some_and(|address| other.peer_addr().ok() == Some(address))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

/// Answers the commands by which a sender detects its peer.
fn be_found(socket: &mut TcpStream) -> std::io::Result<()> {
    for _ in 0..2 {
        let mut header = [0; ControlHeader::SIZE];
        socket.read_exact(&mut header)?;
        let header = ControlHeader::decode(&header);
        let mut payload = vec![0; header.size as usize];
        socket.read_exact(&mut payload)?;
        let reply = match Command::from_payload(header.command, &payload, 13).expect("a command") {
            Command::Version(_) => Reply::Version(Version { major: 2, minor: 13 }),
            Command::GetConfiguration { flags } => {
                assert!(Capabilities::of(flags).is_some(), "{flags:#x}");
                Reply::Configuration { code: ReturnCode::Ok, flags: Capabilities::new(true, false).flags() }
            }
            other => panic!("{other:?}"),
        };
        let mut out = Vec::new();
        reply.encode(13, &mut out);
        socket.write_all(&out)?;
    }
    Ok(())
}

fn next_message(socket: &mut TcpStream, payload: &mut Vec<u8>) -> std::io::Result<FrameHeader> {
    let mut header = [0; FRAME_HEADER];
    socket.read_exact(&mut header)?;
    let header = FrameHeader::decode(&header).expect("whole").expect("a frame");
    payload.resize(header.size, 0);
    socket.read_exact(payload)?;
    Ok(header)
}

/// Keeps the end until the sender gives up, if the collector is to wait for that.
fn postpone(close: &Close, files: &Mutex<Files>) -> bool {
    let mut files = files.lock().expect("no panic");
    files.end = files.waits_at_end.then(|| close.clone());
    files.waits_at_end
}

/// Waits before a message is answered. Returns whether its answer is postponed.
fn waits_with(message: &ToCollector<'_>, files: &Mutex<Files>) -> bool {
    match message {
        ToCollector::Close(close) if postpone(close, files) => return true,
        ToCollector::Close(close) => wait_for_packets(close, files),
        ToCollector::Announce(_) => {
            let delay = files.lock().expect("no panic").announces_after;
            thread::sleep(delay);
        }
        _ => {}
    }
    false
}

/// Returns whether a synchronisation point is before this packet of its stream.
fn excludes(sync: &Sync, (handle, seq): (u64, u64)) -> bool {
    sync.entries.iter().any(|entry| entry.handle == handle && (entry.last == NO_SEQ || entry.last < seq))
}

/// Returns the counts of packets that have arrived, when the sender no longer waits.
fn postponed(files: &Files) -> Vec<StreamTotals> {
    delivered(files.end.as_ref().expect("the streams are closed before"), files)
}

/// Waits for the packets that a sender has counted, which are underway on the other connection.
fn wait_for_packets(close: &Close, files: &Mutex<Files>) {
    let is_in = |files: &Files| {
        close.entries.iter().all(|entry| {
            entry.last == NO_SEQ
                || files.handles.get(&entry.handle).is_none_or(|key| files.streams[key].next > entry.last)
        })
    };
    while !is_in(&files.lock().expect("no panic")) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn serve_control(
    mut socket: TcpStream,
    files: &Mutex<Files>,
    acknowledges: &AtomicBool,
    [data_port, udp_port]: [u16; 2],
) -> std::io::Result<()> {
    be_found(&mut socket)?;
    let mut payload = Vec::new();
    loop {
        let header = next_message(&mut socket, &mut payload)?;
        let message = ToCollector::decode(header.kind, &payload).expect("a message");
        if waits_with(&message, files) {
            continue;
        }
        let mut files = files.lock().expect("no panic");
        if !matches!(message, ToCollector::Hello(_)) && !files.sockets.iter().any(|other| is_same(other, &socket)) {
            return Ok(());
        }
        match message {
            ToCollector::Hello(hello) => {
                if let Some((code, why)) = files.refusal {
                    files.connections += 1;
                    return say(&socket, &ToSender::Error(code, why));
                }
                let resumed = files.key.replace(hello.key) == Some(hello.key);
                assert!(resumed || files.streams.is_empty(), "one session");
                files.connections += 1;
                files.token = [files.connections as u8; 16];
                files.sockets.push(socket.try_clone()?);
                let (token, metadata) = (files.token, files.metadata.len() as u64);
                say(
                    &socket,
                    &ToSender::Welcome(Welcome {
                        version: files.version.unwrap_or(1),
                        resumed,
                        udp: hello.udp,
                        session: 1,
                        token,
                        metadata,
                        tcp_port: files.data_port.unwrap_or(data_port),
                        udp_port,
                        mtu: 65507,
                        window: 16 << 20,
                        code: [0; 32],
                        name: "a collector of a test",
                    }),
                )?;
            }
            ToCollector::Announce(announce) => {
                assert_eq!(announce.names[0..2], ["host", "test"]);
                let key = (announce.class, announce.instance);
                if files.room.is_some_and(|room| files.streams.len() >= room) {
                    say(&socket, &ToSender::NoRoom(announce.request, "there is no room"))?;
                    continue;
                }
                let handle = files.connections * 1000 + files.handles.len() as u64;
                files.handles.insert(handle, key);
                let stream = files.streams.entry(key).or_default();
                announce.names[4].clone_into(&mut stream.name);
                let (request, next) = (announce.request, stream.next);
                say(&socket, &ToSender::Announced(AnnounceReply { request, handle, next }))?;
                if let Some((first, last)) = files.lost {
                    say(&socket, &ToSender::Lost(SeqRange { handle, first, last }))?;
                }
                if acknowledges.load(Ordering::Relaxed) {
                    let entries = vec![AckEntry { handle, next }];
                    say(&socket, &ToSender::Ack(Ack { sync: 0, metadata: 0, entries }))?;
                }
            }
            ToCollector::Metadata(piece) => {
                let known = files.metadata.len().checked_sub(piece.offset as usize).expect("no gap");
                files.metadata.extend_from_slice(piece.bytes.get(known..).unwrap_or_default());
            }
            ToCollector::Sync(sync) => {
                files.between_parts += usize::from(files.begun.is_some_and(|packet| excludes(&sync, packet)));
                for entry in &sync.entries {
                    let key = files.handles[&entry.handle];
                    let stream = files.streams.get_mut(&key).expect("announced");
                    let is_in = entry.last == NO_SEQ || stream.next > entry.last;
                    assert!(entry.time >= stream.promised);
                    // The promise applies to packets after `last`.
                    if is_in {
                        stream.promised = entry.time;
                    }
                }
                files.syncs.push(sync);
            }
            ToCollector::ClockProbe(probe) => {
                let received = now() + files.clock_ahead;
                let replied = now() + files.clock_ahead;
                let reply = ClockReply { number: probe.number, sent: probe.sent, received, replied };
                say(&socket, &ToSender::ClockReply(reply))?;
            }
            ToCollector::Close(close) => say(&socket, &ToSender::Closed(delivered(&close, &files)))?,
            ToCollector::Account(piece, whole) => {
                files.account.truncate(piece.offset as usize);
                files.account.extend_from_slice(piece.bytes);
                if files.account.len() as u64 == whole {
                    say(&socket, &ToSender::Done)?;
                }
            }
            ToCollector::GiveUp => say(&socket, &ToSender::Closed(postponed(&files)))?,
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the counts of packets that have arrived.
fn delivered(close: &Close, files: &Files) -> Vec<StreamTotals> {
    let delivered = close.entries.iter().map(|entry| {
        let stream = &files.streams[&files.handles[&entry.handle]];
        let packets = stream.packets.len() as u64;
        // Senders count the packets that were given up.
        let is_whole = files.lost.is_none();
        let events = if is_whole { records(&stream.packets, entry.events_after) } else { 0 };
        let packets_lost = entry.packets - packets;
        let events_lost = if is_whole { entry.events_after - events } else { 0 };
        StreamTotals { handle: entry.handle, packets, packets_lost, events, events_lost }
    });
    delivered.collect()
}

/// Returns the number of records in these packets: each packet's reach up to the next one's `events_before`, if that is the next in number.
fn records(packets: &[(PacketHeader, Vec<u8>)], events_after: u64) -> u64 {
    let ends = packets.iter().skip(1).map(|(header, _)| header.events_before).chain([events_after]);
    packets.iter().zip(ends).map(|((header, _), end)| end - header.events_before).sum()
}

fn serve_data(mut socket: TcpStream, files: &Mutex<Files>, acknowledges: &AtomicBool) -> std::io::Result<()> {
    let mut attach = [0; Attach::SIZE];
    socket.read_exact(&mut attach)?;
    let attach = Attach::decode(&attach).expect("a sender of ours");
    let control = {
        let mut files = files.lock().expect("no panic");
        if files.token != attach.token {
            return Ok(());
        }
        files.sockets.push(socket.try_clone()?);
        let control = files.sockets[0].try_clone()?;
        say(&control, &ToSender::Ready(Ready::Tcp))?;
        control
    };
    loop {
        let mut header = [0; RecordHeader::SIZE];
        socket.read_exact(&mut header)?;
        let mut wire = vec![0; RecordHeader::decode(&header).expect("a record").size as usize];
        let mut done = 0;
        while done < wire.len() {
            let count = socket.read(&mut wire[done..])?;
            if count == 0 {
                return Ok(());
            }
            done += count;
            let mut files = files.lock().expect("no panic");
            files.received.push((Instant::now(), count));
            files.begun = route_of(&wire[..done]).ok().map(|route| (route.handle, route.seq));
        }
        let mut files = files.lock().expect("no panic");
        if files.token != attach.token {
            return Ok(());
        }
        let (handle, next) = files.store(&wire);
        if acknowledges.load(Ordering::Relaxed) {
            let entries = vec![AckEntry { handle, next }];
            say(&control, &ToSender::Ack(Ack { sync: 0, metadata: 0, entries }))?;
        }
        drop(files);
        // It is slow at times.
        if next.is_multiple_of(7) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
