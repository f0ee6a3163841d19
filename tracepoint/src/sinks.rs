//! Sinks: the outputs of sessions, and the trait for your own.
//!
//! ```
//! use tracepoint::session::Session;
//! use tracepoint::sinks::{CtfSink, TextSink};
//!
//! tracepoint::define_trace! { provider = "bookshop"; pub paid(cents: u64) { cents: u64 = cents } }
//!
//! # let place = std::env::temp_dir().join(format!("tracepoint-doc-sinks-{}", std::process::id()));
//! let session = Session::builder("both")
//!     .events("bookshop:*")
//!     .sink(CtfSink::create(&place)?) // a directory that babeltrace2 and Trace Compass read
//!     .sink(TextSink::new(Vec::new())) // lines of text, into anything that implements `Write`
//!     .start()?;
//! tracepoint::trace!(paid(1250));
//! session.stop()?;
//! assert!(place.join("metadata").exists());
//! # std::fs::remove_dir_all(&place)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | sink | feature | output |
//! |---|---|---|
//! | [`CtfSink`] | `session` | a CTF 1.8 directory, complete or in rotated chunks |
//! | [`TextSink`] | `session` | a line for each event |
//! | `DtSink` | `dt` | a circular file that keeps the newest packets |
//! | `StreamSink` | `stream`, `nats` | a collector, `lttng-relayd`, a NATS broker |
//! | `UdpSink` | `udp` | a client of the UDP trace server |
//!
//! A sink takes whole packets on the session's thread, so it never delays the traced code. A packet that a sink does not take (disk full,
//! peer gone) is counted as lost by its records, and the first [`SinkError`] is in the [`SinkReport`].
//!
//! Next: [`Sink`] and [`decode`] for a sink of your own; the book: *Extending it*.

pub use tracepoint_reader::text::{Style, TextOptions, TimeFormat};
pub use tracepoint_sinks::{
    ChannelDescription, ClockInfo, CtfError, CtfSink, EventDescription, NewEvents, Packet, ProcessInfo, Sink,
    SinkError, SinkId, SinkReport, StreamId, StreamInfo, TextSink, TraceInfo, TraceStart, account, decode,
};
#[cfg(feature = "dt")]
pub use tracepoint_sinks::{DtError, DtSink};
#[cfg(feature = "stream")]
pub use tracepoint_sinks::{StreamSink, stream};
#[cfg(feature = "udp")]
pub use tracepoint_sinks::{UdpSink, udp};
