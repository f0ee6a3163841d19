//! A client of the legacy layout, written only from the tables of its format.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// The timeout for a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// A message, with the fields of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Mark(u8),
    Packet { time: u64, content: Vec<u8> },
}

pub(crate) const TRACE_BEGIN: Message = Message::Mark(1);
pub(crate) const TRACE_END: Message = Message::Mark(2);
pub(crate) const SESSION_BEGIN: Message = Message::Mark(3);
pub(crate) const SESSION_END: Message = Message::Mark(4);

pub(crate) struct LegacyClient {
    pub(crate) socket: UdpSocket,
    server: SocketAddr,
    next: Option<u32>,
}

impl LegacyClient {
    pub(crate) fn new(server: SocketAddr) -> Self {
        let mine: SocketAddr = if server.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }.parse().expect("an address");
        let socket = UdpSocket::bind(mine).expect("a socket");
        socket.connect(server).expect("loopback");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { socket, server, next: None }
    }

    pub(crate) fn say(&self, bytes: &[u8]) {
        // An error of an earlier datagram is reported here, and does not concern this one.
        while let Err(error) = self.socket.send(bytes) {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}, to {}", self.server);
        }
    }

    pub(crate) fn start(&self) {
        self.say(&[1]);
    }

    pub(crate) fn stop(&self) {
        self.say(&[2]);
    }

    /// Receives the next datagram, and checks the properties common to all.
    pub(crate) fn datagram(&mut self) -> Vec<u8> {
        let mut buffer = [0; 4096];
        let size = self.socket.recv(&mut buffer).expect("a message");
        assert!(size <= 1500, "{size} bytes in one message");
        buffer[..size].to_vec()
    }

    /// Receives the next message, and checks that `seq` is one more.
    pub(crate) fn message(&mut self) -> Message {
        let bytes = self.datagram();
        let seq = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        assert_eq!(seq, self.next.unwrap_or(seq), "in {bytes:x?}");
        self.next = Some(seq.wrapping_add(1));
        match bytes[4] {
            2 => {
                assert_eq!(bytes.len(), 9);
                // Legacy clients ignore these bytes. Only the first mark has an offer in them.
                assert!(bytes[8] == 3 || bytes[5..8] == [0; 3], "{bytes:x?}");
                Message::Mark(bytes[8])
            }
            1 => {
                assert_eq!(bytes[5..32], [0; 27]);
                assert_eq!(bytes[40..64], [0; 24]);
                let half =
                    |at: usize| u64::from(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
                let size = usize::from(bytes[64]) * 256 + usize::from(bytes[65]);
                assert_eq!(bytes.len(), 66 + size);
                Message::Packet { time: half(32) << 32 | half(36), content: bytes[66..].to_vec() }
            }
            kind => panic!("a client of old does not know messages of type {kind}"),
        }
    }

    /// The next `seq`.
    pub(crate) fn next_seq(&self) -> Option<u32> {
        self.next
    }

    /// Receives an event. Returns its text.
    pub(crate) fn event(&mut self) -> String {
        match self.message() {
            Message::Packet { content, .. } => String::from_utf8(content).expect("text"),
            mark @ Message::Mark(_) => panic!("{mark:?} instead of an event"),
        }
    }

    /// Receives all messages up to the end of the session.
    pub(crate) fn rest(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while messages.last() != Some(&SESSION_END) {
            messages.push(self.message());
        }
        messages
    }
}

/// Returns the text of an event with a number.
pub(crate) fn number(n: u32) -> String {
    format!("test:number: {{ n = {n} }}")
}
