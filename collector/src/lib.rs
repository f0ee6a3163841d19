//! Receives traces over a network, stores them as CTF, and serves them to live viewers, while they are recorded.
//!
//! A [`Collector`] takes the place of `lttng-relayd`: stock senders (`lttng create --set-url=net://HOST`) and stock viewers
//! (`babeltrace2 -i lttng-live net://HOST`) connect to it. Each connection is a state machine without a socket; tokio moves the bytes, on one
//! thread, and a second thread writes files. What arrives is treated as hostile: sizes, memory, connections and waiting times are bounded, and
//! no name leads out of the output directory.
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

#![forbid(unsafe_code)]

mod connection;
mod counts;
mod error;
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
pub use nats::{DEFAULT_LEASE, LEAST_LEASE};
pub use options::{DEFAULT_GAP_PACKETS, DEFAULT_GAP_TIME, DEFAULT_MEMORY, LEAST_MEMORY, Options};
#[cfg(feature = "nats")]
pub use publish::DEFAULT_FLUSH;
pub use server::{Addresses, Collector, Report};
