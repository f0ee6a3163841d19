//! Moves packets of events out of rings and into sinks: trace directories, files, text, the network.
//!
//! Programs use this crate as `tracepoint::sinks`. Use it directly to publish a sink of your own: implement [`Sink`].
//!
//! A [`Drain`] takes packets out of [`tracepoint_ring::channel::OpenChannel`]s and gives each to every [`Sink`]. A [`CtfSink`] appends it to a file
//! of a CTF 1.8 directory, a `DtSink` replaces the oldest packet in a circular file, a [`TextSink`] writes its events as lines, a `StreamSink` sends
//! it to a collector, and a `UdpSink` serves its events to a network client; cargo features enable those that need a network or circular files.
//! Before the first packet, a sink gets a [`TraceStart`] and the descriptions of the [events](NewEvents); at the end it gets the [`account`] of
//! events that were fired, recorded and lost.
//!
//! Packets come from channels of this process, from the ring files of another one (`Drain::remote`), or from the buffers of the kernel
//! (`Drain::kernel`); the feature `control` enables both.
//!
//! A packet that a sink did not take is counted as lost, by its records, and the sink's first error is kept for its report.
//!
//! A thread that drains runs a [`consumer_loop`], begins as an [`own_thread`], and shares its drain behind a [`YieldingLock`].
//!
//! This crate does not depend on sessions or the command line.

#![forbid(unsafe_code)]
// Code that only some of the sinks use.
#![cfg_attr(
    not(all(feature = "control", feature = "dt", feature = "replay", feature = "stream", feature = "udp")),
    allow(dead_code)
)]

#[cfg(all(
    not(target_os = "linux"),
    any(feature = "control", feature = "dt", feature = "replay", feature = "stream", feature = "udp")
))]
compile_error!(
    "the features `control`, `dt`, `nats`, `stream` and `udp` are for Linux; `session` alone builds on this system"
);

mod accounting;
mod bandwidth;
mod bucket;
pub mod consumer_loop;
pub mod ctf;
mod description;
mod destination;
mod drain;
#[cfg(feature = "dt")]
mod dt;
mod error;
mod metadata;
pub mod own_thread;
mod sink;
#[cfg(feature = "stream")]
pub mod stream;
mod stream_stats;
#[cfg_attr(not(target_os = "linux"), path = "system/elsewhere.rs")]
mod system;
mod text;
mod trace_info;
#[cfg(feature = "udp")]
pub mod udp;
mod udp_stats;
mod yielding_lock;

pub use bandwidth::Bandwidth;
pub use bucket::{Bucket, BucketWords};
pub use ctf::{CtfError, CtfSink, dated_directory, remove_traces};
#[cfg(feature = "dt")]
pub use datatrace::Error as DtError;
pub use description::{ChannelDescription, EventDescription, NewEvents, TraceStart};
pub use destination::{DEFAULT_MTU, DEFAULT_SYNC_INTERVAL, Destination, DestinationError, flush_age};
pub use drain::{Drain, DrainRound, LocalRings, RingSupplier, SinkId, SinkReport};
#[cfg(feature = "control")]
pub use drain::{KernelCounts, KernelRings, RemoteRings};
#[cfg(feature = "dt")]
pub use dt::DtSink;
pub use error::SinkError;
#[doc(hidden)]
pub use metadata::{EnvironmentValue, environment_block};
#[doc(hidden)]
pub use sink::{Output, Rotation, SinkExtension};
pub use sink::{Sink, StreamInfo};
pub use stream_stats::{LostPackets, StreamStats, StreamWatch};
pub use text::{TextFile, TextSink};
pub use trace_info::{ClockInfo, ProcessInfo, TraceInfo};
pub use tracepoint_ring::channel::{Packet, StreamId};
/// Decodes packets, for sinks that look at single events.
pub mod decode {
    pub use tracepoint_reader::{Damage, Event, Metadata, PacketDecoder, Value};
}
#[cfg(feature = "stream")]
pub use stream::StreamSink;
/// Counts of the outcome of every event, in the form in which they are written next to a trace.
pub use tracepoint_reader::account;
/// Takes the packets of another process out of its ring files, for a [`Drain::remote`].
#[cfg(feature = "control")]
pub use tracepoint_reader::internal::RemoteConsumer;
#[cfg(feature = "udp")]
pub use udp::UdpSink;
pub use udp_stats::{UdpStats, UdpWatch};
pub use yielding_lock::YieldingLock;
