//! Markers: events as named fields of basic types, for code that handles events of any declaration.
//!
//! A [`Subscriber`] of a marker is a channel, which records the events, or an [`Aggregate`], which reduces them in the thread that fires
//! them. A [`Filter`] decides from the fields which events it gets.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use tracepoint::field::Value;
//! use tracepoint::marker::{Aggregate, FieldView, Subscriber};
//!
//! tracepoint::define_trace! { provider = "kiosk"; pub paid(cents: u64) { cents: u64 = cents } }
//!
//! #[derive(Default)]
//! struct Total(AtomicU64);
//!
//! impl Aggregate for Total {
//!     fn observe(&self, _time: u64, event: FieldView<'_>) {
//!         if let Some(Value::Unsigned(cents)) = event.by_name("cents") {
//!             self.0.fetch_add(cents, Ordering::Relaxed);
//!         }
//!     }
//! }
//!
//! let total = Arc::new(Total::default());
//! let marker = tracepoint::find("kiosk:paid")?.marker().ok_or("a bare hook")?;
//! let subscription = marker.subscribe(Subscriber::aggregate(total.clone()))?;
//! tracepoint::trace!(paid(1250));
//! drop(subscription); // ends it
//! tracepoint::trace!(paid(5));
//! assert_eq!(total.0.load(Ordering::Relaxed), 1250);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each event evaluates its fields and reads the clock once, for all subscribers. A panic in a subscriber is caught, and counted as a loss
//! of that subscriber.
//!
//! Next: [`field`](crate::field) for the values; the page *Extending it* of the book.

pub use tracepoint_core::marker::{
    Aggregate, Decision, FieldRange, FieldView, Filter, Marker, MarkerDescriptor, Subscriber, Subscription,
};
