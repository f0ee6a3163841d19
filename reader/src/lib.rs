//! Reads the traces that `tracepoint` programs record, and any other CTF 1.8 trace.
//!
//! The crate contains no tracer: nothing here fires, filters or records events, starts a session or controls a process. It depends on
//! `tracepoint_wire` for the network protocols, on `datatrace` for dt files, and on `tracepoint_ring` for the layout of rings.
//!
//! Use this crate directly in programs that evaluate traces, as `tracectl` does; programs that are traced use `tracepoint`.
//!
//! Main types, in the order of the data:
//!
//! - [`Metadata`] describes the layout of a trace.
//! - [`StreamReader`] reads the packets of one stream file, [`PacketDecoder`] one packet in memory. Both return [`Event`]s with [`Value`]s.
//! - [`Trace`] opens a directory or a dt file, and merges the events of all its streams by time into [`Item`]s. These include each [`Loss`] that the
//!   tracer counted and each [`Damage`] that the reader found. [`text`] and [`json`] write items.
//! - [`Trace::visit`] reads the same on all processors, for work that does not depend on the order of streams. [`Trace::visit_packets`] visits
//!   them packet by packet.
//! - [`account`] is the tracer's own count of the outcome of every event, and [`verify()`] balances it against the trace.
//! - [`recover()`] makes a trace from the rings that a process left behind.
//! - [`DtTrace`] is a trace in a circular dt file, and [`convert`] converts between dt files and directories.
//! - [`udp`] is the client of the UDP trace server, [`live`] a viewer of live sessions, and [`kernel`] decodes Linux tracepoint data.
//!
//! A packet's way to an event: `source` reads bytes through a window of bounded size, `checked_packet` verifies the checksum, `packet` decodes the
//! header, and `record::decode` decodes the tracer's own records; `decode` decodes all others. `merge` then orders the events by time.
//!
//! Cargo features select parts; all are on by default: `traces` (files and directories), `control` (the rings of other processes, and the
//! kernel), `stream` (live viewing), `udp` and `usdt`. A program that
//! only records itself needs none of them.
//!
//! Input is not trusted: lengths, depths and memory are bounded, no input causes a panic, and damage in one stream leaves the
//! others readable. A trace may be larger than memory.
//!
//! ```no_run
//! use std::io::{self, Write};
//! use tracepoint_reader::{Trace, text::{TextOptions, TextWriter}};
//!
//! let trace = Trace::open("/tmp/trace".as_ref())?;
//! let mut out = io::stdout().lock();
//! let mut writer = TextWriter::new(TextOptions::default());
//! for item in trace.items() {
//!     writer.write_item(&mut out, &item)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
// Items needed only by traces or controllers in modules that packets need as well.
#![cfg_attr(not(all(feature = "control", feature = "traces")), allow(dead_code))]

pub mod account;
mod boot_id;
mod checked_packet;
mod checksum;
mod chunk;
#[cfg(feature = "traces")]
mod clock_alignment;
#[cfg(feature = "traces")]
pub mod convert;
mod decode;
mod directories;
#[cfg(feature = "traces")]
pub mod dt;
mod error;
mod event;
mod fields;
#[cfg(feature = "traces")]
mod follow;
mod headers;
mod item;
pub mod json;
#[cfg(feature = "control")]
pub mod kernel;
#[cfg(feature = "stream")]
pub mod live;
mod loss;
#[cfg(feature = "traces")]
mod merge;
pub mod metadata;
mod origin;
mod packet;
#[cfg(feature = "traces")]
mod parallel;
mod path_bytes;
pub mod process;
mod record;
pub mod recover;
#[cfg(feature = "control")]
mod remote;
mod ring;
#[cfg_attr(not(target_os = "linux"), path = "secure_exec/elsewhere.rs")]
pub mod secure_exec;
mod source;
mod span;
#[cfg(feature = "traces")]
mod stream;
mod take;
pub mod text;
pub mod time_namespace;
#[cfg(feature = "udp")]
pub mod udp;
#[cfg(feature = "usdt")]
pub mod usdt;
mod value;
#[cfg(feature = "traces")]
pub mod verify;
mod view;
mod watermark;
#[cfg_attr(not(feature = "traces"), path = "window/file_only.rs")]
mod window;

pub use chunk::{chunk_name, chunk_number};
pub use directories::stream_files;
pub use error::ReadError;
pub use event::{Event, Stream};
pub use headers::Packets;
pub use item::Item;
pub use loss::{Damage, Loss, LossKind};
pub use metadata::Metadata;
pub use metadata::types::TRACER_OPTIONS;
pub use origin::Origin;
pub use packet::{Packet, PacketDecoder};
pub use recover::{RecoverError, RecoverySummary, recover};
pub use span::SpanPart;
pub use value::{Int, StructValue, Value};
pub use view::EventView;

#[cfg(feature = "traces")]
pub use clock_alignment::ClockAlignment;
#[cfg(feature = "traces")]
pub use dt::{DtSummary, DtTrace};
#[cfg(feature = "traces")]
pub use follow::Follow;
#[cfg(feature = "traces")]
pub use merge::{IndexedPacket, Items, PacketRun, PollResult, StreamIndex, Trace, TraceIndex, TraceVisitor};
#[cfg(feature = "traces")]
pub use parallel::{Parallelism, VisitSummary, Visitor};
#[cfg(feature = "traces")]
pub use stream::{PacketEnd, Step, StreamReader};
#[cfg(feature = "traces")]
pub use verify::{Report, verify, verify_with};

/// Items shared with the other crates of this workspace. They are not a public API, and may change in any release.
#[doc(hidden)]
pub mod internal {
    pub use crate::boot_id::boot_id;
    pub use crate::checksum::{ChecksumResult, check, check_padded, checksum, seal, sealed};
    pub use crate::record::sizes::{Record, RecordSizes, Records, Unreadable, extend_time};
    pub use crate::recover::{MemoryRings, snapshot_memory};
    #[cfg(feature = "control")]
    pub use crate::remote::{ChannelInfo, End, RemoteConsumer, Round, TakenPacket};
    pub use crate::ring::{
        Bytes, EventCounters, Identity, RING_EXTENSION, Ring, RingPacket, Side, StreamCounters, StreamSnapshot,
        SubBuffer, SubBuffers,
    };
    pub use crate::watermark::Watermark;
}
