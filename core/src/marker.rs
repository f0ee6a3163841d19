//! Markers export events as basic types. The marker stage evaluates an event once for all subscribers.
//!
//! An event comes from the cold path of a tracepoint (for a marker that `define_trace!` derives from a field block) or from a
//! `trace_mark!`. It goes to each subscriber: a [`tracepoint_ring::channel`] or an [`Aggregate`].
//!
//! The stage has three steps per event:
//! 1. It evaluates every field expression once. It catches a panic in one: nothing has been reserved yet, so no record is left
//!    incomplete, and every subscriber counts the event as lost, reason `panicked`.
//! 2. It reads the clock once. It does so after evaluating the fields, so that an event fired by a field expression has the earlier time.
//! 3. For each subscriber in turn, it counts `fired`, calls the filter, then reserves, writes and commits the record in this thread's
//!    ring.
//!
//! If the only subscriber is a channel without filter and contexts, the [fast path](tracepoint_ring::channel::SoleSubscriber) executes steps
//! 2 and 3 in one pass, and counts `fired` just before the commit. If there are also aggregates, for example of a trigger, the same
//! pass runs out of line, and the aggregates see the event after the commit. A record that the fast path cannot write immediately continues at step 2
//! with the same values.
//!
//! # Routes
//!
//! Each route other than the full path is there for the instructions that it saves, counted by callgrind for an event with three integers:
//!
//! | subscribers | route | saves |
//! |---|---|---|
//! | a channel | the fast path, inlined into the function that the site calls | 57 of 138 of the route of a channel with an aggregate |
//! | an aggregate that gets all events and does not use their time | `observe_sole` | 17 of 122 of `observe_all` |
//! | other aggregates, behind a channel if there is one | `observe_all` | 78 of 200 of the full path, for a count; 136 of 274 behind a channel |
//! | several channels; filters, contexts; in addition, conditions and probes | the full path | – |
//!
//! The expressions of a `trace_mark!` are evaluated in the calling function, before the read-side section, so that `?` and `return`
//! work in them and their panics reach the caller.

pub(crate) mod declared;
pub(crate) mod descriptor;
mod field_range;
mod field_view;
pub(crate) mod note;
pub(crate) mod runtime;
pub(crate) mod stage;
mod subscriber;
mod subscription;

pub use declared::Marker;
pub use descriptor::MarkerDescriptor;
pub use field_range::FieldRange;
pub use field_view::FieldView;
pub(crate) use stage::{deliver, deliver_and_exit, panicked};
pub(crate) use subscriber::Entry;
pub use subscriber::{Aggregate, Decision, Filter, Subscriber};
pub use subscription::Subscription;
