//! The bytes of the protocols by which traces are carried over a network.
//!
//! Everything here encodes and decodes messages, in both directions. A decoder takes the bytes that have arrived, and either yields a message,
//! says how many more bytes it needs, or refuses them; no length that a peer announces makes it allocate more than has arrived. There is no
//! socket, clock or state, with one exception: `nats::JetStream`, behind the feature `nats`, is a connection to a broker.
//!
//! The crate does not know files, sessions, or what a trace means. Metadata and packets are opaque, but for the header of a packet, which UDP
//! batches and indexes are made of.
//!
//! | module | protocol | specification | feature |
//! |---|---|---|---|
//! | [`relay`] | `lttng-relayd` 2.13 and its senders | `lttng-tools`, `include/lttng/…/relayd` | `stream` |
//! | [`live`] | relay daemons and stock live viewers | `lttng-tools`, `lttng-viewer-abi.h` | `stream` |
//! | [`stream`] | our senders and our collector; the shared key | `docs/format-stream.md` | `stream` |
//! | [`nats`] | subjects and messages in a NATS broker | `docs/nats.md` | `stream` |
//! | [`udp`] | the UDP trace server and its clients | `docs/format-udp.md` | `udp` |
//!
//! Without features there are only the addresses of peers: [`Broker`] and [`CONTROL_PORT`].

#![forbid(unsafe_code)]

mod broker;
#[cfg(feature = "stream")]
mod bytes;
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

/// The default port of control connections.
pub const CONTROL_PORT: u16 = 5342;
