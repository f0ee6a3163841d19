//! Markers: the export of basic types, and the one stage that serves all who subscribed.
//!
//! The step before is a tracepoint's cold path (for a marker that `define_trace!` derives from a field block) or a
//! `trace_mark!` in the code; the step after is each subscriber: a [`tracepoint_ring::channel`], or an [`Aggregate`].
//!
//! The stage, once per event:
//! 1. `fired` is counted for every subscriber;
//! 2. the clock is read, once;
//! 3. every field expression is evaluated, once. A panic in one is caught here: nothing was reserved yet, so nothing is left
//!    half written; every subscriber counts the event as lost, reason `panicked`;
//! 4. for each subscriber in turn: its filter, then reserve, write and commit in the ring of this thread.
//!
//! Where a channel is all that is subscribed, and no code of the program's runs for the values, nothing is counted before the record is
//! written: `fired` just before the commit. What cannot be written at once begins anew, with the clock.
//!
//! For `trace_mark!` the expressions are the caller's own code and are evaluated first, outside the section, so that `?` and
//! `return` work in them and their panics are the caller's.

mod descriptor;
mod stage;
mod subscriber;

pub use descriptor::{FieldView, Marker, MarkerDescriptor, MarkerParts, MarkerType};
pub(crate) use stage::way;
pub use stage::{Emitted, Served, Stage, derived, mark};
pub use subscriber::{Aggregate, Decision, Filter, Subscriber, Subscription};
