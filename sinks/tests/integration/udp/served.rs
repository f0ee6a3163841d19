//! A server with a trace that is written by hand.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tracepoint::Level;
use tracepoint::field::{Base, ByteOrder, FieldDescriptor, FieldType, IntegerType};
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader, Policy, StreamId, StreamKey};
use tracepoint_sinks::udp::{Packet, UdpOptions, UdpServer, UdpStats};
use tracepoint_sinks::{ChannelDescription, ClockInfo, EventDescription, ProcessInfo, TraceInfo, ctf};

pub(crate) const UUID: [u8; 16] = *b"0123456789abcdef";
/// The offset of the trace's clock from the epoch, in ns.
pub(crate) const OFFSET: i64 = 1_700_000_000_000_000_000;

const U32: FieldType =
    FieldType::Integer(IntegerType { bits: 32, signed: false, base: Base::Decimal, order: ByteOrder::Little });
static NUMBER: [FieldDescriptor; 1] = [FieldDescriptor { name: "n", ty: U32, doc: "" }];
static TEXT: [FieldDescriptor; 2] =
    [FieldDescriptor { name: "n", ty: U32, doc: "" }, FieldDescriptor { name: "text", ty: FieldType::Text, doc: "" }];

/// The metadata of the trace.
pub(crate) fn metadata() -> String {
    let clock = ClockInfo { uuid: Some([7; 16]), offset: OFFSET };
    let trace = TraceInfo { uuid: UUID, name: "test".to_owned(), clock, process: ProcessInfo::default() };
    let channel = ChannelDescription {
        class: 0,
        name: "channel0".to_owned(),
        policy: Policy::Discard,
        packet_size: 1 << 20,
        context: Vec::new(),
    };
    let event = |id, name: &str, fields| EventDescription {
        class: 0,
        id,
        name: name.to_owned(),
        level: Level::Info,
        fields,
        doc: "",
        format: "",
    };
    ctf::metadata(&trace, &[channel], &[event(0, "test:number", &NUMBER), event(1, "test:text", &TEXT)])
}

/// A server, and the counters of its streams.
pub(crate) struct Served {
    pub(crate) server: UdpServer,
    events: [u64; 4],
    time: u64,
}

/// The options of a server on a free port.
pub(crate) fn options() -> UdpOptions {
    UdpOptions::default().address(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

impl Served {
    /// A server with the metadata of the trace, and no events yet.
    pub(crate) fn start(options: UdpOptions) -> Self {
        let mut server = UdpServer::bind(options).expect("a free port");
        server.describe(&metadata()).expect("metadata");
        server.start(Box::new(|| 1)).expect("a thread");
        Self { server, events: [0; 4], time: 1000 }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn stats(&self) -> UdpStats {
        self.server.stats()
    }

    /// Pushes a packet with these numbers to stream `instance`, each 1 ns after the previous one.
    pub(crate) fn numbers(&mut self, instance: u64, numbers: impl IntoIterator<Item = u32>) {
        let records: Vec<_> = numbers.into_iter().map(|n| (0, n.to_le_bytes().to_vec())).collect();
        self.packet(instance, &records);
    }

    /// Pushes a packet with one text to stream `instance`.
    pub(crate) fn text(&mut self, instance: u64, n: u32, text: &str) {
        self.packet(instance, &[(1, [&n.to_le_bytes()[..], text.as_bytes(), b"\0"].concat())]);
    }

    /// Pushes a packet of records: id and fields.
    pub(crate) fn packet(&mut self, instance: u64, records: &[(u16, Vec<u8>)]) {
        let begin = self.time;
        let mut body = Vec::new();
        for (id, fields) in records {
            self.time += 1;
            body.extend_from_slice(&(self.time << 16 | u64::from(*id)).to_le_bytes());
            body.extend_from_slice(fields);
        }
        let before = &mut self.events[instance as usize];
        let stream = StreamKey { uuid: UUID, class: 0, instance };
        let header = PacketHeader {
            end: self.time,
            tid: 1,
            events_before: *before,
            ..PacketHeader::empty(stream, begin).with_size(HEADER_SIZE + body.len())
        };
        *before += records.len() as u64;
        let bytes = [&header.bytes()[..], &body].concat();
        let events = records.len() as u64;
        self.server.push(Packet { stream: StreamId { class: 0, instance }, bytes, events });
    }

    /// Ends the trace, and waits until the server has ended.
    pub(crate) fn end(&mut self) {
        self.server.end(None);
        self.server.wait();
    }

    /// Waits until the statistics of the server are as expected.
    pub(crate) fn until(&self, wanted: impl Fn(&UdpStats) -> bool) {
        let mut looks = 0;
        while !wanted(&self.stats()) {
            looks += 1;
            assert!(looks < 20_000, "still not: {:?}", self.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
