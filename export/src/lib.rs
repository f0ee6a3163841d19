//! Writes traces in the formats of other viewers.
//!
//! An [`Exporter`] takes the items of a trace in the order of their times, and gives them to a [`Format`]: events, spans, losses and damage.
//! [Spans](tracepoint_reader::SpanPart) are put together here, once for all formats: the events that begin and end a span are paired by its
//! id, what did not end is shown as open, and what began before the trace is given its begin by its duration. Formats write what they are
//! given at once, so that traces larger than memory can be exported. `docs/export.md` has what each format shows, what it leaves out, and
//! what is kept in memory.
//!
//! ```no_run
//! use std::{fs::File, io::BufWriter};
//! use tracepoint_export::{Exporter, Perfetto};
//! use tracepoint_reader::Trace;
//!
//! let trace = Trace::open("/tmp/trace".as_ref())?;
//! let mut exporter = Exporter::new(Perfetto::new(BufWriter::new(File::create("/tmp/trace.pftrace")?)));
//! for item in trace.items() {
//!     exporter.item(&item)?;
//! }
//! let (_, summary) = exporter.finish()?;
//! println!("{} events, {} of them lost", summary.events, summary.lost_events);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod chrome;
mod csv;
mod exporter;
mod folded;
mod format;
mod otlp;
mod perfetto;
mod plain;
mod sources;
mod spans;
mod symbols;
mod times;

pub use chrome::Chrome;
pub use csv::{Csv, guard_formula};
pub use exporter::Exporter;
pub use folded::Folded;
pub use format::{Format, Inside, LossReport, Needs, Span, SpanEnd, Summary};
pub use otlp::Otlp;
pub use perfetto::Perfetto;
pub use sources::{Process, Sources, Thread, ThreadId};
pub use times::TimeTree;
