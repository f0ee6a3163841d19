//! The messages with which traces are carried over a network.
//!
//! Everything here encodes and decodes bytes, in both directions; it has no socket, no clock and no state. `relay` is the protocol by which
//! stock senders hand traces to a relay daemon, `stream` that between our senders and our collector, `live` that of stock live viewers, and `nats` has
//! what is published to a broker. Without the feature `stream` there are only the addresses of peers.

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

pub use broker::Broker;
#[cfg(feature = "stream")]
pub use bytes::{Decoded, Malformed};

/// The default port of control connections.
pub const CONTROL_PORT: u16 = 5342;
