//! The encodings of the network protocols that carry traces, in both directions.
//!
//! Internal to [`tracepoint`](https://docs.rs/tracepoint); no stable API.
//!
//! The crate only converts between messages and bytes. There is no socket, clock or state, with one exception: `nats::JetStream`, behind the feature
//! `nats`, is a connection to a broker. Sessions, retransmission and storage are in the crates that use it (`tracepoint_sinks`, `tracepoint_reader`,
//! `tracepoint_collector`). It knows no files, except the file of a shared key, and not the contents of a trace: metadata and packets are opaque,
//! except for the [`PacketHeader`]s of packets, which index entries and UDP batches are made from.
//!
//! A decoder gets the bytes received so far. It returns a message and its size, or the number of bytes it still needs, or the reason why the bytes
//! are not a message (`Decoded` and `DecodeError` for connections; a datagram is complete or malformed). Bytes from a peer are not trusted: no
//! announced length makes a decoder allocate more than was received, and no input causes a panic.
//!
//! A packet on its way from a sender to a live viewer passes these types:
//!
//! 1. `stream::AnnounceReply` gives its stream a handle, and `stream::wire_head` inserts the handle and the packet's number after its first 32 bytes.
//! 2. `stream::RecordHeader` precedes it on a TCP connection, or `stream::Datagram` contains a fragment of it on UDP.
//! 3. `stream::stored_packet` removes the inserted bytes in the collector, and `stream::Ack` acknowledges it.
//! 4. `live::Index` describes it to a viewer, which fetches it with `live::Request::Packet`.
//!
//! | module | protocol | specification | feature |
//! |---|---|---|---|
//! | [`relay`] | `lttng-relayd` 2.13 and its senders | LTTng-tools 2.13, `src/common/sessiond-comm/relayd.h` | `stream` |
//! | [`live`] | relay daemons and live viewers | LTTng-tools 2.13, `src/bin/lttng-relayd/lttng-viewer-abi.h` | `stream` |
//! | [`stream`] | this project's senders and collector; the shared key | `docs/format-stream.md` | `stream` |
//! | [`nats`] | subjects and messages in a NATS broker | `docs/nats.md` | `stream` |
//! | [`udp`] | the UDP trace server and its clients | `docs/format-udp.md` | `udp` |
//!
//! Without features there is only [`PacketHeader`].

#![forbid(unsafe_code)]

#[cfg(feature = "stream")]
mod bytes;
#[cfg(any(feature = "stream", feature = "udp"))]
// With the feature `udp` alone, only a part of it is used.
#[cfg_attr(not(feature = "stream"), allow(dead_code))]
mod fields;
#[cfg(feature = "stream")]
pub mod live;
#[cfg(feature = "stream")]
pub mod nats;
#[cfg(feature = "stream")]
pub mod relay;
#[cfg(feature = "stream")]
pub mod stream;
#[cfg(feature = "udp")]
pub mod udp;

#[cfg(feature = "stream")]
pub use bytes::{DecodeError, Decoded};
pub use tracepoint_ring::channel::PacketHeader;
