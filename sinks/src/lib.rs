//! Moves packets of events out of rings and into sinks: trace directories, files, text, the network.
//!
//! In the order in which a packet meets them: a [`Drain`] takes packets out of [`tracepoint_ring::channel::OpenChannel`]s and
//! gives each to every [`Sink`]. A [`CtfSink`] appends it to a file of a CTF 1.8 directory, a [`DtSink`] replaces the oldest packet in
//! a circular file, a [`TextSink`] writes its events as lines, and a [`UdpSink`] serves them to a network client. Before the first
//! packet a sink gets a [`TraceStart`] and the descriptions of the [events](NewEvents); at the end it gets the [`account`] of what was
//! fired, recorded and lost.
//!
//! The packets come from channels of this process, out of the ring files of another one ([`Drain::remote`]), or from the buffers of the kernel
//! ([`Drain::kernel`]).
//!
//! A packet that a sink did not take is counted as lost, by its records, and the sink's first error is kept for its report.
//!
//! This crate knows neither sessions nor the command line. To write a sink of your own, implement [`Sink`].

#![forbid(unsafe_code)]

mod accounting;
pub mod ctf;
mod description;
mod drain;
mod dt;
mod error;
mod metadata;
mod signals;
mod sink;
pub mod stream;
mod text;
mod trace_info;
pub mod udp;

pub use ctf::{CtfError, CtfSink, dated_directory, remove_traces};
pub use datatrace::Error as DtError;
pub use description::{ChannelDescription, EventDescription, NewEvents, TraceStart};
pub use drain::{Drain, Drained, KernelCounts, KernelRings, LocalRings, RemoteRings, RingSupplier, SinkId, SinkReport};
pub use dt::DtSink;
pub use error::SinkError;
#[doc(hidden)]
pub use metadata::{EnvironmentValue, environment_block};
#[doc(hidden)]
pub use sink::{Output, Rotation, SinkExtension};
pub use sink::{Sink, StreamInfo};
pub use text::TextSink;
pub use trace_info::{ClockInfo, ProcessInfo, TraceInfo};
pub use tracepoint_ring::channel::{Packet, StreamId};
/// Decodes packets, for sinks that look at single events.
pub mod decode {
    pub use tracepoint_reader::{Event, Metadata, PacketDecoder, Value};
}
pub use stream::StreamSink;
/// What happened to every event, in the form in which it is written beside a trace.
pub use tracepoint_reader::account;
/// Takes the packets of another process out of its ring files, for a [`Drain::remote`].
pub use tracepoint_reader::internal::RemoteConsumer;
pub use udp::UdpSink;
