//! Records events and spans of [`tracing`](https://docs.rs/tracing) and records of [`log`](https://docs.rs/log), from a program and its dependencies.
//! Each callsite becomes a tracepoint, which `tracectl list` shows and `tracectl record -e 'tracing:hyper*'` records.
//!
//! Use this crate directly, in addition to [`tracepoint`](https://docs.rs/tracepoint).
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
//! | `info!(…)` with the target `hyper::proto` in line 120 | `tracing:hyper::proto:120` | `span_id`, and the event's fields |
//! | an event with an explicit name | `tracing:TARGET::NAME` | the same |
//! | a span | `tracing:TARGET::NAME_begin` | `span_id`, `parent_id`, and the span's fields |
//! | values recorded in a span later | `tracing:TARGET::NAME_record` | `span_id`, and the span's fields |
//! | a span is closed | `tracing:TARGET::NAME_end` | `span_id`, `duration_ns` |
//! | `log::info!(…)` | `log:record` | `level`, `target`, `module`, `file`, `line`, `message` |
//!
//! Records of `log` arrive through the layer if `tracing-subscriber` has the feature `tracing-log`, which is on by default; otherwise through
//! [`log::init`]. See [`log`](mod@log).
//!
//! The `span_id` of an event is the innermost span that this layer has seen entered on the thread; `parent_id` is the enclosing span; 0 means none.
//! The ids come from the same sequence as `span!` ids, so a trace can contain spans of both. Numbers, booleans and texts keep their types, per
//! event (field type `any`); all other values are recorded as their `Debug` text. The texts of one event share 2048 bytes; longer text is truncated
//! and ends with `…`. A field without a value is absent. Dots in field names become underscores: `http.method` is `http_method` in filters.
//!
//! # Limits
//!
//! * A callsite is listed once it was reached; `tracing` does not know it before. While a session records, the thread that reaches a new callsite
//!   waits there, once and for at most 500 ms, until the agent has enabled it, so that its first event is recorded.
//! * At most 16,384 tracepoints can be registered in a process; later callsites are never enabled. Their descriptions are never freed.
//! * A session of the agent reserves counters for 512 tracepoints registered later, 64 KiB in each ring; `max_events` in `session.toml` changes
//!   that. Further ones are not recorded, with a warning.
//! * Sessions in code, and the session of the variable `TRACEPOINT`, record only callsites known when they start.
//! * Entering and leaving a span is not recorded, only its begin and end.
//!
//! # Cost
//!
//! A disabled callsite has the interest `never`, unless another layer enables it. It is `sometimes` from its first use, or from the creation of a
//! `Dispatch`, until `tracing` queries the interest again: at a request of the agent, at the start or end of a session, or after 4096 queries at
//! events, by a short-lived thread `tracepoint-interest`. An enabled event takes no lock of this crate and allocates nothing in it. A span allocates,
//! to store its start time.
#![forbid(unsafe_code)]

mod callsites;
mod describe;
mod fields;
mod layer;
pub mod log;
mod switching;

pub use layer::layer;
