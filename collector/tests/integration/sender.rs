//! A sender under the test's control, which uses the codecs of the relay protocol and none of the collector's code.

use super::running::PATIENCE;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use tracepoint_collector::Addresses;
use tracepoint_wire::Decoded;
use tracepoint_wire::relay::{
    AddStream, Command, CreateChunk, CreateSession, DataHeader, Index, MINOR, Reply, ReturnCode, Version,
};

pub(crate) struct Sender {
    pub(crate) control: TcpStream,
    pub(crate) data: TcpStream,
}

/// The address of most senders, and another one.
pub(crate) const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
pub(crate) const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    connect_from(HERE, address)
}

/// Connects from this local address.
pub(crate) fn connect_from(from: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("an address of this machine");
    socket.connect(&address.into()).expect("the collector listens");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Returns whether the peer closes the connection without sending more.
pub(crate) fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

pub(crate) fn session(name: &str) -> CreateSession {
    CreateSession {
        name: name.into(),
        host: "host".into(),
        live_timer: 100_000,
        sender: [1; 16],
        id: 1,
        creation_time: 1_700_000_000,
        name_has_time: true,
        ..CreateSession::default()
    }
}

pub(crate) fn stream(channel: &str) -> AddStream {
    AddStream { channel: channel.into(), path: "trace".into(), ..AddStream::default() }
}

/// Returns a CTF packet of this stream without events, and its index.
pub(crate) fn packet(handle: u64, instance: u64, sequence: u64, size: usize) -> (Vec<u8>, Index) {
    let (begin, end) = (1000 + sequence * 10, 1005 + sequence * 10);
    let mut bytes = vec![0; size];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &0xC1FC_1FC1_u32.to_le_bytes());
    put(8, &instance.to_le_bytes());
    put(16, &begin.to_le_bytes());
    put(24, &end.to_le_bytes());
    put(32, &(64 * 8_u64).to_le_bytes());
    put(40, &(size as u64 * 8).to_le_bytes());
    put(48, &sequence.to_le_bytes());
    let index = Index {
        handle,
        sequence,
        packet_size: size as u64 * 8,
        content_size: 64 * 8,
        begin,
        end,
        stream_instance: instance,
        packet_number: sequence,
        ..Index::default()
    };
    (bytes, index)
}

/// The metadata of these packets.
pub(crate) const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; u64 stream_instance_id; }; };
clock { name = mono; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.mono.value; } := ts;
stream { id = 0; packet.context := struct { ts timestamp_begin; ts timestamp_end; u64 content_size; u64 packet_size;
  u64 packet_seq_num; u64 events_discarded; }; event.header := struct { u32 id; ts timestamp; }; };
event { name = \"e\"; id = 0; stream_id = 0; fields := struct { u32 n; }; };
";

impl Sender {
    pub(crate) fn connect(addresses: &Addresses) -> Self {
        Self::connect_from(HERE, addresses)
    }

    pub(crate) fn connect_from(from: Ipv4Addr, addresses: &Addresses) -> Self {
        Self { control: connect_from(from, addresses.control), data: connect_from(from, addresses.data) }
    }

    pub(crate) fn command(&mut self, command: &Command<'_>) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        command.encode(MINOR, &mut bytes);
        self.control.write_all(&bytes)?;
        let mut reply = Vec::new();
        loop {
            match Reply::decode(command, &reply, MINOR) {
                Ok(Decoded::Whole(reply, _)) => return Ok(reply),
                Ok(Decoded::Needs(size)) => {
                    let from = reply.len();
                    reply.resize(size, 0);
                    self.control.read_exact(&mut reply[from..])?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    pub(crate) fn done(&mut self, command: &Command<'_>) {
        let reply = self.command(command).expect("a reply");
        assert_eq!(reply, Reply::Code(ReturnCode::Ok), "{command:?}");
    }

    /// Negotiates, and opens a session with a chunk. Returns the session's path.
    pub(crate) fn open(&mut self, create: CreateSession) -> String {
        let reply = self.command(&Command::Version(Version { major: 2, minor: 13 })).expect("a version");
        assert_eq!(reply, Reply::Version(Version { major: 2, minor: MINOR }));
        let Ok(Reply::Session { code: ReturnCode::Ok, path, .. }) = self.command(&Command::CreateSession(create))
        else {
            panic!("no session")
        };
        self.done(&Command::CreateChunk(CreateChunk::default()));
        path
    }

    pub(crate) fn add(&mut self, add: AddStream) -> u64 {
        match self.command(&Command::AddStream(add)) {
            Ok(Reply::Stream { handle, code: ReturnCode::Ok }) => handle,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn data(&mut self, handle: u64, sequence: u64, bytes: &[u8]) -> io::Result<()> {
        let header = DataHeader { handle, sequence, size: bytes.len() as u32, ..DataHeader::default() };
        self.data.write_all(&[&header.encode(), bytes].concat())
    }

    /// Sends a packet and its index.
    pub(crate) fn packet(&mut self, handle: u64, sequence: u64) {
        let (bytes, index) = packet(handle, handle, sequence, 4096);
        self.data(handle, sequence, &bytes).expect("the collector takes packets");
        self.done(&Command::SendIndex(index));
    }
}
