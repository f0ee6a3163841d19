//! Suggestions for names that do not exist: those of the core.

pub(crate) use tracepoint_core::private::nearest_names;
