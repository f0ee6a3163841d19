//! Statistics over tracepoints. A statistic summarises events on the thread that fires them, so that a question can be answered without
//! recording the events.
//!
//! Programs use this crate as `tracepoint::probes`, with the feature `session` of [`tracepoint`](https://docs.rs/tracepoint).
//!
//! | statistic | answers |
//! |---|---|
//! | [`Count`] | how often an event occurs, in total or by the values of one or two fields |
//! | [`Histogram`] | how large a field is: percentiles, in total or by group |
//! | [`Latency`] | how long it takes from one event to another one with the same key, in total or by group |
//! | [`EventRate`] | how many events occur in each of the last 60 seconds |
//! | [`Last`] | the last values of a field |
//! | [`Top`] | the most frequent values of a field, with an error bound |
//! | [`Sample`] | a filter: one in N events |
//!
//! ```
//! use tracepoint_probes::{Count, Histogram};
//!
//! tracepoint::define_trace! {
//!     provider = "shop";
//!
//!     /// A customer has bought something.
//!     sold(article: &str, pieces: u32) { article: str = article, pieces: u32 = pieces }
//! }
//!
//! let sales = Count::of("shop:sold", &["article"])?;
//! let pieces = Histogram::of("shop:sold", "pieces", &[])?;
//!
//! tracepoint::trace!(sold("apple", 3));
//! tracepoint::trace!(sold("pear", 1));
//! tracepoint::trace!(sold("apple", 2));
//!
//! let sales = sales.snapshot();
//! assert_eq!((sales.groups[0].keys[0].to_string(), sales.groups[0].value), ("apple".to_owned(), 2));
//! assert_eq!(pieces.snapshot().all.and_then(|pieces| pieces.percentile(50.0)), Some(2.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An event updates a statistic without a lock, an allocation or a system call, even in a signal handler. The memory is allocated when a statistic is
//! created: at most 930 KB without groups. A grouped statistic takes at most 1 MiB plus the groups: per group 8 bytes for a count, 22 KB for a
//! histogram or a latency (55 KB if numbers may be fractional), and 80 to 152 bytes for the keys.
#![forbid(unsafe_code)]

mod buckets;
mod flights;
mod groups;
mod kept;
mod key;
mod layout;
mod live;
mod memory;
mod parse;
mod row;
mod sample;
pub mod snapshot;
mod spec;
mod statistic;
mod values;

pub use key::GroupKey;
pub use live::{Count, EventRate, Histogram, Last, Latency, RunningStatistic, Top, subscribers};
pub use memory::Memory;
pub use sample::Sample;
pub use snapshot::{FormatError, Snapshot};
pub use spec::{DEFAULT_GROUPS, MAX_GROUPS, MAX_IN_FLIGHT, MAX_KEPT, Measure, StatisticError, StatisticSpec};
pub use statistic::{Columns, FieldKind, Moment, Role, Statistic};
