//! An emulation of the original kernel server, written only from the description of its messages. It has the original's layout and
//! behaviour: it sends from a second, unbound socket, swaps 16 bits of a packet's number into 32, leaves its padding
//! unset, and ignores START while it has a client.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const START: [u8; 1] = [1];
const STOP: [u8; 1] = [2];
const PACKET: u8 = 1;
const MARK: u8 = 2;
const TRACE_BEGIN: u8 = 1;
const TRACE_END: u8 = 2;
const SESSION_BEGIN: u8 = 3;
const SESSION_END: u8 = 4;

pub struct OriginalServer {
    pub port: u16,
    thread: JoinHandle<()>,
}

struct State {
    commands: UdpSocket,
    messages: UdpSocket,
    client: Option<SocketAddr>,
    seq: u32,
    padding: u8,
    pace: Duration,
    read_before: bool,
}

impl OriginalServer {
    /// Serves these events, and ends when they were read. Each byte of padding has the value `padding`; the first message has the number
    /// `seq`.
    pub fn start(seq: u32, padding: u8, pace: Duration, events: Vec<Vec<u8>>) -> Self {
        let commands = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = commands.local_addr().unwrap().port();
        let messages = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut state = State { commands, messages, client: None, seq, padding, pace, read_before: false };
        Self { port, thread: thread::spawn(move || state.serve(events.into_iter().enumerate())) }
    }

    pub fn wait(self) {
        self.thread.join().unwrap();
    }
}

impl State {
    fn serve(&mut self, mut events: impl Iterator<Item = (usize, Vec<u8>)>) {
        loop {
            self.commands();
            if self.client.is_none() {
                continue;
            }
            let Some((n, content)) = events.next() else { break };
            self.packet(1_000_000_000 + n as u64 * 1000, &content);
        }
        self.mark(TRACE_END);
        self.mark(SESSION_END);
    }

    /// Handles the commands that arrive before the next event is due.
    fn commands(&mut self) {
        let mut buffer = [0; 100];
        self.commands.set_read_timeout(Some(self.pace)).unwrap();
        loop {
            let (size, from) = match self.commands.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
                Err(error) => panic!("{error}"),
            };
            if buffer[..size] == START && self.client.is_none() {
                self.client = Some(from);
                self.mark(SESSION_BEGIN);
                if !std::mem::replace(&mut self.read_before, true) {
                    self.mark(TRACE_BEGIN);
                }
            } else if buffer[..size] == STOP && self.client == Some(from) {
                self.mark(SESSION_END);
                self.client = None;
            }
        }
    }

    fn mark(&mut self, mark: u8) {
        let mut message = self.seq.to_be_bytes().to_vec();
        message.extend([MARK, self.padding, self.padding, self.padding, mark]);
        self.send(&message);
    }

    fn packet(&mut self, time: u64, content: &[u8]) {
        let mut message = vec![self.padding; 66];
        // `htons` on a little-endian machine, stored into 32 bits.
        message[..4].copy_from_slice(&u32::from((self.seq as u16).swap_bytes()).to_le_bytes());
        message[4] = PACKET;
        message[32..36].copy_from_slice(&((time >> 32) as u32).to_be_bytes());
        message[36..40].copy_from_slice(&(time as u32).to_be_bytes());
        message[64..].copy_from_slice(&(content.len() as u16).to_be_bytes());
        message.extend(content);
        self.send(&message);
    }

    fn send(&mut self, message: &[u8]) {
        self.messages.send_to(message, self.client.unwrap()).unwrap();
        self.seq = self.seq.wrapping_add(1);
    }
}
