//! Aggregates for tracepoints: each reduces events to a summary on the traced thread, so that a question is answered without
//! recording the events.
//!
//! | aggregate | answers |
//! |---|---|
//! | [`Count`] | how often, in all and by the value of a field |
//!
//! An aggregate subscribes to a marker as a channel does, and may have a filter of its own:
//!
//! ```
//! use std::sync::Arc;
//! use tracepoint::marker::Subscriber;
//! use tracepoint_probes::Count;
//!
//! tracepoint::define_trace! {
//!     provider = "shop";
//!
//!     /// A customer has bought something.
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
//! drop(subscription); // when this returns, no event is observed any more
//!
//! let counts = count.snapshot();
//! assert_eq!(counts.total, 3);
//! let (first, second) = (&counts.groups[0], &counts.groups[1]);
//! assert_eq!((first.key.to_string(), first.count), ("apple".to_owned(), 2));
//! assert_eq!((second.key.to_string(), second.count), ("pear".to_owned(), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `observe` runs on the traced thread. The aggregates of this crate allocate nothing there, take no lock, and may run in a signal
//! handler.

#![forbid(unsafe_code)]

pub mod count;
mod shard;

pub use count::Count;
