//! The messages with which traces are carried over a network.
//!
//! Everything here encodes and decodes bytes, in both directions; it has no socket, no clock and no state. [`relay`] is the protocol by which
//! stock senders hand traces to a relay daemon, [`stream`] that between our senders and our collector, [`live`] that of stock live viewers, and [`nats`] has
//! what is published to a broker.

mod bytes;
pub mod live;
pub mod nats;
pub mod relay;
pub mod stream;

pub use bytes::{Decoded, Malformed};
