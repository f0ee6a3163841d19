//! What stands behind the surface: the statics, their entries in the tables, and the types that tie arguments to bytes.

mod described;
mod marker;
mod tracepoint;

pub(super) use marker::mark;
pub(super) use tracepoint::tracepoint;
