//! Exports traces to the formats of other viewers.
//!
//! An [`Exporter`] receives the items of a trace in the order of their times, and passes events, spans, losses and damage to a [`Format`].
//! [Spans](tracepoint_reader::SpanPart) are assembled here, for all formats: begin and end events are paired by span id; a span without an end is
//! shown as open; a begin before the start of the trace is computed from the duration. Formats write all data immediately, so traces larger than
//! memory can be exported. `docs/export.md` describes the contents of each format, its omissions, and the data kept in memory.
//!
//! Use this crate directly to export traces from a program of your own; `tracectl export` is the command.
//!
//! Formats share `spans`, which pairs and nests spans; `waits`, which follows the states of threads, and `states`, which passes them to formats;
//! `sources`, which numbers processes, threads and paths of spans; `symbols`, which names the functions of call stacks from the code mappings in the
//! metadata; `samples`, which counts samples of the processor by their call stacks; `off_cpu`, which sums waits by spans; and `plain`, which reduces
//! values to the types that formats have.
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
mod inside;
mod off_cpu;
mod otlp;
mod perfetto;
mod plain;
mod samples;
mod sources;
mod spans;
mod states;
mod symbols;
mod times;
mod waits;
mod why;

pub use chrome::Chrome;
pub use csv::{Csv, guard_formula};
pub use exporter::Exporter;
pub use folded::FoldedStacks;
pub use format::{Format, LossReport, Needs, Span, SpanEnd, SpanEvents, Summary, ThreadDetail, ThreadState};
pub use otlp::Otlp;
pub use perfetto::Perfetto;
pub use samples::maps_code;
pub use sources::{Process, Sources, Thread, ThreadId};
pub use times::TimeTree;
pub use waits::{Cause, Division, SpanTime, WaitKind};
pub use why::{Children, FunctionSamples, Reasons, SlowSpan, SpanGroup, Why};
