//! The bytes of the protocols by which traces are carried over a network.
//!
//! Everything here encodes and decodes messages, in both directions. A decoder takes the bytes that have arrived, and either yields a message,
//! says how many more bytes it needs, or refuses them; no length that a peer announces makes it allocate more than has arrived. There is no
//! socket, clock or state, with one exception: `nats::JetStream`, behind the feature `nats`, is a connection to a broker.
//!
//! The crate does not know sessions, what a trace means, or files, except for that of a shared key. Metadata and packets are opaque, but for
//! the [`PacketHeader`]s of packets, which UDP batches are divided by and indexes are made of.
//!
//! | module | protocol | specification | feature |
//! |---|---|---|---|
//! | [`relay`] | `lttng-relayd` 2.13 and its senders | LTTng-tools 2.13, `src/common/sessiond-comm/relayd.h` | `stream` |
//! | [`live`] | relay daemons and stock live viewers | LTTng-tools 2.13, `src/bin/lttng-relayd/lttng-viewer-abi.h` | `stream` |
//! | [`stream`] | our senders and our collector; the shared key | `docs/format-stream.md` | `stream` |
//! | [`nats`] | subjects and messages in a NATS broker | `docs/nats.md` | `stream` |
//! | [`udp`] | the UDP trace server and its clients | `docs/format-udp.md` | `udp` |
//!
//! Without features there are only [`Broker`] and [`CONTROL_PORT`], the addresses of peers, and [`PacketHeader`].

#![forbid(unsafe_code)]

mod broker;
#[cfg(feature = "stream")]
mod bytes;
#[cfg(any(feature = "stream", feature = "udp"))]
// The feature `udp` alone uses only a part of it.
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

pub use broker::Broker;
#[cfg(feature = "stream")]
pub use bytes::{Decoded, Malformed};
pub use tracepoint_ring::channel::PacketHeader;

/// The default port of control connections.
pub const CONTROL_PORT: u16 = 5342;
