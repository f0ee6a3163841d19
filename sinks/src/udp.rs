//! The UDP trace server: serves events to one client at a time, in the layout that the client understands.
//!
//! Packets wait in a `PacketQueue`; a `Dispatcher` handles commands and runs a session with the client, in the legacy layout or in batches; an
//! `Outbox` sends many datagrams with one system call. The server has its own thread, whose events are never traced. The protocol is described in
//! `docs/format-udp.md`; [`tracepoint_wire::udp`] encodes and decodes its messages.
//!
//! `ingest` adds messages of other programs to the trace, `split` cuts packets to the size of datagrams, and `replay` serves a recorded trace.

mod address_validation;
mod dispatcher;
mod event_merge;
mod ingest;
mod ingest_account;
mod losses;
mod options;
mod outbox;
mod queue;
mod rate_limit;
#[cfg(feature = "replay")]
mod replay;
mod server;
mod session;

mod sink;
mod split;
mod stats;
mod worker;

pub use crate::udp_stats::{UdpStats, UdpWatch};
pub use ingest::{MAX_MESSAGE, TraceClock};
pub use options::{
    DEFAULT_ALLOWED_RATE, DEFAULT_LEGACY_PACE, DEFAULT_LEGACY_RATE, DEFAULT_LIMIT, DropPolicy, LegacyContent,
    UdpOptions, port_from_environment,
};
pub use outbox::DATAGRAMS_PER_CALL;
#[cfg(feature = "replay")]
pub use replay::Replay;
pub use server::{Packet, UdpServer};
pub use sink::UdpSink;
pub use tracepoint_wire::udp::SERVER_PORT as DEFAULT_PORT;
