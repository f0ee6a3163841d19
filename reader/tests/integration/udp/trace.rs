//! A trace whose events carry their numbers.

use std::ops::Range;
use tracepoint_reader::account::{Account, ChannelAccount, EventAccount, StreamAccount};
use tracepoint_ring::channel::{HEADER_SIZE, PacketHeader, StreamKey};

/// The id of the first kind of event.
const FIRST_ID: u16 = 5;

pub const UUID: [u8; 16] = [7; 16];

/// One stream class, one kind of event, one field.
pub const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
trace {
	major = 1; minor = 8; byte_order = le;
	uuid = "07070707-0707-0707-0707-070707070707";
	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; };
};
clock { name = "monotonic"; freq = 1000000000; offset = 0; absolute = TRUE; };
stream {
	id = 3;
	packet.context := struct {
		integer { size = 64; align = 8; map = clock.monotonic.value; } timestamp_begin;
		integer { size = 64; align = 8; map = clock.monotonic.value; } timestamp_end;
		uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded;
		uint32_t tid;
		integer { size = 64; align = 64; } events_before;
	};
	event.header := struct {
		uint16_t id;
		integer { size = 48; align = 8; map = clock.monotonic.value; } timestamp;
	} align(8);
};
event { name = "test:numbered"; id = 5; stream_id = 3; fields := struct { uint64_t _n; }; };
"#;

/// The time at which the event with this number was recorded.
pub fn time_of(number: u64) -> u64 {
    1_000_000_000 + number * 1000
}

/// The text that extends the metadata: the `number`th further event with the same field, longer than a message.
pub fn declaration(number: u16) -> String {
    let long = "x".repeat(1500);
    let id = FIRST_ID + number;
    format!(
        "event {{ name = \"test:numbered{number}\"; /* {long} */ id = {id}; stream_id = 3; fields := struct {{ uint64_t _n; }}; }};\n"
    )
}

/// Appends a packet with these events, of a kind that the metadata has after it has grown `kind` times.
pub fn packet(out: &mut Vec<u8>, instance: u64, number: u64, before: u64, kind: u16, events: Range<u64>) {
    let stream = StreamKey { uuid: UUID, class: 3, instance };
    let size = HEADER_SIZE + 16 * (events.end - events.start) as usize;
    let header = PacketHeader {
        end: time_of(events.end - 1),
        sequence: number,
        tid: 40 + instance as u32,
        events_before: before,
        ..PacketHeader::empty(stream, time_of(events.start)).with_size(size)
    };
    out.extend_from_slice(&header.bytes());
    for event in events {
        out.extend_from_slice(&(time_of(event) << 16 | u64::from(FIRST_ID + kind)).to_le_bytes());
        out.extend_from_slice(&event.to_le_bytes());
    }
}

/// The numbers of a packet's events.
pub fn numbers(packet: &[u8]) -> impl Iterator<Item = u64> {
    let records = packet[HEADER_SIZE..].chunks_exact(16);
    records.map(|record| u64::from_le_bytes(record[8..].try_into().unwrap()))
}

/// The account of a trace with these numbers of events in its streams, all of them sent.
pub fn account(streams: [u64; 2]) -> Vec<u8> {
    let mut account = Account::new(UUID, "test", 77);
    account.complete = true;
    let mut event = EventAccount::default();
    (event.id, event.name) = (5, "test:numbered".to_owned());
    event.recorded = streams.iter().sum();
    event.fired = event.recorded;
    let mut channel = ChannelAccount::default();
    (channel.id, channel.name) = (3, "main".to_owned());
    channel.events.push(event);
    for (instance, recorded) in streams.into_iter().enumerate() {
        let mut stream = StreamAccount::default();
        (stream.instance, stream.recorded, stream.written) = (instance as u64, recorded, recorded);
        channel.streams.push(stream);
    }
    account.channels.push(channel);
    account.to_json()
}
