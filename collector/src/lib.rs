//! Receives traces over a network, stores them as CTF, and serves them to live viewers while they are recorded.
//!
//! A [`Collector`] replaces `lttng-relayd`. It accepts stock LTTng senders (`lttng create --set-url=net://HOST`), senders of this project, which use
//! the stream protocol, and stock viewers (`babeltrace2 -i lttng-live net://HOST`). It never sees a ring: senders deliver complete packets.
//!
//! Use this crate directly to run a collector in a program of your own; `tracectl collect` is the ready-made program.
//!
//! # The life of a packet
//!
//! 1. **Socket** (`server`): the connection's task reserves memory (`memory`), then reads the packet. `fragments` reassembles datagrams.
//! 2. **Hub** (`hub`): finds the session and stream by handle. Stream-protocol packets must have a valid header and checksum.
//! 3. **Order**: `reorder` sorts stream-protocol packets by number and requests missing ones again. Packets of stock senders wait in `pairing` for
//!    their indexes.
//! 4. **Chunk on disk** (`storage`): a second thread appends the packet and its index entry to the files of the session's current chunk. The hub
//!    rotates and removes chunks (`hub::streaming`).
//! 5. **Acknowledgement** (`stream_control`): the sender learns the lowest number not yet stored, and frees the packets before it.
//! 6. **Viewers** (`viewer`, `view`, `metadata`) read the packet from the file; in the stream protocol, once a synchronisation has released it.
//!
//! # Modules
//!
//! Connections are state machines without sockets, which tests and fuzzing drive with bytes: `relay` for stock senders, `stream_control` for the
//! stream protocol, `viewer` for viewers. `server` moves their bytes with tokio, on one thread. `shares` divides files, sessions and connections
//! fairly among addresses, and `pacing` pauses senders while the disk is slow. With the feature `nats`, `nats` takes traces from a broker, shared
//! with other collectors by leases, and `publish` forwards stored traces to a broker. [`prometheus`] serves metrics.
//!
//! # Limits
//!
//! Input is treated as hostile: message sizes, memory, connections, open files and waiting times are bounded ([`Options`]), and no name leads out of
//! the output directory. A collector has at most 8,192 sessions, a session 65,536 streams; a packet may use half of the memory limit. Events are not
//! decoded, except to count those of packets before a gap. Files are not synced to the disk: written packets survive a killed process, not a power
//! failure.
//!
//! ```no_run
//! use tracepoint_collector::{Collector, Options};
//!
//! let collector = Collector::bind(Options::new("/var/tmp/traces"))?;
//! println!("{:?}", collector.addresses());
//! collector.run(|report| {
//!     report.messages.iter().for_each(|message| eprintln!("{message}"));
//!     true
//! })?;
//! # Ok::<(), tracepoint_collector::CollectError>(())
//! ```

// Allowed in the module that receives datagrams.
#![deny(unsafe_code)]

#[cfg(feature = "nats")]
mod broker_status;
mod connection;
mod counts;
mod error;
mod files;
mod fragments;
mod hub;
#[doc(hidden)]
pub mod internal;
mod memory;
mod metadata;
mod names;
#[cfg(feature = "nats")]
mod nats;
mod options;
mod pacing;
mod pairing;
pub mod prometheus;
#[cfg(feature = "nats")]
mod publish;
mod relay;
mod reorder;
mod server;
mod shared;
mod shares;
#[cfg(feature = "nats")]
mod spool;
mod storage;
mod stream_control;
#[cfg(test)]
mod testing;
mod view;
mod viewer;

pub use counts::Counts;
pub use error::CollectError;
pub use ipnet::IpNet;
#[cfg(feature = "nats")]
pub use options::{DEFAULT_FLUSH, DEFAULT_LEASE, MIN_LEASE, NatsOptions, PublishOptions};
pub use options::{DEFAULT_GAP_PACKETS, DEFAULT_GAP_TIME, DEFAULT_MEMORY, MIN_MEMORY, Options};
pub use server::{Addresses, Collector, Report};
