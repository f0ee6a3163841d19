//! The sender: streams a trace's packets over a network while they are recorded, to `lttng-relayd` or to a collector of this project.
//!
//! ```text
//!   drain ── packet, metadata, time ──▶ Queue ──▶ Worker, on a thread of its own ──▶ Session ── control, data ──▶ peer
//!                                        bounded     connects, reconnects              Relay
//! ```
//!
//! The drain copies each packet once, out of its ring into a queue whose size in bytes is bounded. The packet is sent from there with gather I/O,
//! behind a separate header. The worker connects and runs a session with the peer; `relay` implements the protocol of `lttng-relayd`. While the queue
//! is full, the drain leaves packets in the rings, whose policy then applies; no traced thread waits for the network. Packets count as recorded only
//! once the peer has acknowledged them: `delivery` counts the outcome of each packet. `throttle` paces packets below the bandwidth caps, each a
//! [`Bucket`], and drops packets that cannot be sent in time. `promise` keeps the times promised to viewers: it adjusts packets that begin earlier,
//! or drops and counts them.
//!
//! With the feature `nats`, packets can be published to a broker instead: `nats`.
//!
//! The protocols and states are described in `docs/format-stream.md`; [`tracepoint_wire`] encodes and decodes the messages.

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
pub use crate::destination::{DEFAULT_MTU, DEFAULT_SYNC_INTERVAL, Destination, DestinationError, flush_age};
pub use crate::stream_stats::{LostPackets, StreamStats, StreamWatch};
#[doc(hidden)]
pub use driver::Driver;
pub use options::{DEFAULT_RESEND_BUFFER, StreamOptions};
pub use sink::StreamSink;
#[cfg(feature = "nats")]
pub use tracepoint_wire::nats::{Broker, BrokerUrlError};
pub use tracepoint_wire::stream::SharedKey;
