//! Records what a program and its dependencies say through [`tracing`](https://docs.rs/tracing) and [`log`](https://docs.rs/log): each
//! callsite is a tracepoint, which `tracectl list` shows and `tracectl record -e 'tracing:hyper*'` records.
//!
//! ```ignore
//! use tracing_subscriber::prelude::*;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let _agent = tracepoint::Agent::start()?; // the program is controlled from outside
//!     tracing_subscriber::registry().with(tracepoint_tracing::layer()).init(); // beside other layers, if any
//!     tracepoint_tracing::log::init()?; // for crates that use `log`
//!     // …
//!     Ok(())
//! }
//! ```
//!
//! # Events
//!
//! | in the program | tracepoint | fields |
//! |---|---|---|
//! | `info!(…)` of the target `hyper::proto` in line 120 | `tracing:hyper::proto:120` | `span_id`, and those of the event |
//! | an event with a name of its own | `tracing:TARGET::NAME` | the same |
//! | a span | `tracing:TARGET::NAME_begin` | `span_id`, `parent_id`, and those of the span |
//! | the same: values that are recorded later | `tracing:TARGET::NAME_record` | `span_id`, and those of the span |
//! | the same: it is closed | `tracing:TARGET::NAME_end` | `span_id`, `duration_ns` |
//! | `log::info!(…)` | `log:record` | `level`, `target`, `module`, `file`, `line`, `message` |
//!
//! Records of `log` come through the layer, if `tracing-subscriber` has its feature `tracing-log`, one of its default features, and by
//! [`log::init`] if not; see [`log`](mod@log).
//!
//! The `span_id` of an event is the innermost span that this layer has seen entered on the thread, `parent_id` the one around a span; 0:
//! none. The numbers are those of `span!`, so that a trace can have spans of both. Numbers, booleans
//! and texts keep their types, which each event has by itself (the field type `any`); all other values are recorded as the text of their
//! `Debug`. The texts of an event have 2048 bytes together; what does not fit is cut off and ends with `…`. A field without a value is
//! absent. Dots in names of fields become underscores: `http.method` is `http_method` in filters.
//!
//! # Limits
//!
//! * A callsite is listed when it was reached once; `tracing` does not know it before. While a session records, its thread waits there,
//!   once, for at most 500 ms, until the agent has switched it on, so that its first event is recorded, too.
//! * At most 16,384 tracepoints are registered while the program runs; later callsites are never enabled. What describes them is never freed.
//! * A session of the agent has counters for 512 tracepoints that come later, which take 64 KiB in each ring; `max_events` in
//!   `session.toml` changes that. Further ones are left out, with a notice.
//! * Sessions in code, and the one of the variable `TRACEPOINT`, record the callsites that are known when they start.
//! * That a span was entered and left is not recorded, only its begin and its end.
//!
//! # Cost
//!
//! Off, the interest of a callsite is `never`, unless another layer wants it. It is `sometimes` from its first use, and from the making of a
//! `Dispatch`, until `tracing` asks again: because of the agent, of the start or end of a session, or, after 4096 questions at events, of a thread
//! `tracepoint-interest` that ends at once. On, an event takes no lock of this crate and allocates nothing in
//! it. A span allocates: it keeps the time of its begin.
#![forbid(unsafe_code)]

mod callsites;
mod describe;
mod fields;
mod layer;
pub mod log;
mod switching;

pub use layer::layer;
