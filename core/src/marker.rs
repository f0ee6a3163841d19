//! Markers: the export of basic types, and the one stage that serves all who subscribed.
//!
//! The step before is a tracepoint's cold path (for a marker that `define_trace!` derives from a field block) or a
//! `trace_mark!` in the code; the step after is each subscriber: a [`tracepoint_ring::channel`], or an [`Aggregate`].
//!
//! The stage, once per event:
//! 1. every field expression is evaluated, once. A panic in one is caught here: nothing was reserved yet, so nothing is left
//!    half written; every subscriber counts the event as lost, reason `panicked`;
//! 2. the clock is read, once: after the fields, so that an event that a field expression fires has the earlier time;
//! 3. for each subscriber in turn: `fired` is counted, then its filter is asked, then the record is reserved, written and committed in
//!    the ring of this thread.
//!
//! Where the only subscriber is a channel without filter and contexts, the [fast path](tracepoint_ring::channel::SoleSubscriber) does 2
//! and 3 in one pass, and counts `fired` just before the commit. A record that it cannot write at once goes on at 2, with the same values.
//!
//! For `trace_mark!` the expressions are the caller's own code and are evaluated first, outside the section, so that `?` and
//! `return` work in them and their panics are the caller's.

mod declared;
mod descriptor;
mod field_view;
mod stage;
mod subscriber;
mod subscription;

pub use declared::{Marker, MarkerType};
pub use descriptor::{MarkerDescriptor, MarkerParts, ValuesType};
pub use field_view::FieldView;
pub use stage::{Emitted, Served, Stage, derived, mark};
pub(crate) use subscriber::Entry;
pub use subscriber::{Aggregate, Decision, Filter, Subscriber};
pub use subscription::Subscription;
