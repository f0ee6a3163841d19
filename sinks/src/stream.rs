//! The sender: streams the packets of a trace over a network while they are recorded, to `lttng-relayd` or to our collector.
//!
//! ```text
//!   drain ── packet, metadata, time ──▶ Queue ──▶ Worker, on a thread of its own ──▶ Session ── control, data ──▶ peer
//!                                        bounded     connects, reconnects              Relay
//! ```
//!
//! The drain puts packets into a queue that is bounded by bytes; a packet is copied there once, out of its ring, and sent from there
//! behind a header of its own by gather I/O. The worker connects, and has a session with the peer: `relay` speaks the protocol of
//! `lttng-relayd`. While the queue is full the drain leaves packets in the rings, whose policy then decides; no site waits for the network.
//! What the peer has not acknowledged is not recorded: `delivery` counts what became of each packet.
//! `throttle` paces packets below the caps on the bandwidth, each a [`Bucket`], and drops what cannot be sent in time.
//! `promise` keeps the times that were promised to viewers: packets that begin earlier are mended, or dropped and counted.
//!
//! With the feature `nats` it publishes to a broker instead: `nats`.
//!
//! The protocols and the states are in `docs/format-stream.md`; their bytes are in [`tracepoint_wire`].

mod alignment;
mod collector;
mod connection;
mod delivery;
mod driver;
mod greeting;
mod metadata_packets;
#[cfg(feature = "nats")]
mod nats;
mod options;
mod peer;
mod promise;
mod queue;
mod rate;
mod relay;
mod session;
mod sink;
mod streams;
mod throttle;
mod watch;
mod worker;

pub use crate::bandwidth::Bandwidth;
pub use crate::bucket::{Bucket, BucketWords};
pub use crate::destination::{DEFAULT_MTU, DEFAULT_SYNC_INTERVAL, Destination, flush_age};
pub use crate::stream_stats::{LostPackets, StreamStats, StreamWatch};
#[doc(hidden)]
pub use driver::Driver;
pub use options::{DEFAULT_RESEND_BUFFER, StreamOptions};
pub use sink::StreamSink;
