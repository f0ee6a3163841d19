//! For fuzzing: the collector's state machines, driven by bytes.

use crate::hub::Hub;
use crate::memory::Memory;
use crate::relay::{Answer, Control};
use crate::reorder::Limits;
use crate::shares::Address;
use crate::storage::{JobResult, Packet, Storage};
use crate::stream_control::{Offer, StreamControl};
use crate::viewer::{Answer as Shown, Viewer};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracepoint_wire::Decoded;
use tracepoint_wire::live::Request;
use tracepoint_wire::relay::{Command, ControlHeader};
use tracepoint_wire::stream::{Datagram, ToCollector};

/// Maximum payload of a command in bytes.
const LARGEST: u64 = 1 << 16;

/// A collector without sockets, with one stock sender, one tracepoint sender and one viewer whose messages arrive in any order.
#[derive(Debug)]
pub struct Driver {
    hub: Hub,
    done: UnboundedReceiver<(u64, JobResult)>,
    relay: Control,
    ours: StreamControl,
    viewer: Viewer,
    now: Instant,
    token: [u8; 16],
}

fn address() -> Address {
    IpAddr::from(Ipv4Addr::LOCALHOST).into()
}

fn offer() -> Offer {
    let limits = Limits {
        packets: 16,
        bytes: 1 << 20,
        time: Duration::from_secs(2),
        delay: Duration::from_millis(20),
        end_delay: Duration::from_millis(20),
    };
    Offer {
        ports: (1, 2),
        window: 1 << 20,
        name: "collector".to_owned(),
        limits,
        key: None,
        allows_stock: Vec::new(),
        allows_stock_viewers: Vec::new(),
    }
}

impl Driver {
    /// Writes below `output`.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    pub fn new(output: &Path) -> io::Result<Self> {
        let (sender, done) = unbounded_channel();
        let mut hub = Hub::new(output.to_owned(), Storage::start(0, Some(64 << 20), None, sender)?);
        hub.share = 1 << 20;
        let relay = Control::new(Ipv4Addr::LOCALHOST.into(), &offer());
        let ours = StreamControl::new(offer(), address());
        hub.memory = Memory::new(4 << 20);
        let (viewer, now) = (Viewer::default(), Instant::now());
        Ok(Self { hub, done, relay, ours, viewer, now, token: [7; 16] })
    }

    /// Handles a command of the stock sender, given its number and payload. After a command that ends the connection, a new one is opened.
    pub fn relay(&mut self, command: u32, payload: &[u8]) {
        let header = ControlHeader { size: payload.len() as u64, command, ..ControlHeader::default() };
        let bytes = [&header.encode(), payload].concat();
        let is_end = match Command::decode(&bytes, self.relay.minor(), LARGEST) {
            Ok(Decoded::Whole(command, _)) => {
                let answer = self.relay.command(&mut self.hub, command, None, self.now);
                if let Answer::Reply(Some(reply)) | Answer::Close(Some(reply), _) = &answer {
                    reply.encode(self.relay.minor(), &mut Vec::new());
                }
                matches!(answer, Answer::Close(..))
            }
            _ => true,
        };
        if is_end {
            self.relay.ended(&mut self.hub, self.now);
            self.relay = Control::new(Ipv4Addr::LOCALHOST.into(), &offer());
        }
    }

    /// Handles a packet of the stock sender.
    pub fn packet(&mut self, handle: u64, sequence: u64, bytes: &[u8]) {
        self.hub.packet(handle, sequence, Packet::new(bytes.to_vec(), 0, None), self.now);
    }

    /// Handles a message of the tracepoint sender, given its kind and payload. After a message that ends the connection, a new one is opened.
    pub fn message(&mut self, kind: u32, payload: &[u8]) {
        let mut out = Vec::new();
        let Ok(message) = ToCollector::decode(kind, payload) else { return };
        let result = self.ours.message(&mut self.hub, message, None, [7; 32], self.now, &mut out);
        let result = result.and_then(|()| self.ours.tick(&mut self.hub, self.now, &mut out));
        if result.is_err() || self.ours.has_ended() {
            self.ours.ended(&mut self.hub, self.now);
            self.ours = StreamControl::new(offer(), address());
        }
    }

    /// Handles a packet on a data connection of the tracepoint sender.
    pub fn wire(&mut self, bytes: &[u8]) {
        if let Some(id) = self.hub.session_of_token(&self.token) {
            self.hub.wire_packet(id, bytes.to_vec(), None, self.now);
        }
    }

    /// Handles a datagram.
    pub fn datagram(&mut self, bytes: &[u8]) {
        let Ok(datagram) = Datagram::decode(bytes) else { return };
        if let Some(id) = self.hub.session_of_token(&self.token) {
            self.hub.datagram(id, &datagram, self.now);
        }
    }

    /// Handles a request of the viewer. After a request that ends the connection, a new one is opened.
    pub fn request(&mut self, bytes: &[u8]) {
        let Ok(Decoded::Whole(request, _)) = Request::decode(bytes) else { return };
        if let Shown::Close(_) = self.viewer.request(&mut self.hub, request, self.now) {
            self.viewer.ended(&mut self.hub, self.now);
            self.viewer = Viewer::default();
        }
    }

    /// Advances the time, and handles the results of the storage so far.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        while let Ok((handle, done)) = self.done.try_recv() {
            self.hub.done(handle, done, self.now);
        }
        self.hub.tick(self.now);
        if self.ours.tick(&mut self.hub, self.now, &mut Vec::new()).is_err() {
            self.ours = StreamControl::new(offer(), address());
        }
        self.hub.messages();
    }
}
