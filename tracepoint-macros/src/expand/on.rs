//! The expansion with tracing: the statics, their entries in the tables, and the trait implementations for the types of tracepoints and
//! markers.

mod described;
mod marker;
mod note;
mod tracepoint;

pub(super) use marker::mark;
pub(super) use tracepoint::tracepoint;
