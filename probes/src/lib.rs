//! Ready aggregates for [`tracepoint`]: each makes something smaller out of events where they happen, so that a question can
//! be answered without recording anything.
//!
//! | aggregate | answers |
//! |---|---|
//! | [`Count`] | how often, in all and by the value of a field |
//!
//! An aggregate subscribes to a marker beside the channels that record it, with a filter of its own if need be:
//!
//! ```
//! use std::sync::Arc;
//! use tracepoint::marker::Subscriber;
//! use tracepoint_probes::Count;
//!
//! tracepoint::define_trace! {
//!     provider = "shop";
//!
//!     /// A customer leaves with something.
//!     sold(article: &str, pieces: u32) { article: str = article, pieces: u32 = pieces }
//! }
//!
//! let marker = tracepoint::find("shop:sold")?.marker().ok_or("a bare hook has nothing to count by")?;
//! let count = Arc::new(Count::by("article", 100));
//! let subscription = marker.subscribe(Subscriber::aggregate(count.clone()))?;
//!
//! tracepoint::trace!(sold("apple", 3));
//! tracepoint::trace!(sold("pear", 1));
//! tracepoint::trace!(sold("apple", 2));
//! drop(subscription); // nothing is observed any more when this returns
//!
//! let counts = count.snapshot();
//! assert_eq!(counts.total, 3);
//! let (first, second) = (&counts.groups[0], &counts.groups[1]);
//! assert_eq!((first.key.to_string(), first.count), ("apple".to_owned(), 2));
//! assert_eq!((second.key.to_string(), second.count), ("pear".to_owned(), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `observe` runs on the traced thread, between the clock and the ring. What is here allocates nothing there, takes no lock,
//! and may run in a signal handler.

#![forbid(unsafe_code)]

pub mod count;
mod shard;

pub use count::Count;
